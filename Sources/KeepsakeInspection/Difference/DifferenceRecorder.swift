import KeepsakeArchive

/// Keeps the changes that are found, up to the limits, and counts the others.
struct DifferenceRecorder {
  var perPattern = 0
  var maximum = 0
  private var found: [(order: [Int], change: ArchiveDifference.Change)] = []
  private var counts: [String: Int] = [:]
  private var hidden: [String: Int] = [:]

  mutating func add(_ path: Int, in paths: DifferencePath, _ make: (String) -> ArchiveDifference.Change) {
    let pattern = paths.pattern(path)
    let count = counts[pattern, default: 0]
    counts[pattern] = count + 1
    guard count < perPattern, found.count < maximum else {
      hidden[pattern, default: 0] += 1
      return
    }
    found.append((paths.order(path), make(paths.text(path))))
  }

  var sortedChanges: [ArchiveDifference.Change] {
    // Changes with the same position stay in the order in which they were found.
    found.enumerated().sorted { a, b in
      a.element.order.lexicographicallyPrecedes(b.element.order)
        || (a.element.order == b.element.order && a.offset < b.offset)
    }.map(\.element.change)
  }

  var omitted: [ArchiveDifference.Omission] {
    hidden.sorted { $0.key < $1.key }.map { ArchiveDifference.Omission(pattern: $0.key, count: $0.value) }
  }
}
