import KeepsakeReplication

/// A setting of the player: its name, type, default, and whether other devices share it.
///
/// ```swift
/// extension PreferenceKey<Double> { static let volume = PreferenceKey("volume", default: 0.8) }
/// extension PreferenceKey<Difficulty> {
///   static let difficulty = PreferenceKey("difficulty", default: .normal, synced: true)
/// }
/// ```
///
/// The value may be a Boolean, a number, text, bytes, a date or a URL; an enum or another type with such a raw value;
/// an optional or an array of these; any `Archivable` type; and any `Codable` type. It must be `Sendable`, because any
/// thread may read it.
///
/// In a file that imports SwiftUI, which has a protocol of this name, write `Keepsake.PreferenceKey`.
///
/// The default is never stored or sent, so a later release can give another default to players who never chose.
///
/// A name is either local (the default) or synced, permanently. If a later release declares it the other way, the key
/// finds no value and gives its default, an incident reports it, and the stored value isn't changed or sent. Use a new
/// name instead. The type must not change under a name either, except to a wider number type.
public struct PreferenceKey<Value: Sendable>: Sendable {
  /// The greatest length of a name, in bytes of UTF-8. Control characters are refused too.
  public static var maximumNameBytes: Int { ExchangeRules.maximumKeyBytes }

  /// The name as it was given. Not normalized here, because a key may be made at each use.
  @usableFromInline let given: String
  /// The key's name, in Unicode's form NFC.
  public var name: String { given.canonical }
  /// The value before anything is set.
  public let defaultValue: Value
  /// Whether all of the player's devices share the value. If so, the value set last holds.
  public let isSynced: Bool
  @usableFromInline let coding: any PreferenceCoding<Value>.Type

  @inlinable
  init(_ name: String, _ value: Value, _ isSynced: Bool, _ coding: any PreferenceCoding<Value>.Type) {
    given = name
    defaultValue = value
    self.isSynced = isSynced
    self.coding = coding
  }
}

// The initialisers are ordered from the best fit for a type to the worst: the compiler prefers one without
// `@_disfavoredOverload` where it can.
extension PreferenceKey where Value: PreferenceValue {
  /// Creates a key for a simple value.
  ///
  /// - Parameters:
  ///   - name: At most `maximumNameBytes` bytes.
  ///   - value: The value before anything is set.
  ///   - isSynced: Whether all of the player's devices share it.
  @inlinable
  public init(_ name: String, default value: Value, synced isSynced: Bool = false) {
    self.init(name, value, isSynced, ScalarCoding<Value>.self)
  }
}

extension PreferenceKey where Value: Archivable {
  /// Creates a key whose value is stored as `Archive` encodes it: fields can be added and removed later.
  ///
  /// - Parameters:
  ///   - name: At most `maximumNameBytes` bytes.
  ///   - value: The value before anything is set.
  ///   - isSynced: Whether all of the player's devices share it.
  public init(_ name: String, default value: Value, synced isSynced: Bool = false) {
    self.init(name, value, isSynced, ArchiveCoding<Value>.self)
  }
}

extension PreferenceKey where Value: Codable {
  /// Creates a key whose value is stored as `Coded` describes.
  ///
  /// - Parameters:
  ///   - name: At most `maximumNameBytes` bytes.
  ///   - value: The value before anything is set.
  ///   - isSynced: Whether all of the player's devices share it.
  @_disfavoredOverload
  public init(_ name: String, default value: Value, synced isSynced: Bool = false) {
    self.init(name, value, isSynced, CodableCoding<Value>.self)
  }
}

extension PreferenceKey where Value: RawRepresentable, Value.RawValue: PreferenceValue {
  /// Creates a key whose raw value is stored. A raw value that this program doesn't know gives the default, with an
  /// incident, until the preference is set.
  ///
  /// - Parameters:
  ///   - name: At most `maximumNameBytes` bytes.
  ///   - value: The value before anything is set.
  ///   - isSynced: Whether all of the player's devices share it.
  @_disfavoredOverload
  public init(_ name: String, default value: Value, synced isSynced: Bool = false) {
    self.init(name, value, isSynced, RawCoding<Value>.self)
  }
}

extension PreferenceKey where Value: RawRepresentable & Codable, Value.RawValue: PreferenceValue {
  /// Creates a key whose raw value is stored.
  ///
  /// - Parameters:
  ///   - name: At most `maximumNameBytes` bytes.
  ///   - value: The value before anything is set.
  ///   - isSynced: Whether all of the player's devices share it.
  @_disfavoredOverload
  public init(_ name: String, default value: Value, synced isSynced: Bool = false) {
    self.init(name, value, isSynced, RawCoding<Value>.self)
  }
}

extension PreferenceKey {
  /// Creates a key whose raw value is stored, or the fact that there is none.
  ///
  /// - Parameters:
  ///   - name: At most `maximumNameBytes` bytes.
  ///   - value: The value before anything is set.
  ///   - isSynced: Whether all of the player's devices share it.
  @_disfavoredOverload
  public init<Wrapped: RawRepresentable & Sendable>(
    _ name: String, default value: Wrapped?, synced isSynced: Bool = false
  ) where Value == Wrapped?, Wrapped.RawValue: PreferenceValue {
    self.init(name, value, isSynced, OptionalRawCoding<Wrapped>.self)
  }

  /// Creates a key whose raw value is stored, or the fact that there is none.
  ///
  /// - Parameters:
  ///   - name: At most `maximumNameBytes` bytes.
  ///   - value: The value before anything is set.
  ///   - isSynced: Whether all of the player's devices share it.
  @_disfavoredOverload
  public init<Wrapped: RawRepresentable & Codable & Sendable>(
    _ name: String, default value: Wrapped?, synced isSynced: Bool = false
  ) where Value == Wrapped?, Wrapped.RawValue: PreferenceValue {
    self.init(name, value, isSynced, OptionalRawCoding<Wrapped>.self)
  }

  /// Creates a key whose raw values are stored.
  ///
  /// - Parameters:
  ///   - name: At most `maximumNameBytes` bytes.
  ///   - value: The value before anything is set.
  ///   - isSynced: Whether all of the player's devices share it.
  @_disfavoredOverload
  public init<Element: RawRepresentable & Sendable>(
    _ name: String, default value: [Element], synced isSynced: Bool = false
  ) where Value == [Element], Element.RawValue: PreferenceValue {
    self.init(name, value, isSynced, RawListCoding<Element>.self)
  }

  /// Creates a key whose raw values are stored.
  ///
  /// - Parameters:
  ///   - name: At most `maximumNameBytes` bytes.
  ///   - value: The value before anything is set.
  ///   - isSynced: Whether all of the player's devices share it.
  @_disfavoredOverload
  public init<Element: RawRepresentable & Codable & Sendable>(
    _ name: String, default value: [Element], synced isSynced: Bool = false
  ) where Value == [Element], Element.RawValue: PreferenceValue {
    self.init(name, value, isSynced, RawListCoding<Element>.self)
  }

  /// Not available: a preference needs a type that can be stored.
  ///
  /// - Parameters:
  ///   - name: The key's name.
  ///   - value: The value before anything is set.
  ///   - isSynced: Whether all of the player's devices share it.
  @available(
    *, unavailable,
    message: """
      a preference's type must be a Boolean, a number, text, bytes, a date or a URL, have such a raw value, or be \
      Codable or @Archivable
      """
  )
  @_disfavoredOverload
  public init(_ name: String, default value: Value, synced isSynced: Bool = false) {
    preconditionFailure("a preference's type must be one that can be stored")
  }
}
