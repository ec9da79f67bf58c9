import Foundation

extension FoundationClass {
  /// A single index is stored as a number; several are stored as data, each in as few bytes as possible.
  static let indexPath = FoundationClass(
    names: ["NSIndexPath"],
    read: { object in
      guard let length = object["NSIndexPathLength"]?.integer, length >= 0 else { return nil }
      switch length {
      case 0: return .list([])
      case 1: return try object.part(object["NSIndexPathValue"]).flatMap { $0.integer == nil ? nil : .list([$0]) }
      default:
        guard let numbers = try object.packedNumbers(object["NSIndexPathData"]), numbers.count == length else {
          return nil
        }
        return .list(numbers.map { .integer(Int128($0)) })
      }
    })

  /// Ascending ranges.
  static let indexSet = FoundationClass(
    names: ["NSIndexSet", "NSMutableIndexSet"],
    read: { object in
      guard let count = object["NSRangeCount"]?.integer, count >= 0 else { return nil }
      switch count {
      case 0: return indexes([])
      case 1:
        guard let location = object["NSLocation"]?.integer, let length = object["NSLength"]?.integer else { return nil }
        return indexes([(location, length)])
      default:
        guard let numbers = try object.packedNumbers(object["NSRangeData"]), numbers.count / 2 == count,
          numbers.count.isMultiple(of: 2)
        else { return nil }
        return indexes(stride(from: 0, to: numbers.count, by: 2).map { (numbers[$0], numbers[$0 + 1]) })
      }
    })

  private static func indexes(_ ranges: [(location: Int, length: Int)]) -> KeyedContent {
    .forms(
      KeyedForms(
        summary: "an index set of \(ranges.count) ranges",
        shown: .list(
          ranges.map { ["location": .integer(Int128($0.location)), "length": .integer(Int128($0.length))] }),
        elements: ranges.map { .range(location: Int128($0.location), length: Int128($0.length)) },
        swiftValue: { type in type == IndexSet.self ? indexSet(of: ranges) : nil }))
  }

  /// Returns nil for ranges that overlap or aren't in order.
  private static func indexSet(of ranges: [(location: Int, length: Int)]) -> IndexSet? {
    var set = IndexSet()
    var end = 0
    for range in ranges {
      let (upper, isBeyond) = range.location.addingReportingOverflow(range.length)
      // Foundation traps on negative indices, and Int.max is its "not found".
      guard range.location >= end, range.length > 0, !isBeyond, upper < Int.max else { return nil }
      set.insert(integersIn: range.location..<upper)
      end = upper
    }
    return set
  }
}
