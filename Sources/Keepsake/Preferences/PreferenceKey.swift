import KeepsakeReplication

/// One of a player's settings: its name, its type, what it is before anything was set, and whether other devices have it too.
///
///     extension PreferenceKey<Double> { static var volume: Self { PreferenceKey("volume", default: 0.8) } }
///     extension PreferenceKey<Difficulty> { static var difficulty: Self { PreferenceKey("difficulty", default: .normal, synced: true) } }
///
/// The value may be a truth value, a number, text, bytes, a date or a URL; an enum or another type with such a raw value; an optional or
/// an array of these; whatever is `Archivable`; and whatever is `Codable`. It has to be `Sendable`, because any thread may ask for it.
///
/// In a file that imports SwiftUI, which has a protocol of this name, write `Keepsake.PreferenceKey`.
///
/// The default lives here alone. It is never stored or sent, so a later release may give another one to whoever never chose.
///
/// A name is either this device's (the default) or synced, for ever. The two are kept in different places: where a later release
/// declares a name the other way, nobody's value is sent, changed or taken away; its key finds nothing, gives its default, and an incident
/// says so. Take a new name instead. Nor does the type change under a name, but for numbers that become wider: what can't be read as
/// the key's type is the default, with an incident.
public struct PreferenceKey<Value: Sendable>: Sendable {
  /// The most bytes of a name; control characters are refused too.
  public static var maximumNameBytes: Int { ExchangeRules.maximumKeyBytes }

  /// As it was given: a key is made at each use, so nothing is done with it.
  @usableFromInline let given: String
  /// The key's name, in Unicode's form NFC.
  public var name: String { given.canonical }
  /// What the value is before anything was set.
  public let defaultValue: Value
  /// Whether the value is the same on all of the player's devices: the one set last.
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

// The first that fits a type is the best for it; the compiler takes an initialiser without `@_disfavoredOverload` where it can.
extension PreferenceKey where Value: PreferenceValue {
  /// - Parameters:
  ///   - name: Up to `maximumNameBytes` bytes.
  ///   - value: What it is before anything was set.
  ///   - isSynced: Whether all of the player's devices have it.
  @inlinable
  public init(_ name: String, default value: Value, synced isSynced: Bool = false) {
    self.init(name, value, isSynced, ScalarCoding<Value>.self)
  }
}

extension PreferenceKey where Value: Archivable {
  /// The value is kept as `Archive` encodes it: fields may come and go.
  public init(_ name: String, default value: Value, synced isSynced: Bool = false) {
    self.init(name, value, isSynced, ArchiveCoding<Value>.self)
  }
}

extension PreferenceKey where Value: Codable {
  /// The value is kept as `Coded` says.
  @_disfavoredOverload
  public init(_ name: String, default value: Value, synced isSynced: Bool = false) {
    self.init(name, value, isSynced, CodableCoding<Value>.self)
  }
}

extension PreferenceKey where Value: RawRepresentable, Value.RawValue: PreferenceValue {
  /// The raw value is kept. One that this program doesn't know is the default, with an incident, until it is set.
  @_disfavoredOverload
  public init(_ name: String, default value: Value, synced isSynced: Bool = false) {
    self.init(name, value, isSynced, RawCoding<Value>.self)
  }
}

extension PreferenceKey where Value: RawRepresentable & Codable, Value.RawValue: PreferenceValue {
  /// The raw value is kept.
  @_disfavoredOverload
  public init(_ name: String, default value: Value, synced isSynced: Bool = false) {
    self.init(name, value, isSynced, RawCoding<Value>.self)
  }
}

extension PreferenceKey {
  /// The raw value is kept, or that there is none.
  @_disfavoredOverload
  public init<Wrapped: RawRepresentable & Sendable>(
    _ name: String, default value: Wrapped?, synced isSynced: Bool = false
  ) where Value == Wrapped?, Wrapped.RawValue: PreferenceValue {
    self.init(name, value, isSynced, OptionalRawCoding<Wrapped>.self)
  }

  /// The raw value is kept, or that there is none.
  @_disfavoredOverload
  public init<Wrapped: RawRepresentable & Codable & Sendable>(
    _ name: String, default value: Wrapped?, synced isSynced: Bool = false
  ) where Value == Wrapped?, Wrapped.RawValue: PreferenceValue {
    self.init(name, value, isSynced, OptionalRawCoding<Wrapped>.self)
  }

  /// The raw values are kept.
  @_disfavoredOverload
  public init<Element: RawRepresentable & Sendable>(
    _ name: String, default value: [Element], synced isSynced: Bool = false
  ) where Value == [Element], Element.RawValue: PreferenceValue {
    self.init(name, value, isSynced, RawListCoding<Element>.self)
  }

  /// The raw values are kept.
  @_disfavoredOverload
  public init<Element: RawRepresentable & Codable & Sendable>(
    _ name: String, default value: [Element], synced isSynced: Bool = false
  ) where Value == [Element], Element.RawValue: PreferenceValue {
    self.init(name, value, isSynced, RawListCoding<Element>.self)
  }
}
