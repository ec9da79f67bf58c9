public import Foundation
import KeepsakeReplication

/// A value that a key of `progress` can hold.
public protocol ProgressValue: Sendable, Hashable {
  /// The value as it is kept.
  var progressScalar: ProgressScalar { get }
  /// Creates the value; nil if the scalar is of another kind, as a newer game may have written it.
  ///
  /// - Parameter progressScalar: The value as it is kept.
  init?(progressScalar: ProgressScalar)
}

/// The form in which values of `progress` are stored, compared and sent.
public struct ProgressScalar: Sendable, Hashable {
  package let scalar: Scalar

  package init(_ scalar: Scalar) { self.scalar = scalar }

  /// Makes a whole number.
  ///
  /// - Parameter value: The number.
  /// - Returns: The scalar.
  public static func int(_ value: Int64) -> Self { Self(.int(value)) }

  /// Makes a number.
  ///
  /// - Parameter value: The number. NaN is refused when it is recorded.
  /// - Returns: The scalar.
  public static func double(_ value: Double) -> Self { Self(.double(value)) }

  /// Makes a text.
  ///
  /// - Parameter value: The text.
  /// - Returns: The scalar.
  public static func string(_ value: String) -> Self { Self(.string(value)) }

  /// Makes bytes.
  ///
  /// - Parameter value: The bytes.
  /// - Returns: The scalar.
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
/// extension ProgressKey<Int> {
///   static let level = ProgressKey("level", default: 1, rule: .max)
///   static let coinsFound = ProgressKey("coins found", rule: .counter)
/// }
/// extension ProgressKey<Set<String>> { static let badges = ProgressKey("badges", rule: .union) }
/// extension ProgressKey<[String: Int]> {
///   static let bestTimes = ProgressKey("best times", rule: .dictionary(of: .min))
/// }
/// ```
///
/// The rule determines how the values of two devices are joined. It must not change under a name: choose a new name
/// instead. <doc:Progress> describes the rules and their costs.
public struct ProgressKey<Value: Sendable & Hashable>: Sendable {
  /// The greatest length of a name, in bytes of UTF-8. Control characters are refused too.
  public static var maximumNameBytes: Int { ExchangeRules.maximumKeyBytes }

  /// The key's name, the same on every device.
  public let name: String
  /// The value before anything is recorded.
  public let defaultValue: Value
  let rule: ProgressRule<Value>
  /// The keys that this key replaces.
  var earlier: EarlierKey?

  var key: CellKey { CellKey(collection: ProgressStore.collection, key: name) }

  private init(_ name: String, _ value: Value, _ rule: ProgressRule<Value>) {
    self.name = name.canonical
    defaultValue = value
    self.rule = rule
  }
}

extension ProgressKey where Value: ProgressValue {
  /// Creates a key for one value.
  ///
  /// - Parameters:
  ///   - name: The key's name, at most `maximumNameBytes` bytes.
  ///   - value: The value before anything is recorded.
  ///   - rule: How the values of two devices are joined. Not `counter`, which counts from 0: give it no default.
  public init(_ name: String, default value: Value, rule: ProgressRule<Value>) {
    precondition(!rule.verbs.contains(.add), "the key \"\(name)\" is a counter, which has no other default than 0")
    self.init(name, value, rule)
  }
}

extension ProgressKey where Value == Int {
  /// Creates a key for a number that is 0 before anything is recorded: a counter, most often.
  ///
  /// - Parameters:
  ///   - name: The key's name, at most `maximumNameBytes` bytes.
  ///   - rule: How the numbers of two devices are joined.
  public init(_ name: String, rule: ProgressRule<Value>) { self.init(name, 0, rule) }
}

extension ProgressKey where Value: SetAlgebra & Sequence, Value.Element: ProgressValue {
  /// Creates a key for a set, which is empty before anything is inserted.
  ///
  /// - Parameters:
  ///   - name: The key's name, at most `maximumNameBytes` bytes.
  ///   - rule: `union` or `set`.
  public init(_ name: String, rule: ProgressRule<Value>) { self.init(name, Value(), rule) }
}

extension ProgressKey {
  /// Creates a key for a dictionary, which is empty before anything is recorded.
  ///
  /// - Parameters:
  ///   - name: The key's name, at most `maximumNameBytes` bytes.
  ///   - rule: `dictionary(of:)`.
  public init<Key: ProgressValue, Entry>(_ name: String, rule: ProgressRule<Value>) where Value == [Key: Entry] {
    self.init(name, [:], rule)
  }

  /// Creates a key for an optional, which is nil before anything is recorded.
  ///
  /// - Parameters:
  ///   - name: The key's name, at most `maximumNameBytes` bytes.
  ///   - rule: `optional(of:)`.
  public init<Wrapped: ProgressValue>(_ name: String, rule: ProgressRule<Value>) where Value == Wrapped? {
    self.init(name, nil, rule)
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
