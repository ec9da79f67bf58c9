public import Foundation

/// A value that `Preferences` keeps unencoded until it is committed: a Boolean, a number, text, bytes or a date.
///
/// Setting such a value costs no encoding. Not for a game's own types: any type that is archivable, `Codable`, or has
/// such a value as its raw value can be a preference without it.
public protocol PreferenceValue: Archivable, Sendable {
  /// The value in its in-memory form.
  var preferenceScalar: PreferenceScalar { get }
  /// Creates the value; nil if the form is that of another kind of value, or doesn't fit exactly.
  ///
  /// - Parameter preferenceScalar: The value in its in-memory form.
  init?(preferenceScalar: PreferenceScalar)
}

/// The in-memory form of the simple values of `Preferences`.
public enum PreferenceScalar: Sendable {
  /// A Boolean.
  case bool(Bool)
  /// A whole number of a signed type.
  case int(Int64)
  /// A whole number of an unsigned type.
  case unsigned(UInt64)
  /// A single-precision number.
  case float(Float)
  /// A double-precision number.
  case double(Double)
  /// Text.
  case string(String)
  /// Bytes.
  case data(Data)
  /// A point in time.
  case date(Date)

  /// Whether both are identical to the last bit: NaN equals itself, zero doesn't equal minus zero, and two spellings of
  /// the same text differ.
  func isSame(as other: PreferenceScalar) -> Bool {
    switch (self, other) {
    case (.bool(let left), .bool(let right)): left == right
    case (.int(let left), .int(let right)): left == right
    case (.unsigned(let left), .unsigned(let right)): left == right
    case (.float(let left), .float(let right)): left.bitPattern == right.bitPattern
    case (.double(let left), .double(let right)): left.bitPattern == right.bitPattern
    case (.string(let left), .string(let right)): left == right && left.utf8.elementsEqual(right.utf8)
    case (.data(let left), .data(let right)): left == right
    case (.date(let left), .date(let right)):
      left.timeIntervalSinceReferenceDate.bitPattern == right.timeIntervalSinceReferenceDate.bitPattern
    default: false
    }
  }

  /// Whether both are fixed-size values of the same kind, such as numbers, and so take the same space.
  func isAsLarge(as other: PreferenceScalar) -> Bool {
    switch (self, other) {
    case (.bool, .bool), (.int, .int), (.unsigned, .unsigned), (.float, .float), (.double, .double), (.date, .date):
      true
    default: false
    }
  }

  /// The size of a number or a date in memory.
  private static let fixedBytes = 8

  /// The approximate size of the value in bytes. Computed without encoding it.
  var size: Int {
    switch self {
    case .string(let text): text.utf8.count
    case .data(let data): data.count
    default: Self.fixedBytes
    }
  }

  /// Returns the archive in which the value is stored.
  func encoded() throws -> Data {
    switch self {
    case .bool(let value): try Archive.encode(value)
    case .int(let value): try Archive.encode(value)
    case .unsigned(let value): try Archive.encode(value)
    case .float(let value): try Archive.encode(value)
    case .double(let value): try Archive.encode(value)
    case .string(let value): try Archive.encode(value)
    case .data(let value): try Archive.encode(value)
    case .date(let value): try Archive.encode(value)
    }
  }
}

extension Bool: PreferenceValue {
  @inlinable public var preferenceScalar: PreferenceScalar { .bool(self) }
  public init?(preferenceScalar: PreferenceScalar) {
    guard case .bool(let value) = preferenceScalar else { return nil }
    self = value
  }
}

extension PreferenceValue where Self: FixedWidthInteger {
  @inlinable public var preferenceScalar: PreferenceScalar {
    Self.isSigned ? .int(Int64(truncatingIfNeeded: self)) : .unsigned(UInt64(truncatingIfNeeded: self))
  }

  public init?(preferenceScalar: PreferenceScalar) {
    switch preferenceScalar {
    case .int(let value): self.init(exactly: value)
    case .unsigned(let value): self.init(exactly: value)
    default: return nil
    }
  }
}

extension Int: PreferenceValue {}
extension Int8: PreferenceValue {}
extension Int16: PreferenceValue {}
extension Int32: PreferenceValue {}
extension Int64: PreferenceValue {}
extension UInt: PreferenceValue {}
extension UInt8: PreferenceValue {}
extension UInt16: PreferenceValue {}
extension UInt32: PreferenceValue {}
extension UInt64: PreferenceValue {}

extension Float: PreferenceValue {
  @inlinable public var preferenceScalar: PreferenceScalar { .float(self) }
  public init?(preferenceScalar: PreferenceScalar) {
    guard case .float(let value) = preferenceScalar else { return nil }
    self = value
  }
}

extension Double: PreferenceValue {
  @inlinable public var preferenceScalar: PreferenceScalar { .double(self) }
  public init?(preferenceScalar: PreferenceScalar) {
    guard case .double(let value) = preferenceScalar else { return nil }
    self = value
  }
}

extension String: PreferenceValue {
  @inlinable public var preferenceScalar: PreferenceScalar { .string(self) }
  public init?(preferenceScalar: PreferenceScalar) {
    guard case .string(let value) = preferenceScalar else { return nil }
    self = value
  }
}

extension Data: PreferenceValue {
  @inlinable public var preferenceScalar: PreferenceScalar { .data(self) }
  public init?(preferenceScalar: PreferenceScalar) {
    guard case .data(let value) = preferenceScalar else { return nil }
    self = value
  }
}

extension Date: PreferenceValue {
  @inlinable public var preferenceScalar: PreferenceScalar { .date(self) }
  public init?(preferenceScalar: PreferenceScalar) {
    guard case .date(let value) = preferenceScalar else { return nil }
    self = value
  }
}
