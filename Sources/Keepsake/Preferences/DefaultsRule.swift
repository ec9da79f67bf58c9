import Foundation
public import KeepsakeInterchange

/// Which value of an old game's `UserDefaults` becomes which preference.
///
///     let rules: [DefaultsRule] = [
///       .init("SoundVolume", as: .volume),
///       .init("HardMode", as: .difficulty) { $0.bool == true ? .hard : .normal },
///     ]
public struct DefaultsRule: Sendable {
  enum Outcome {
    case taken
    /// The preference has a value.
    case kept
  }

  /// The key in the property list.
  public let name: String
  let take: @Sendable (_ value: PropertyList, _ preferences: Preferences, _ isReplacing: Bool) throws -> Outcome

  /// Takes the value as the preference's type has it: a number as any number that holds it, 0 and 1 as a truth value, a raw value as its case, lists and dictionaries as whatever can
  /// be decoded of them.
  public init<Value>(_ name: String, as key: PreferenceKey<Value>) {
    self.init(name, as: key) { try DefaultsValue.value(of: $0, as: Value.self, key.coding) }
  }

  /// Takes what `read` makes of the value. What it throws, and nil, are told in the report; the preference stays as it is then.
  public init<Value>(_ name: String, as key: PreferenceKey<Value>, _ read: @escaping @Sendable (PropertyList) throws -> Value?) {
    self.name = name
    take = { value, preferences, isReplacing in
      guard isReplacing || !preferences.contains(key) else { return .kept }
      guard let value = try read(value) else { throw PropertyListError(.mismatch, "Nothing is made of this value") }
      try preferences.set(value, for: key)
      return .taken
    }
  }
}

/// What became of each value of an old game's settings. Every key of the file is in one of the lists.
public struct DefaultsReport: Sendable, Equatable {
  /// A value that is no preference now, and why.
  public struct Unfit: Sendable, Equatable {
    /// The key in the old file.
    public var name: String
    /// A sentence for people.
    public var reason: String
  }

  /// Keys in the file whose values are preferences now.
  public internal(set) var taken: [String] = []
  /// Those whose preferences had a value already, which stays.
  public internal(set) var kept: [String] = []
  /// Those whose values don't fit. Nothing was set.
  public internal(set) var unfit: [Unfit] = []
  /// Keys in the file that nobody asked for.
  public internal(set) var others: [String] = []
  /// Keys that were asked for and aren't in the file.
  public internal(set) var missing: [String] = []
}

/// Values of property lists as those of preferences.
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
    guard let value = decoded as? Value else { throw PropertyListError(.mismatch, "The value is no \(type)") }
    return value
  }

  /// All that a value may be as a simple preference: whoever takes one takes no other kind.
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
      // Digits that a Float lacks are lost to whoever asks for one; a number that it can't hold isn't.
      let narrow: [PreferenceScalar] = Float(value).isFinite || !value.isFinite ? [.float(Float(value))] : []
      return [.double(value)] + narrow + (Int64(exactly: value).map { [.int($0)] } ?? [])
    case .float(let value): return [.float(value), .double(Double(value))] + (Int64(exactly: value).map { [.int($0)] } ?? [])
    case .string(let value): return [.string(value)]
    case .data(let value): return [.data(value)]
    case .date(let value): return [.date(value)]
    default: return []
    }
  }

  /// As a preference whose type nobody said: a simple value, or a list or dictionary of such values of one kind.
  static func content(of list: PropertyList) throws -> PreferenceContent {
    switch list {
    case .array(let elements): return .bytes(try archive(of: elements, { try encode($0, as: $1) }))
    case .dictionary(let entries):
      let names = entries.map(\.key)
      return .bytes(
        try archive(of: entries.map(\.value)) { values, type in try encode(values, under: names, as: type) })
    default:
      guard let scalar = scalars(of: list).first else {
        throw PropertyListError(.mismatch, "There is no preference of this kind: give it a rule of its own")
      }
      return .scalar(scalar)
    }
  }

  private static func archive(
    of values: [PropertyList], _ encode: ([PropertyList], any (Archivable & Decodable).Type) throws -> Data
  ) throws -> Data {
    // The first that all of them fit: whole numbers are numbers, too, and never flags.
    for type in [Bool.self, Int.self, Double.self, String.self, Date.self, Data.self] as [any (Archivable & Decodable).Type]
    where values.allSatisfy({ isNatural($0, as: type) }) {
      return try encode(values, type)
    }
    throw PropertyListError(.mismatch, "Its values are of different kinds, or have others inside: give it a rule of its own")
  }

  private static func isNatural(_ value: PropertyList, as type: Any.Type) -> Bool {
    switch value {
    case .bool: type == Bool.self
    case .integer(let number): type == Int.self && Int(exactly: number) != nil || type == Double.self && Double(exactly: number) != nil
    case .number, .float: type == Double.self
    case .string: type == String.self
    case .date: type == Date.self
    case .data: type == Data.self
    default: false
    }
  }

  private static func encode(_ values: [PropertyList], as type: any (Archivable & Decodable).Type) throws -> Data {
    func open<T: Archivable & Decodable>(_: T.Type) throws -> Data { try Archive.encode(try values.map { try $0.decode(T.self) }) }
    return try open(type)
  }

  private static func encode(_ values: [PropertyList], under names: [String], as type: any (Archivable & Decodable).Type) throws -> Data {
    func open<T: Archivable & Decodable>(_: T.Type) throws -> Data {
      try Archive.encode(Dictionary(zip(names, try values.map { try $0.decode(T.self) }), uniquingKeysWith: { _, last in last }))
    }
    return try open(type)
  }
}
