public import Foundation
import KeepsakeReplication

/// A value that a key of `progress` can hold.
public protocol ProgressValue: Sendable, Hashable {
  /// The value as it is kept.
  var progressScalar: ProgressScalar { get }
  /// Nil if the scalar is of another kind, as a newer game may have written it.
  init?(progressScalar: ProgressScalar)
}

/// The form in which values of `progress` are kept, compared and sent.
public struct ProgressScalar: Sendable, Hashable {
  package let scalar: Scalar

  package init(_ scalar: Scalar) { self.scalar = scalar }

  /// A whole number.
  public static func int(_ value: Int64) -> Self { Self(.int(value)) }
  /// A number.
  public static func double(_ value: Double) -> Self { Self(.double(value)) }
  /// A text.
  public static func string(_ value: String) -> Self { Self(.string(value)) }
  /// Bytes.
  public static func data(_ value: Data) -> Self { Self(.data(value)) }

  /// The whole number that it is, if it is one; likewise below. A whole number can be read as a `double`, too.
  public var int: Int64? {
    if case .int(let value) = scalar { return value }
    return nil
  }
  /// The number that it is, if it is one. A whole number counts as one.
  public var double: Double? {
    switch scalar {
    case .double(let value): value
    case .int(let value): Double(value)
    default: nil
    }
  }
  /// The text that it is, if it is one.
  public var string: String? {
    if case .string(let value) = scalar { return value }
    return nil
  }
  /// The bytes that it is, if it is bytes.
  public var data: Data? {
    if case .data(let value) = scalar { return value }
    return nil
  }
}

/// One value of a player's progress: its name, its type, its rule and what it is before anything was recorded.
///
///     extension ProgressKey<Int> { static var level: Self { .max("level", default: 1) } }
///     extension ProgressKey<Set<String>> { static var badges: Self { .union("badges") } }
///     extension ProgressKey<Int> { static var coinsFound: Self { .counter("coins found") } }
///     extension ProgressKey<[String: Int]> { static var bestTimes: Self { .dictionary("best times", of: .min) } }
///
/// The rule says how two devices' values are joined, and it never changes under a name: take a new name instead. <doc:Progress> says which
/// rule is for what, and what each costs.
public struct ProgressKey<Value: Sendable & Hashable>: Sendable {
  /// The most bytes of a name; control characters are refused too.
  public static var maximumNameBytes: Int { ExchangeRules.maximumKeyBytes }

  /// The key's name, on every device.
  public let name: String
  /// What the value is before anything was recorded.
  public let defaultValue: Value
  let rule: ProgressRule<Value>
  /// Of keys whose place it took.
  var earlier: EarlierKey?

  var key: CellKey { CellKey(collection: ProgressStore.collection, key: name) }

  private init(_ name: String, default value: Value, _ rule: ProgressRule<Value>) {
    self.name = name.canonical
    defaultValue = value
    self.rule = rule
  }
}

extension ProgressKey where Value: ProgressValue {
  /// The greatest value ever recorded, on any device: a level reached.
  public static func max(_ name: String, default value: Value) -> Self { Self(name, default: value, .max) }

  /// The smallest value ever recorded: a fastest time.
  public static func min(_ name: String, default value: Value) -> Self { Self(name, default: value, .min) }

  /// The value set last: only for what has no order, like a name or a chosen hat.
  public static func latest(_ name: String, default value: Value) -> Self { Self(name, default: value, .latest) }
}

extension ProgressKey {
  /// A set that only grows: badges, levels cleared, hints seen.
  public static func union<Element: ProgressValue>(_ name: String) -> Self where Value == Set<Element> {
    Self(name, default: [], .union())
  }

  /// A set whose elements can be taken out again: favourites, what is equipped, quests under way.
  ///
  /// An element is gone once it is removed, on every device. It stays only where another device put it in meanwhile: an insertion wins
  /// over a removal by somebody who hadn't seen it. To insert what is in already is no insertion.
  public static func set<Element: ProgressValue>(_ name: String) -> Self where Value == Set<Element> {
    Self(name, default: [], .set())
  }

  /// A count that every device adds to: enemies met, coins found. It may go down too, but it guards nothing: money belongs
  /// into the wallet.
  public static func counter(_ name: String) -> Self where Value == Int { Self(name, default: 0, .counter) }

  /// Values by name, each joined by the same rule: the best time of each level, how often each enemy was met, which of each world's stars
  /// were found.
  ///
  ///     extension ProgressKey<[String: Int]> { static var bestTimes: Self { .dictionary("best times", of: .min) } }
  ///     try game.progress.record(61, at: "cave", for: .bestTimes)
  ///     game.progress[.bestTimes, at: "cave"]
  ///
  /// What was written under a name stays until the whole key is reset.
  public static func dictionary<Key: ProgressValue, Entry>(
    _ name: String, of rule: ProgressRule<Entry>
  ) -> Self where Value == [Key: Entry] {
    Self(name, default: [:], .dictionary(of: rule))
  }

  /// A value that is nil until something is recorded, and again after a reset to nil: when the game was first won. Nil never takes a value
  /// back.
  public static func optional<Wrapped: ProgressValue>(
    _ name: String, of rule: ProgressRule<Wrapped>
  ) -> Self where Value == Wrapped? {
    Self(name, default: nil, .optional(of: rule))
  }
}

extension Int: ProgressValue {
  public var progressScalar: ProgressScalar { .int(Int64(self)) }
  public init?(progressScalar: ProgressScalar) {
    guard let value = progressScalar.int else { return nil }
    self.init(exactly: value)
  }
}

extension Double: ProgressValue {
  public var progressScalar: ProgressScalar { .double(self) }
  public init?(progressScalar: ProgressScalar) {
    guard let value = progressScalar.double else { return nil }
    self = value
  }
}

extension String: ProgressValue {
  public var progressScalar: ProgressScalar { .string(self) }
  public init?(progressScalar: ProgressScalar) {
    guard let value = progressScalar.string else { return nil }
    self = value
  }
}

extension Bool: ProgressValue {
  public var progressScalar: ProgressScalar { .int(self ? 1 : 0) }
  public init?(progressScalar: ProgressScalar) {
    guard let value = progressScalar.int else { return nil }
    self = value != 0
  }
}

extension Data: ProgressValue {
  public var progressScalar: ProgressScalar { .data(self) }
  public init?(progressScalar: ProgressScalar) {
    guard let value = progressScalar.data else { return nil }
    self = value
  }
}
