/// A set of numbers from 1 on, kept as the ranges that they form: a writer's numbers come one after another, so one range is the rule.
package struct NumberRanges: Hashable, Sendable {
  /// In order, with at least one number missing between two of them: equal sets look alike.
  package private(set) var ranges: [ClosedRange<UInt64>]

  /// Of ranges in any order that may overlap, as somebody else may write them.
  package init(_ ranges: [ClosedRange<UInt64>] = []) {
    self.ranges = []
    for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
      guard let last = self.ranges.last, range.lowerBound <= last.upperBound || range.lowerBound - last.upperBound == 1 else {
        self.ranges.append(range)
        continue
      }
      self.ranges[self.ranges.count - 1] = last.lowerBound...Swift.max(last.upperBound, range.upperBound)
    }
  }

  package var isEmpty: Bool { ranges.isEmpty }

  /// The smallest number and the greatest; nil if there is none.
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
