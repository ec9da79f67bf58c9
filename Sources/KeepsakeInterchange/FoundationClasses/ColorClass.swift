import Foundation

extension FoundationClass {
  /// A colour by red, green, blue and alpha: AppKit writes them as a text, UIKit as numbers. A colour from a catalog
  /// contains the actual colour; a pattern, or a colour for print, has no such components and is read as an object like
  /// any other.
  static let color = FoundationClass(
    names: ["NSColor", "UIColor"],
    read: { object in
      // Only one level, because a forged colour may contain itself.
      guard
        let found = try components(object, object.list)
          ?? object.part(object["NSColor"]).flatMap({ try components(object, $0) })
      else { return nil }
      let parts: [KeyedForms.Part] = zip(["red", "green", "blue", "alpha"], found).map { ($0, .number($1)) }
      let entries = object.entries
      let isWhole = entries.allSatisfy { plainColorKeys.contains($0.key) }
      let space = entries.last { $0.key == "NSColorSpace" }?.value.integer
      let shown: KeyedContent =
        isWhole
        ? .shape(parts + (space.map { [("colorSpace", .integer(Int128($0)))] } ?? [])) : .object(object.name, entries)
      return .forms(KeyedForms(summary: "a colour", shown: shown, parts: parts))
    })

  /// Keys that contain nothing beyond the components.
  private static let plainColorKeys: Set<String> = [
    "NSRGB", "NSWhite", "NSColorSpace", "UIColorComponentCount", "UIRed", "UIGreen", "UIBlue", "UIAlpha", "UIWhite",
    "UIRed-Double",
    "UIGreen-Double", "UIBlue-Double", "UIAlpha-Double", "UIWhite-Double",
  ]

  private static func components(_ object: FoundationObject, _ list: PropertyList) throws -> [Double]? {
    func number(_ key: String) -> Double? { (list[key + "-Double"] ?? list[key])?.number }
    let alpha = number("UIAlpha") ?? 1
    if let red = number("UIRed"), let green = number("UIGreen"), let blue = number("UIBlue") {
      return [red, green, blue, alpha]
    }
    if let white = number("UIWhite") { return [white, white, white, alpha] }
    if let rgb = try numbers(object.part(list["NSRGB"])?.data), rgb.count == 3 || rgb.count == 4 {
      return Array((rgb + [1]).prefix(4))
    }
    if let grey = try numbers(object.part(list["NSWhite"])?.data), grey.count == 1 || grey.count == 2 {
      return [grey[0], grey[0], grey[0], grey.count == 2 ? grey[1] : 1]
    }
    return nil
  }

  /// Reads numbers separated by spaces and, usually, followed by a zero byte.
  private static func numbers(_ data: Data?) -> [Double]? {
    // Four numbers take some dozens of bytes.
    guard let data, data.count < 256 else { return nil }
    let words = String(decoding: data.prefix { $0 != 0 }, as: UTF8.self).split(separator: " ")
    let numbers = words.compactMap { Double($0) }
    return numbers.count == words.count ? numbers : nil
  }
}
