package import Foundation

/// Conversions of values that people may have edited.
extension ArchiveValue {
  /// The value as a decimal number, also from digits in a text.
  package var decimal: Decimal? {
    switch self {
    case .decimal(let digits), .string(let digits): digits == "NaN" ? .nan : Decimal(string: digits)
    case .integer(let value): Decimal(value)
    case .unsigned(let value): Decimal(value)
    default: nil
    }
  }

  /// A struct's fields, or a dictionary's pairs if all keys are strings.
  package var namedFields: [Field]? {
    switch self {
    case .structure(_, let fields): return fields
    case .dictionary(let pairs):
      var fields: [Field] = []
      for pair in pairs {
        guard case .string(let key) = pair.key else { return nil }
        fields.append(Field(key: key, value: pair.value))
      }
      return fields
    default: return nil
    }
  }
}
