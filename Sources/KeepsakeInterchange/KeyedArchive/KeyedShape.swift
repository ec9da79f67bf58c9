import Foundation

/// Points, sizes and rectangles as texts: `{1, 2}` and `{{0, 0}, {10, 20}}`.
enum KeyedShape {
  static func content(_ text: String, isSize: Bool = false) -> KeyedContent? {
    guard text.utf8.first == UInt8(ascii: "{"), text.utf8.count < 400 else { return nil }
    let numbers = text.split { " ,{}".contains($0) }.map { Double($0) }
    guard numbers.allSatisfy({ $0 != nil }) else { return nil }
    let values = numbers.compactMap { $0 }
    switch values.count {
    case 2: return pair(values[0], values[1], isSize ? ("width", "height") : ("x", "y"))
    case 4:
      return .shape([
        ("origin", pair(values[0], values[1], ("x", "y"))), ("size", pair(values[2], values[3], ("width", "height"))),
      ])
    default: return nil
    }
  }

  private static func pair(_ first: Double, _ second: Double, _ names: (String, String)) -> KeyedContent {
    .shape([(names.0, .number(first)), (names.1, .number(second))])
  }
}
