import Foundation
public import KeepsakeInterchange

/// A rule for importing one value of an old game's `UserDefaults`, or of its key-value store in iCloud, as a preference
/// or as progress.
///
/// ```swift
/// let rules: [DefaultsRule] = [
///   .init("SoundVolume", as: .volume),
///   .init("HardMode", as: .difficulty) { $0.bool == true ? .hard : .normal },
/// ]
/// ```
public struct DefaultsRule: Sendable {
  enum Outcome {
    case taken
    /// The preference already had a value, which was kept.
    case kept
  }

  /// The key in the property list.
  public let name: String
  let take: @Sendable (_ value: PropertyList, _ preferences: Preferences, _ isReplacing: Bool) throws -> Outcome

  /// Imports the value as the preference's type.
  ///
  /// A number becomes any number type that can hold it, 0 and 1 become Booleans, raw values become their cases, and
  /// lists and dictionaries are decoded if possible.
  ///
  /// - Parameters:
  ///   - name: The key in the property list.
  ///   - key: The preference.
  public init<Value>(_ name: String, as key: PreferenceKey<Value>) {
    self.init(name, as: key) { try DefaultsValue.value(of: $0, as: Value.self, key.coding) }
  }

  /// Imports the result of a function of the value.
  ///
  /// - Parameters:
  ///   - name: The key in the property list.
  ///   - key: The preference.
  ///   - read: Converts the value. If it throws or returns nil, the report lists the key and the preference isn't
  ///     changed.
  public init<Value>(
    _ name: String, as key: PreferenceKey<Value>, _ read: @escaping @Sendable (PropertyList) throws -> Value?
  ) {
    self.name = name
    take = { value, preferences, isReplacing in
      guard isReplacing || !preferences.contains(key) else { return .kept }
      guard let value = try read(value) else {
        throw PropertyListError(.mismatch, "The rule returned nothing for this value")
      }
      try preferences.set(value, for: key)
      return .taken
    }
  }

  /// Imports the value as progress: what an older game counted, reached or unlocked.
  ///
  /// ```swift
  /// let rules: [DefaultsRule] = [
  ///   .init("BestLevel", as: .bestLevel, in: game.progress),
  ///   .init("Badges", as: .badges, in: game.progress),
  /// ]
  /// ```
  ///
  /// Progress is joined by its key's rule, so what the player has reached since is never lost, whatever `isReplacing`
  /// says, and each device may import the same once more. A `latest` value and a `set` are kept if there is one. A
  /// `counter` isn't imported, since every device would count it again: add it yourself on one device. After a reset,
  /// an import brings the old value back.
  ///
  /// - Parameters:
  ///   - name: The key in the property list.
  ///   - key: The key of the progress.
  ///   - progress: The game's progress.
  public init<Value: Decodable>(_ name: String, as key: ProgressKey<Value>, in progress: ProgressStore) {
    self.name = name
    take = { value, _, _ in
      let verbs = key.rule.verbs
      guard let verb = [ProgressVerb.record, .insert, .set].first(where: verbs.contains) else {
        throw PropertyListError(
          .mismatch, "\"\(key.name)\" is a counter, and every device that imports the value would count it again")
      }
      // What the player has chosen or removed since would come back.
      if verb == .set || verbs.contains(.remove), progress.contains(key) { return .kept }
      _ = try progress.perform(key.draft(verb, value.decode(Value.self)))
      return .taken
    }
  }
}

/// The result of an import of old settings. Every key of the file is in one of the lists.
public struct DefaultsReport: Sendable, Equatable {
  /// A value that was not imported, and why.
  public struct Unfit: Sendable, Equatable {
    /// The key in the old file.
    public var name: String
    /// A sentence for people.
    public var reason: String
  }

  /// Keys whose values were imported.
  public internal(set) var taken: [String] = []
  /// Keys whose preferences already had a value, which was kept.
  public internal(set) var kept: [String] = []
  /// Keys whose values don't fit. Nothing was set.
  public internal(set) var unfit: [Unfit] = []
  /// Keys of the file without a rule.
  public internal(set) var others: [String] = []
  /// Keys of rules that aren't in the file.
  public internal(set) var missing: [String] = []
}

/// Conversion of property list values to preference values.
enum DefaultsValue {
  static func value<Value: Sendable>(
    of list: PropertyList, as type: Value.Type, _ coding: any PreferenceCoding<Value>.Type
  ) throws -> Value {
    for scalar in scalars(of: list) {
      if let value = coding.value(of: scalar) { return value }
    }
    func decodeArchivable<A: Archivable>(_ type: A.Type) throws -> Any { try list.decode(type) }
    func decodeCodable<D: Decodable>(_ type: D.Type) throws -> Any { try list.decode(type) }
    var decoded: Any?
    if let type = type as? any Archivable.Type {
      decoded = try decodeArchivable(type)
    } else if let type = type as? any Decodable.Type {
      decoded = try decodeCodable(type)
    }
    guard let value = decoded as? Value else {
      throw PropertyListError(.mismatch, "The value isn't of the type \(type)")
    }
    return value
  }

  /// Returns every simple preference value that the property list value may represent. A type accepts only one
  /// kind of them; whole-number types accept both kinds of whole numbers, which are equal.
  private static func scalars(of list: PropertyList) -> [PreferenceScalar] {
    switch list {
    case .bool(let value): return [.bool(value)]
    case .integer(let value):
      let flag: [PreferenceScalar] = value == 0 || value == 1 ? [.bool(value == 1)] : []
      let whole = Int64(exactly: value).map { [PreferenceScalar.int($0)] } ?? []
      let unsigned = UInt64(exactly: value).map { [PreferenceScalar.unsigned($0)] } ?? []
      let number = Double(exactly: value).map { [PreferenceScalar.double($0)] } ?? []
      return whole + unsigned + number + (Float(exactly: value).map { [.float($0)] } ?? []) + flag
    case .number(let value):
      // As a Float, the number may lose digits. A number that a Float can't hold isn't offered as one.
      let narrow: [PreferenceScalar] = Float(value).isFinite || !value.isFinite ? [.float(Float(value))] : []
      return [.double(value)] + narrow + (Int64(exactly: value).map { [.int($0)] } ?? [])
    case .float(let value):
      return [.float(value), .double(Double(value))] + (Int64(exactly: value).map { [.int($0)] } ?? [])
    case .string(let value): return [.string(value)]
    case .data(let value): return [.data(value)]
    case .date(let value): return [.date(value)]
    default: return []
    }
  }

  /// Returns the value for a preference of unknown type: a simple value, or a list or dictionary of such values of one
  /// kind.
  static func content(of list: PropertyList) throws -> PreferenceContent {
    switch list {
    case .array(let elements): return .bytes(try archive(of: elements, { try encode($0, as: $1) }))
    case .dictionary(let entries):
      let names = entries.map(\.key)
      return .bytes(
        try archive(of: entries.map(\.value)) { values, type in try encode(values, under: names, as: type) })
    default:
      guard let scalar = scalars(of: list).first else {
        throw PropertyListError(.mismatch, "Preferences don't support a value of this kind: write a rule for it")
      }
      return .scalar(scalar)
    }
  }

  private static func archive(
    of values: [PropertyList], _ encode: ([PropertyList], any (Archivable & Decodable).Type) throws -> Data
  ) throws -> Data {
    // The first type that fits all of them: whole numbers are numbers, too, and never Booleans.
    for type in [Bool.self, Int.self, Double.self, String.self, Date.self, Data.self]
      as [any (Archivable & Decodable).Type]
    where values.allSatisfy({ isNatural($0, as: type) }) {
      return try encode(values, type)
    }
    throw PropertyListError(
      .mismatch, "Its values are of different kinds, or contain other values: write a rule for it")
  }

  private static func isNatural(_ value: PropertyList, as type: Any.Type) -> Bool {
    switch value {
    case .bool: type == Bool.self
    case .integer(let number):
      type == Int.self && Int(exactly: number) != nil || type == Double.self && Double(exactly: number) != nil
    case .number, .float: type == Double.self
    case .string: type == String.self
    case .date: type == Date.self
    case .data: type == Data.self
    default: false
    }
  }

  private static func encode(_ values: [PropertyList], as type: any (Archivable & Decodable).Type) throws -> Data {
    func open<T: Archivable & Decodable>(_: T.Type) throws -> Data {
      try Archive.encode(try values.map { try $0.decode(T.self) })
    }
    return try open(type)
  }

  private static func encode(
    _ values: [PropertyList], under names: [String], as type: any (Archivable & Decodable).Type
  ) throws -> Data {
    func open<T: Archivable & Decodable>(_: T.Type) throws -> Data {
      try Archive.encode(
        Dictionary(zip(names, try values.map { try $0.decode(T.self) }), uniquingKeysWith: { _, last in last }))
    }
    return try open(type)
  }
}
