import Foundation

extension FoundationClass {
  /// A point, size or rectangle, insets, or a range.
  static let value = FoundationClass(
    names: ["NSValue"],
    read: { object in
      for key in ["NS.pointval", "NS.sizeval", "NS.rectval"] {
        guard let text = try object.text(object[key]) else { continue }
        return KeyedShape.content(text, isSize: key == "NS.sizeval")
      }
      if let insets = insets(object) { return insets }
      guard case .integer(let location) = try object.part(object["NS.rangeval.location"]),
        case .integer(let length) = try object.part(object["NS.rangeval.length"]), UInt64(exactly: location) != nil,
        UInt64(exactly: length) != nil
      else { return nil }
      return .range(location: location, length: length)
    })

  private static func insets(_ object: FoundationObject) -> KeyedContent? {
    var parts: [KeyedForms.Part] = []
    for side in ["top", "left", "bottom", "right"] {
      guard let number = object["NS.edgeval.\(side)"]?.number else { return nil }
      parts.append((side, .number(number)))
    }
    return .shape(parts)
  }

  /// A number and its unit, with the keys of Foundation's `Measurement`.
  static let measurement = FoundationClass(
    names: ["NSMeasurement"],
    read: { object in
      guard let value = object["NS.value"]?.number, let given = try object.part(object["NS.unit"]),
        let unit = try object.archive.className(of: given), let symbol = try object.text(given["NS.symbol"])
      else { return nil }
      var fields: [PropertyList.Entry] = [.init("symbol", .string(symbol)), .init("class", .string(unit.name))]
      if let specifier = given["NS.specifier"] { fields.append(.init("specifier", specifier)) }
      if let converter = try object.part(given["NS.converter"]) {
        guard let coefficient = converter["NS.coefficient"]?.number, let constant = converter["NS.constant"]?.number
        else { return nil }
        fields.append(.init("converter", ["coefficient": .number(coefficient), "constant": .number(constant)]))
      }
      return .fields([.init("value", .number(value)), .init("unit", .dictionary(fields))])
    })
}

extension KeyedContent {
  /// Returns a range by its location and length, and by its bounds, like Swift's ranges.
  static func range(location: Int128, length: Int128) -> KeyedContent {
    let parts: [KeyedForms.Part] = [("location", .integer(location)), ("length", .integer(length))]
    return .forms(
      KeyedForms(
        summary: "a range", shown: .shape(parts), parts: parts,
        otherParts: [("from", .integer(location)), ("upTo", .integer(location + length))],
        swiftValue: { type in
          guard type == Range<Int>.self, let lower = Int(exactly: location),
            let upper = Int(exactly: location + length), lower <= upper
          else { return nil }
          return lower..<upper
        }))
  }
}
