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

  init(_ name: String, default value: Value, _ rule: ProgressRule<Value>) {
    self.name = name.canonical
    defaultValue = value
    self.rule = rule
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
