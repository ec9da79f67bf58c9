import Foundation

/// Converts values that contain no others to the corresponding types of Swift and Foundation.
enum KeyedLeaf {
  /// Returns nil for a type that isn't one of these, and so decodes itself.
  static func value<T>(_ content: KeyedContent, of type: T.Type, at place: KeyedLocation) throws -> T? {
    if let value = try swiftValue(content, type, place) { return value as? T }
    guard isLeaf(type) else { return nil }
    if case .null = content {
      throw DecodingError.valueNotFound(type, .init(codingPath: place.path, debugDescription: "found nil instead"))
    }
    guard let value = convert(content, to: type) as? T else { throw place.misfit(type) }
    return value
  }

  /// Returns a value whose `Codable` form differs from that of Foundation's archives. nil for all others, which may
  /// also have been saved in Swift's form.
  private static func swiftValue(_ content: KeyedContent, _ type: Any.Type, _ place: KeyedLocation) throws -> Any? {
    switch content {
    case .forms(let forms):
      guard let value = forms.swiftValue?(type) else { return nil }
      try place.spend(forms.count)
      return value
    case .list(let elements) where type == IndexPath.self:
      try place.spend(elements.count)
      let indexes = elements.compactMap(\.integer)
      return indexes.count == elements.count ? IndexPath(indexes: indexes) : nil
    default: return nil
    }
  }

  private static func isLeaf(_ type: Any.Type) -> Bool {
    type is any FixedWidthInteger.Type || type == Bool.self || type == Double.self || type == Float.self
      || type == String.self
      || type == Data.self || type == Date.self || type == URL.self || type == UUID.self || type == Decimal.self
  }

  private static func convert(_ content: KeyedContent, to type: Any.Type) -> Any? {
    switch type {
    case let type as any FixedWidthInteger.Type: integer(content, type)
    case is Bool.Type: bool(content)
    case is Double.Type: double(content)
    case is Float.Type: double(content).flatMap { $0.isFinite && !Float($0).isFinite ? nil : Float($0) }
    case is String.Type:
      switch content {
      case .string(let text): text
      case .forms(let forms): forms.text
      default: nil
      }
    case is Data.Type: if case .data(let data) = content { data } else { nil }
    case is Date.Type: if case .date(let date) = content { date } else { nil }
    case is URL.Type:
      switch content {
      case .url(let text), .string(let text): URL(string: text)
      default: nil
      }
    case is UUID.Type:
      switch content {
      case .uuid(let uuid): uuid
      case .string(let text): UUID(uuidString: text)
      default: nil
      }
    case is Decimal.Type: decimal(content)
    default: nil
    }
  }

  /// Returns a flag. Older programs saved flags as numbers, 0 or 1.
  private static func bool(_ content: KeyedContent) -> Bool? {
    switch content {
    case .bool(let value): value
    case .integer(0): false
    case .integer(1): true
    default: nil
    }
  }

  private static func integer<I: FixedWidthInteger>(_ content: KeyedContent, _ type: I.Type) -> I? {
    switch content {
    case .bool(let value): value ? 1 : 0
    case .integer(let value): I(exactly: value)
    case .number(let value): I(exactly: value)
    case .decimal(let digits): I(digits)
    default: nil
    }
  }

  private static func double(_ content: KeyedContent) -> Double? {
    switch content {
    case .integer(let value): Double(value)
    case .number(let value): value
    case .decimal(let digits): Double(digits)
    default: nil
    }
  }

  private static func decimal(_ content: KeyedContent) -> Decimal? {
    switch content {
    case .integer(let value): Decimal(string: "\(value)")
    case .number(let value): value.isFinite ? Decimal(string: "\(value)") : nil
    case .decimal(let digits): digits == "NaN" ? Decimal.nan : Decimal(string: digits)
    default: nil
    }
  }
}
