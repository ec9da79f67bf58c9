/// Marks around values that are ambiguous on their own, used where the same bytes are to be written again by
/// `ValueParser`.
package enum ArchiveMark: String, Sendable, CaseIterable {
  /// In an optional of an optional: a value is present, which may itself be nil.
  case some
  /// In a `Codable` value: a number of 32 bits; a decimal number that isn't a large integer.
  case float, decimal
  /// In an exact tree of a keyed archive: a value that is stored where others refer to an object, and a number that is
  /// an object where others are stored.
  case inPlace, boxed
  /// Under a key of a hand-written value: the second field is the index of its type among the archive's keyed types.
  case type

  /// The type index of marks, which have no type.
  package static let noType = -1
  /// The key, in a hand-written object, of its values in the references section.
  package static let laterKey = "$references"
  private static let contentKey = ""
  private static let indexKey = "index"

  package static func marked(_ mark: ArchiveMark, _ value: ArchiveValue) -> ArchiveValue {
    .enumeration(type: noType, case: mark.rawValue, [.init(key: contentKey, value: value)])
  }

  package static func typed(_ value: ArchiveValue, _ index: Int) -> ArchiveValue {
    .enumeration(
      type: noType, case: type.rawValue,
      [.init(key: contentKey, value: value), .init(key: indexKey, value: .integer(Int64(index)))])
  }

  static func later(_ fields: [ArchiveValue.Field]) -> ArchiveValue.Field {
    .init(key: laterKey, value: .structure(type: noType, fields))
  }

  /// Returns the mark around a value, the value inside and the index of its type; nil if there is no mark.
  package static func unmarked(_ value: ArchiveValue) -> (mark: ArchiveMark, value: ArchiveValue, index: Int)? {
    guard case .enumeration(noType, let name, let fields) = value, let mark = ArchiveMark(rawValue: name),
      let inner = fields.first, inner.key == contentKey
    else { return nil }
    guard case .integer(let index) = fields.last?.value, fields.count == 2 else { return (mark, inner.value, 0) }
    return (mark, inner.value, Int(index))
  }
}
