public import Foundation
import KeepsakeReplication

/// A value that a key of `progress` can hold.
public protocol ProgressValue: Sendable, Hashable {
  /// The value as it is kept.
  var progressScalar: ProgressScalar { get }
  /// Nil if the scalar is of another kind, as a newer game may have written it.
  init?(progressScalar: ProgressScalar)
}

/// The form in which values of `progress` are stored, compared and sent.
public struct ProgressScalar: Sendable, Hashable {
  package let scalar: Scalar

  package init(_ scalar: Scalar) { self.scalar = scalar }

  public static func int(_ value: Int64) -> Self { Self(.int(value)) }
  public static func double(_ value: Double) -> Self { Self(.double(value)) }
  public static func string(_ value: String) -> Self { Self(.string(value)) }
  public static func data(_ value: Data) -> Self { Self(.data(value)) }

  /// The whole number, if it is one; nil otherwise.
  public var int: Int64? {
    if case .int(let value) = scalar { return value }
    return nil
  }
  /// The number, if it is a number, whole ones included; nil otherwise.
  public var double: Double? {
    switch scalar {
    case .double(let value): value
    case .int(let value): Double(value)
    default: nil
    }
  }
  /// The text, if it is text; nil otherwise.
  public var string: String? {
    if case .string(let value) = scalar { return value }
    return nil
  }
  /// The bytes, if it is data; nil otherwise.
  public var data: Data? {
    if case .data(let value) = scalar { return value }
    return nil
  }
}

/// A value of a player's progress: its name, type, merge rule and default.
///
/// ```swift
/// extension ProgressKey<Int> { static var level: Self { .max("level", default: 1) } }
/// extension ProgressKey<Set<String>> { static var badges: Self { .union("badges") } }
/// extension ProgressKey<Int> { static var coinsFound: Self { .counter("coins found") } }
/// extension ProgressKey<[String: Int]> { static var bestTimes: Self { .dictionary("best times", of: .min) } }
/// ```
///
/// The rule says how the values of two devices are joined. It must not change under a name: choose a new name instead.
/// <doc:Progress> describes the rules and their costs.
public struct ProgressKey<Value: Sendable & Hashable>: Sendable {
  /// The greatest length of a name, in bytes of UTF-8. Control characters are refused too.
  public static var maximumNameBytes: Int { ExchangeRules.maximumKeyBytes }

  /// The key's name, the same on every device.
  public let name: String
  /// The value before anything was recorded.
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
  /// The greatest value ever recorded on any device, such as a level reached.
  ///
  /// - Parameters:
  ///   - name: The key's name.
  ///   - value: The value before anything was recorded.
  public static func max(_ name: String, default value: Value) -> Self { Self(name, default: value, .max) }

  /// The smallest value ever recorded on any device, such as a fastest time.
  ///
  /// - Parameters:
  ///   - name: The key's name.
  ///   - value: The value before anything was recorded.
  public static func min(_ name: String, default value: Value) -> Self { Self(name, default: value, .min) }

  /// The value that was set last. Only for values without an order, such as a name or a chosen hat.
  ///
  /// - Parameters:
  ///   - name: The key's name.
  ///   - value: The value before anything was recorded.
  public static func latest(_ name: String, default value: Value) -> Self { Self(name, default: value, .latest) }
}

extension ProgressKey {
  /// A set that only grows: badges, completed levels, hints seen.
  ///
  /// - Parameter name: The key's name.
  public static func union<Element: ProgressValue>(_ name: String) -> Self where Value == Set<Element> {
    Self(name, default: [], .union())
  }

  /// A set whose elements can be removed: favourites, equipment, current quests.
  ///
  /// Removing an element removes it on every device, unless another device has inserted it in the meantime: an
  /// insertion wins over a removal that didn't know of it. Inserting an element that is already in the set changes
  /// nothing.
  ///
  /// - Parameter name: The key's name.
  public static func set<Element: ProgressValue>(_ name: String) -> Self where Value == Set<Element> {
    Self(name, default: [], .set())
  }

  /// A count that every device adds to: enemies met, coins found. It may go down too, but isn't limited: keep money in
  /// the wallet.
  ///
  /// - Parameter name: The key's name.
  public static func counter(_ name: String) -> Self where Value == Int { Self(name, default: 0, .counter) }

  /// Values by name, each joined by the same rule: the best time of each level, how often each enemy was met.
  ///
  /// ```swift
  /// extension ProgressKey<[String: Int]> { static var bestTimes: Self { .dictionary("best times", of: .min) } }
  /// try game.progress.record(61, at: "cave", for: .bestTimes)
  /// game.progress[.bestTimes, at: "cave"]
  /// ```
  ///
  /// A value stays until the whole key is reset.
  ///
  /// - Parameters:
  ///   - name: The key's name.
  ///   - rule: The rule for each value.
  public static func dictionary<Key: ProgressValue, Entry>(
    _ name: String, of rule: ProgressRule<Entry>
  ) -> Self where Value == [Key: Entry] {
    Self(name, default: [:], .dictionary(of: rule))
  }

  /// A value that is nil until something is recorded, and after a reset to nil: when the game was first won. Setting
  /// nil otherwise has no effect.
  ///
  /// - Parameters:
  ///   - name: The key's name.
  ///   - rule: The rule for the value.
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
