public import Foundation

/// Converts values of a preference to their forms in memory and in the store, and back. Chosen by the key's
/// initialiser.
///
/// The static functions may run the game's code: never call them under a lock.
@usableFromInline protocol PreferenceCoding<Value>: Sendable {
  associatedtype Value: Sendable
  /// Returns the value in its in-memory form; nil if only its encoded bytes show what it is and how large it is.
  static func scalar(of value: Value) -> PreferenceScalar?
  /// Returns the value; nil if the scalar isn't a value of this type.
  static func value(of scalar: PreferenceScalar) -> Value?
  static func encode(_ value: Value) throws -> Data
  static func decode(_ data: Data) throws -> Value
}

extension PreferenceCoding {
  @usableFromInline static func scalar(of value: Value) -> PreferenceScalar? { nil }
  @usableFromInline static func value(of scalar: PreferenceScalar) -> Value? { nil }
}

@usableFromInline enum ScalarCoding<Value: PreferenceValue>: PreferenceCoding {
  @usableFromInline static func scalar(of value: Value) -> PreferenceScalar? { value.preferenceScalar }
  @usableFromInline static func value(of scalar: PreferenceScalar) -> Value? { Value(preferenceScalar: scalar) }
  @usableFromInline static func encode(_ value: Value) throws -> Data { try value.preferenceScalar.encoded() }
  @usableFromInline static func decode(_ data: Data) throws -> Value { try Archive.decode(Value.self, from: data) }
}

/// Stores the raw value.
enum RawCoding<Value: RawRepresentable & Sendable>: PreferenceCoding where Value.RawValue: PreferenceValue {
  static func scalar(of value: Value) -> PreferenceScalar? { value.rawValue.preferenceScalar }

  static func value(of scalar: PreferenceScalar) -> Value? {
    Value.RawValue(preferenceScalar: scalar).flatMap(Value.init(rawValue:))
  }

  static func encode(_ value: Value) throws -> Data { try value.rawValue.preferenceScalar.encoded() }

  static func decode(_ data: Data) throws -> Value {
    try RawValues<Value>.value(of: Archive.decode(Value.RawValue.self, from: data))
  }
}

enum OptionalRawCoding<Wrapped: RawRepresentable & Sendable>: PreferenceCoding where Wrapped.RawValue: PreferenceValue {
  static func encode(_ value: Wrapped?) throws -> Data { try Archive.encode(value?.rawValue) }

  static func decode(_ data: Data) throws -> Wrapped? {
    try Archive.decode(Wrapped.RawValue?.self, from: data).map(RawValues<Wrapped>.value)
  }
}

enum RawListCoding<Element: RawRepresentable & Sendable>: PreferenceCoding where Element.RawValue: PreferenceValue {
  static func encode(_ value: [Element]) throws -> Data { try Archive.encode(value.map(\.rawValue)) }

  static func decode(_ data: Data) throws -> [Element] {
    try Archive.decode([Element.RawValue].self, from: data).map(RawValues<Element>.value)
  }
}

enum ArchiveCoding<Value: Archivable & Sendable>: PreferenceCoding {
  static func encode(_ value: Value) throws -> Data { try Archive.encode(value) }
  static func decode(_ data: Data) throws -> Value { try Archive.decode(Value.self, from: data) }
}

enum CodableCoding<Value: Codable & Sendable>: PreferenceCoding {
  static func encode(_ value: Value) throws -> Data { try Archive.encode(value) }
  static func decode(_ data: Data) throws -> Value { try Archive.decode(Value.self, from: data) }
}

private enum RawValues<Value: RawRepresentable> {
  /// Throws for a raw value that this program doesn't know; a newer one may know it.
  static func value(of raw: Value.RawValue) throws -> Value {
    guard let value = Value(rawValue: raw) else {
      throw ArchiveError(
        .unknownCase, "\(Value.self) has no case for the saved raw value \(String(String(describing: raw).prefix(80)))")
    }
    return value
  }
}
