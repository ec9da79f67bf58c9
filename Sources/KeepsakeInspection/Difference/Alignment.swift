import KeepsakeArchive

/// Finds the corresponding elements of two lists. Pure; the result for the same lists is the same on every machine.
enum Alignment {
  /// An element of each list, or one that the other list doesn't have.
  struct Pair: Equatable {
    var old: Int?
    var new: Int?
  }

  /// Pairs elements with equal keys, the first with the first and so on. The result is in the order of `new`; an
  /// element that only `old` has goes behind the one that it followed there. Costs time in proportion to both lists.
  static func byKey<Key: Hashable>(_ old: [Key], _ new: [Key]) -> [Pair] {
    var places: [Key: [Int]] = [:]
    for (index, key) in new.enumerated().reversed() { places[key, default: []].append(index) }
    var partner = [Int?](repeating: nil, count: new.count)
    // The elements that only `old` has, by the element of `new` that they follow; index 0 is for the front.
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

  /// Pairs elements in order: the common beginning, the common end, and between them as many equal elements as
  /// possible.
  ///
  /// - Parameters:
  ///   - keys: The keys by which elements are compared. What lies between elements with equal first keys is aligned by
  ///     the next keys. What no keys can match is paired by position.
  ///   - budget: The number of steps that may still be spent on the middles of lists. Beyond it, they are paired by
  ///     position.
  static func inOrder(_ keys: [(old: [UInt64], new: [UInt64])], budget: inout Int) -> [Pair] {
    guard let first = keys.first else { return [] }
    var pairs: [Pair] = []
    align(first.old.indices, first.new.indices, keys[...], budget: &budget, &pairs)
    return pairs
  }

  /// Recursive, once per kind of keys.
  private static func align(
    _ old: Range<Int>, _ new: Range<Int>, _ keys: ArraySlice<(old: [UInt64], new: [UInt64])>, budget: inout Int,
    _ pairs: inout [Pair]
  ) {
    guard let (before, after) = keys.first, !old.isEmpty, !new.isEmpty else {
      for offset in 0..<max(old.count, new.count) {
        pairs.append(
          Pair(
            old: offset < old.count ? old.lowerBound + offset : nil,
            new: offset < new.count ? new.lowerBound + offset : nil))
      }
      return
    }
    var (nextOld, nextNew) = (old.lowerBound, new.lowerBound)
    while nextOld < old.upperBound, nextNew < new.upperBound, before[nextOld] == after[nextNew] {
      pairs.append(Pair(old: nextOld, new: nextNew))
      (nextOld, nextNew) = (nextOld + 1, nextNew + 1)
    }
    var (oldEnd, newEnd) = (old.upperBound, new.upperBound)
    while oldEnd > nextOld, newEnd > nextNew, before[oldEnd - 1] == after[newEnd - 1] {
      (oldEnd, newEnd) = (oldEnd - 1, newEnd - 1)
    }
    for (anchorOld, anchorNew) in common(before[nextOld..<oldEnd], after[nextNew..<newEnd], budget: &budget) {
      align(nextOld..<anchorOld, nextNew..<anchorNew, keys.dropFirst(), budget: &budget, &pairs)
      pairs.append(Pair(old: anchorOld, new: anchorNew))
      (nextOld, nextNew) = (anchorOld + 1, anchorNew + 1)
    }
    align(nextOld..<oldEnd, nextNew..<newEnd, keys.dropFirst(), budget: &budget, &pairs)
    for (old, new) in zip(oldEnd..<old.upperBound, newEnd..<new.upperBound) { pairs.append(Pair(old: old, new: new)) }
  }

  /// The maximum number of steps for one pair of lists: a thousand elements against a thousand.
  private static let largestTable = 1_000_000

  /// Returns a longest common subsequence, found by dynamic programming.
  private static func common(_ old: ArraySlice<UInt64>, _ new: ArraySlice<UInt64>, budget: inout Int) -> [(Int, Int)] {
    let (cells, overflow) = old.count.multipliedReportingOverflow(by: new.count)
    guard cells > 0, !overflow, cells <= min(largestTable, budget) else { return [] }
    budget -= cells
    let (a, b) = (Array(old), Array(new))
    let width = b.count + 1
    // Lengths for the remaining parts of both lists. The shorter list has at most a thousand elements, so 32 bits are
    // enough.
    var lengths = [Int32](repeating: 0, count: (a.count + 1) * width)
    for i in a.indices.reversed() {
      for j in b.indices.reversed() {
        lengths[i * width + j] =
          a[i] == b[j]
          ? lengths[(i + 1) * width + j + 1] + 1 : max(lengths[(i + 1) * width + j], lengths[i * width + j + 1])
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
