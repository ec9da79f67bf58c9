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

  public static func int(_ value: Int64) -> Self { Self(.int(value)) }
  public static func double(_ value: Double) -> Self { Self(.double(value)) }
  public static func string(_ value: String) -> Self { Self(.string(value)) }
  public static func data(_ value: Data) -> Self { Self(.data(value)) }

  /// The whole number that it is, if it is one; likewise below. A whole number can be read as a `double`, too.
  public var int: Int64? {
    if case .int(let value) = scalar { return value }
    return nil
  }
  public var double: Double? {
    switch scalar {
    case .double(let value): value
    case .int(let value): Double(value)
    default: nil
    }
  }
  public var string: String? {
    if case .string(let value) = scalar { return value }
    return nil
  }
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
///
/// The rule says how two devices' values are joined, and it never changes under a name: take a new name instead.
public struct ProgressKey<Value: Sendable & Hashable>: Sendable {
  /// The most bytes of a name; control characters are refused too.
  public static var maximumNameBytes: Int { ExchangeRules.maximumKeyBytes }

  enum Rule: Sendable { case max, min, latest, union, counter }

  /// The key's name, on every device.
  public let name: String
  /// What the value is before anything was recorded.
  public let defaultValue: Value
  let rule: Rule
  /// The scalar to record; for sets, the elements.
  let scalars: @Sendable (Value) -> [Scalar]
  /// The value of a cell; nil if it holds another kind.
  let value: @Sendable (CellValue) -> Value?

  var key: CellKey { CellKey(collection: ProgressStore.collection, key: name) }
}

extension ProgressKey where Value: ProgressValue {
  /// The greatest value ever recorded, on any device: a level reached.
  public static func max(_ name: String, default value: Value) -> Self { scalar(name, value, .max) }

  /// The smallest value ever recorded: a fastest time.
  public static func min(_ name: String, default value: Value) -> Self { scalar(name, value, .min) }

  /// The value set last: only for what has no order, like a name or a chosen hat.
  public static func latest(_ name: String, default value: Value) -> Self { scalar(name, value, .latest) }

  private static func scalar(_ name: String, _ value: Value, _ rule: Rule) -> Self {
    Self(
      name: name.canonical, defaultValue: value, rule: rule, scalars: { [$0.progressScalar.scalar] },
      value: { cell in
        switch cell {
        case .max(let scalar), .min(let scalar), .latest(_, let scalar): Value(progressScalar: ProgressScalar(scalar))
        case .union, .counter, .best: nil
        }
      })
  }
}

extension ProgressKey {
  /// A set that only grows: badges, levels cleared, hints seen.
  public static func union<Element: ProgressValue>(_ name: String) -> Self where Value == Set<Element> {
    Self(
      name: name.canonical, defaultValue: [], rule: .union, scalars: { $0.map(\.progressScalar.scalar) },
      value: { cell in
        guard case .union(let scalars) = cell else { return nil }
        return Set(scalars.compactMap { Element(progressScalar: ProgressScalar($0)) })
      })
  }

  /// A count that every device adds to: enemies met, coins found. It may go down too, but it guards nothing: money belongs
  /// into the wallet.
  public static func counter(_ name: String) -> Self where Value == Int {
    Self(
      name: name.canonical, defaultValue: 0, rule: .counter, scalars: { [.int(Int64($0))] },
      value: { cell in
        guard case .counter(let entries) = cell else { return nil }
        return Int(clamping: CellValue.total(of: entries))
      })
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
