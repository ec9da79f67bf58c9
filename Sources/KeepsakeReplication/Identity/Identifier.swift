/// A random 128-bit name, typed by what it names, so that a version can't be mistaken for an operation.
///
/// Written as 32 lowercase hexadecimal digits. Two identifiers drawn from a good random source never collide in practice;
/// nothing here draws them by itself: the source is handed in.
public struct Identifier<Kind>: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
  /// The first 64 bits.
  public let high: UInt64
  /// The last 64 bits.
  public let low: UInt64

  /// Makes an identifier of 128 bits.
  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// Draws a new identifier from `source`.
  public init(using source: inout some RandomNumberGenerator) {
    self.init(high: source.next(), low: source.next())
  }

  /// Reads 32 hexadecimal digits; nil for anything else.
  public init?(_ text: some StringProtocol) {
    guard let words = Hexadecimal.words(in: text, count: 2) else { return nil }
    self.init(high: words[0], low: words[1])
  }

  public var description: String { Hexadecimal.text(high, low) }

  public static func < (left: Self, right: Self) -> Bool {
    left.high != right.high ? left.high < right.high : left.low < right.low
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let text = try container.decode(String.self)
    guard let identifier = Self(text) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "expected an identifier of 32 hexadecimal digits, found \"\(text.prefix(40))\"")
    }
    self = identifier
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}

extension Identifier: CodingKeyRepresentable {
  private struct Key: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }
    init(_ text: String) { stringValue = text }
    init?(stringValue: String) { self.init(stringValue) }
    init?(intValue: Int) { nil }
  }

  /// As the key of a keyed container, so that dictionaries by identifier encode as objects with sorted keys.
  public var codingKey: any CodingKey { Key(description) }

  public init?(codingKey: some CodingKey) {
    self.init(codingKey.stringValue)
  }
}

/// Marks identifiers of versions.
public enum VersionKind {}
/// Names one version of a saved game or file, for ever.
public typealias VersionID = Identifier<VersionKind>

/// Marks identifiers of wallet operations.
public enum OperationKind {}
/// Names one operation of the wallet. Repeating an operation under the same name changes nothing.
public typealias OperationID = Identifier<OperationKind>

/// Marks identifiers of scores.
public enum ScoreKind {}
/// Names one score on a board, for ever and on every device.
public typealias ScoreID = Identifier<ScoreKind>

/// Marks identifiers of runs of wallet operations.
public enum ChainKind {}
/// Names one store's run of wallet operations.
package typealias ChainID = Identifier<ChainKind>

/// Marks identifiers of containers.
public enum ContainerKind {}
/// Names all that one player keeps in one app.
package typealias ContainerID = Identifier<ContainerKind>

/// Marks identifiers of devices.
public enum DeviceKind {}
/// Names a registered install.
package typealias DeviceID = Identifier<DeviceKind>

/// The 64 random bits that a store mints each time it is opened, so that a copied or restored store never writes under
/// the same name as its original.
public struct WriterID: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
  /// The 64 bits.
  public let value: UInt64

  /// The writer that has these 64 bits.
  public init(_ value: UInt64) { self.value = value }

  /// Draws a new writer's name from `source`.
  public init(using source: inout some RandomNumberGenerator) { self.init(source.next()) }

  public var description: String { Hexadecimal.text(value) }

  public static func < (left: Self, right: Self) -> Bool { left.value < right.value }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let text = try container.decode(String.self)
    guard let value = Hexadecimal.words(in: text, count: 1)?.first else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "expected a writer of 16 hexadecimal digits, found \"\(text.prefix(40))\"")
    }
    self.init(value)
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}

extension WriterID {
  /// Another name for the same writer, for what has to be told apart: the same for the same numbers, and as unlikely to be any other writer's as
  /// one that is drawn.
  package func alias(_ numbers: [UInt64]) -> WriterID {
    WriterID(numbers.reduce(value) { Self.mixed($0 &+ ($1 &+ 1) &* 0x9E37_79B9_7F4A_7C15) })
  }

  /// The finalizer of SplitMix64: each bit of the result depends on all bits.
  private static func mixed(_ number: UInt64) -> UInt64 {
    var bits = number
    bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
    return bits ^ (bits >> 31)
  }
}
