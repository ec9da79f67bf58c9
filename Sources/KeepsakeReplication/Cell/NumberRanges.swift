/// A set of numbers from 1 on, kept as the ranges that they form: a writer's numbers are consecutive, so there is
/// usually one range.
package struct NumberRanges: Hashable, Sendable {
  /// Sorted, with at least one number missing between two ranges, so that equal sets are represented alike.
  package private(set) var ranges: [ClosedRange<UInt64>]

  /// Creates a set from ranges in any order that may overlap, since another program may have written them.
  package init(_ ranges: [ClosedRange<UInt64>] = []) {
    self.ranges = []
    for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
      guard let last = self.ranges.last, range.lowerBound <= last.upperBound || range.lowerBound - last.upperBound == 1
      else {
        self.ranges.append(range)
        continue
      }
      self.ranges[self.ranges.count - 1] = last.lowerBound...Swift.max(last.upperBound, range.upperBound)
    }
  }

  package var isEmpty: Bool { ranges.isEmpty }

  /// The smallest and the greatest number; nil if there is none.
  package var bounds: ClosedRange<UInt64>? {
    guard let first = ranges.first, let last = ranges.last else { return nil }
    return first.lowerBound...last.upperBound
  }

  package func contains(_ number: UInt64) -> Bool {
    var low = 0
    var high = ranges.count
    while low < high {
      let middle = (low + high) / 2
      if ranges[middle].upperBound < number { low = middle + 1 } else { high = middle }
    }
    return low < ranges.count && ranges[low].contains(number)
  }

  package func union(_ other: NumberRanges) -> NumberRanges {
    if self == other || other.isEmpty { return self }
    return NumberRanges(ranges + other.ranges)
  }
}
