/// Which elements of two lists belong together. Pure; the same for the same lists on every machine.
enum Alignment {
  /// One element of each, or one that the other list doesn't have.
  struct Pair: Equatable {
    var old: Int?
    var new: Int?
  }

  /// Pairs elements with the same key, the first with the first and so on, in the order of `new`, each element that only `old` has
  /// behind the one that it followed there. Costs time in proportion to both.
  static func byKey<Key: Hashable>(_ old: [Key], _ new: [Key]) -> [Pair] {
    var places: [Key: [Int]] = [:]
    for (index, key) in new.enumerated().reversed() { places[key, default: []].append(index) }
    var partner = [Int?](repeating: nil, count: new.count)
    // What only `old` has: behind which element of `new` it goes; -1 for the front.
    var lost = [[Int]](repeating: [], count: new.count + 1)
    var last = -1
    for (index, key) in old.enumerated() {
      if let place = places[key]?.popLast() {
        partner[place] = index
        last = place
      } else {
        lost[last + 1].append(index)
      }
    }
    var pairs: [Pair] = lost[0].map { Pair(old: $0, new: nil) }
    for (index, old) in partner.enumerated() {
      pairs.append(Pair(old: old, new: index))
      pairs += lost[index + 1].map { Pair(old: $0, new: nil) }
    }
    return pairs
  }

  /// Pairs elements in order: the same beginning, the same end, and between them as many alike as possible; what is left between two
  /// such is paired by position.
  ///
  /// - Parameter budget: Steps that may still be spent on the middles of lists; beyond it they are paired by position.
  static func inOrder(_ old: [UInt64], _ new: [UInt64], budget: inout Int) -> [Pair] {
    var start = 0
    while start < old.count, start < new.count, old[start] == new[start] { start += 1 }
    var (oldEnd, newEnd) = (old.count, new.count)
    while oldEnd > start, newEnd > start, old[oldEnd - 1] == new[newEnd - 1] {
      oldEnd -= 1
      newEnd -= 1
    }
    var pairs = (0..<start).map { Pair(old: $0, new: $0) }
    let anchors = common(old[start..<oldEnd], new[start..<newEnd], budget: &budget)
    var (nextOld, nextNew) = (start, start)
    for (anchorOld, anchorNew) in anchors + [(oldEnd, newEnd)] {
      while nextOld < anchorOld || nextNew < anchorNew {
        pairs.append(Pair(old: nextOld < anchorOld ? nextOld : nil, new: nextNew < anchorNew ? nextNew : nil))
        if nextOld < anchorOld { nextOld += 1 }
        if nextNew < anchorNew { nextNew += 1 }
      }
      guard anchorOld < oldEnd else { break }
      pairs.append(Pair(old: anchorOld, new: anchorNew))
      (nextOld, nextNew) = (anchorOld + 1, anchorNew + 1)
    }
    return pairs + zip(oldEnd..<old.count, newEnd..<new.count).map { Pair(old: $0, new: $1) }
  }

  /// The most steps for one pair of lists: a thousand elements against a thousand.
  private static let largestTable = 1_000_000

  /// A longest common subsequence, by the usual table.
  private static func common(_ old: ArraySlice<UInt64>, _ new: ArraySlice<UInt64>, budget: inout Int) -> [(Int, Int)] {
    let (cells, overflow) = old.count.multipliedReportingOverflow(by: new.count)
    guard cells > 0, !overflow, cells <= min(largestTable, budget) else { return [] }
    budget -= cells
    let (a, b) = (Array(old), Array(new))
    let width = b.count + 1
    // Lengths for the rest of both lists; no list is longer than a thousand on its shorter side, so 32 bits are plenty.
    var lengths = [Int32](repeating: 0, count: (a.count + 1) * width)
    for i in a.indices.reversed() {
      for j in b.indices.reversed() {
        lengths[i * width + j] =
          a[i] == b[j] ? lengths[(i + 1) * width + j + 1] + 1 : max(lengths[(i + 1) * width + j], lengths[i * width + j + 1])
      }
    }
    var pairs: [(Int, Int)] = []
    var (i, j) = (0, 0)
    while i < a.count, j < b.count {
      if a[i] == b[j] {
        pairs.append((old.startIndex + i, new.startIndex + j))
        (i, j) = (i + 1, j + 1)
      } else if lengths[(i + 1) * width + j] >= lengths[i * width + j + 1] {
        i += 1
      } else {
        j += 1
      }
    }
    return pairs
  }
}
