import Foundation

/// Components of colours: AppKit writes them as a text, UIKit as numbers.
enum KeyedColor {
  static let space = "NSColorSpace"
  /// Keys that say no more than the components do.
  private static let plain: Set<String> = [
    "NSRGB", "NSWhite", space, "UIColorComponentCount", "UIRed", "UIGreen", "UIBlue", "UIAlpha", "UIWhite", "UIRed-Double",
    "UIGreen-Double",
    "UIBlue-Double", "UIAlpha-Double", "UIWhite-Double", "$class",
  ]

  static func parts(_ components: [Double]) -> [(name: String, value: KeyedContent)] {
    zip(["red", "green", "blue", "alpha"], components).map { ($0, .number($1)) }
  }

  /// nil for a colour without red, green and blue: a pattern, a colour for print. One of a catalog has the colour that it stood for inside.
  static func content(
    _ name: KeyedArchive.ClassName, _ object: PropertyList, _ part: (PropertyList?) throws -> PropertyList?
  ) throws -> KeyedContent? {
    let fields = (object.dictionary ?? []).filter { $0.key != "$class" }
    let isWhole = fields.allSatisfy { plain.contains($0.key) }
    // Not deeper: a forged one may lead to itself.
    guard let found = try components(object, part) ?? part(object["NSColor"]).flatMap({ try components($0, part) }) else { return nil }
    return .color(found, name, fields, isWhole: isWhole)
  }

  private static func components(_ object: PropertyList, _ part: (PropertyList?) throws -> PropertyList?) throws -> [Double]? {
    func number(_ key: String) -> Double? { (object[key + "-Double"] ?? object[key])?.number }
    let alpha = number("UIAlpha") ?? 1
    if let red = number("UIRed"), let green = number("UIGreen"), let blue = number("UIBlue") { return [red, green, blue, alpha] }
    if let white = number("UIWhite") { return [white, white, white, alpha] }
    if let rgb = try numbers(part(object["NSRGB"])?.data), rgb.count == 3 || rgb.count == 4 {
      return Array((rgb + [1]).prefix(4))
    }
    if let grey = try numbers(part(object["NSWhite"])?.data), grey.count == 1 || grey.count == 2 {
      return [grey[0], grey[0], grey[0], grey.count == 2 ? grey[1] : 1]
    }
    return nil
  }

  /// Numbers with spaces between them and, mostly, a zero at the end.
  private static func numbers(_ data: Data?) -> [Double]? {
    // Four numbers take some dozens of bytes.
    guard let data, data.count < 256 else { return nil }
    let words = String(decoding: data.prefix { $0 != 0 }, as: UTF8.self).split(separator: " ")
    let numbers = words.compactMap { Double($0) }
    return numbers.count == words.count ? numbers : nil
  }
}
