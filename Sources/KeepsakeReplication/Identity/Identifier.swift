/// A random 128-bit identifier, typed by what it identifies, so that a version can't be mistaken for an operation.
///
/// Written as 32 lowercase hexadecimal digits. Two identifiers drawn from a good random source never collide in
/// practice. The source is always passed in; nothing here has one of its own.
public struct Identifier<Kind>: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
  /// The first 64 bits.
  public let high: UInt64
  /// The last 64 bits.
  public let low: UInt64

  /// Creates an identifier from its 128 bits.
  ///
  /// - Parameters:
  ///   - high: The first 64 bits.
  ///   - low: The last 64 bits.
  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// Draws a new identifier from a random source.
  ///
  /// - Parameter source: The random source. Two numbers are drawn from it.
  public init(using source: inout some RandomNumberGenerator) {
    self.init(high: source.next(), low: source.next())
  }

  /// Parses 32 hexadecimal digits; nil for anything else.
  ///
  /// - Parameter text: The digits, in lowercase or uppercase.
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
        in: container, debugDescription: "expected an identifier of 32 hexadecimal digits, found \"\(text.prefix(40))\""
      )
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

  /// The key in a keyed container, so that dictionaries by identifier are encoded as objects with sorted keys.
  public var codingKey: any CodingKey { Key(description) }

  public init?(codingKey: some CodingKey) {
    self.init(codingKey.stringValue)
  }
}

/// Marks identifiers of versions.
public enum VersionKind {}
/// Identifies one version of a saved game or file, forever.
public typealias VersionID = Identifier<VersionKind>

/// Marks identifiers of wallet operations.
public enum OperationKind {}
/// Identifies one operation of the wallet. Repeating an operation with the same identifier changes nothing.
public typealias OperationID = Identifier<OperationKind>

/// Marks identifiers of scores.
public enum ScoreKind {}
/// Identifies one score on a board, forever and on every device.
public typealias ScoreID = Identifier<ScoreKind>

/// Marks identifiers of runs of wallet operations.
public enum ChainKind {}
/// Identifies one store's run of wallet operations.
package typealias ChainID = Identifier<ChainKind>

/// Marks identifiers of containers.
public enum ContainerKind {}
/// Identifies all that one player keeps in one app.
package typealias ContainerID = Identifier<ContainerKind>

/// Marks identifiers of devices.
public enum DeviceKind {}
/// Identifies a registered install.
package typealias DeviceID = Identifier<DeviceKind>

/// Marks identifiers of players.
package enum PlayerKind {}
/// Identifies an anonymous player of a cloud.
package typealias PlayerID = Identifier<PlayerKind>

/// The 64 random bits that a store draws each time it is opened, so that a copied or restored store never writes under
/// the same name as its original.
public struct WriterID: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
  /// The 64 bits.
  public let value: UInt64

  /// Creates the writer identified by these 64 bits.
  ///
  /// - Parameter value: The 64 bits.
  public init(_ value: UInt64) { self.value = value }

  /// Draws a new writer from a random source.
  ///
  /// - Parameter source: The random source. One number is drawn from it.
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
  /// Returns another name for the same writer, for things that have to be kept apart. The same numbers always give the
  /// same name, which is as unlikely to belong to another writer as a newly drawn one.
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
