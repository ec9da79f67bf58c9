public import Crypto
public import Foundation

/// The SHA-256 of a content's plain bytes, which identifies it in every store and cloud.
public struct ContentHash: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
  /// The 32 bytes of the hash as four big-endian words, so that comparing and hashing cost no allocation.
  private let words: (UInt64, UInt64, UInt64, UInt64)

  /// Computes the hash of a content. Costs one pass over its bytes.
  ///
  /// - Parameter bytes: The plain bytes of the content.
  public init(of bytes: Data) {
    self.init(digest: SHA256.hash(data: bytes))
  }

  /// Creates a hash from a digest that was computed incrementally.
  ///
  /// - Parameter digest: The digest of the plain bytes.
  public init(digest: SHA256.Digest) {
    words = digest.withUnsafeBytes(Self.words(of:))
  }

  /// Creates a hash from its 32 bytes; nil for any other number of bytes.
  ///
  /// - Parameter bytes: The 32 bytes, in the order of the digest.
  public init?(bytes: Data) {
    guard bytes.count == 32 else { return nil }
    words = bytes.withUnsafeBytes(Self.words(of:))
  }

  /// Parses 64 hexadecimal digits; nil for anything else.
  ///
  /// - Parameter text: The digits, in lowercase or uppercase.
  public init?(_ text: some StringProtocol) {
    guard let parts = Hexadecimal.words(in: text, count: 4) else { return nil }
    words = (parts[0], parts[1], parts[2], parts[3])
  }

  /// The first 64 bits, which differ for different contents in practice.
  package var firstWord: UInt64 { words.0 }

  /// The 32 bytes.
  public var bytes: Data {
    var result = Data(capacity: 32)
    for word in [words.0, words.1, words.2, words.3] {
      withUnsafeBytes(of: word.bigEndian) { result.append(contentsOf: $0) }
    }
    return result
  }

  public var description: String {
    Hexadecimal.text(words.0, words.1, words.2, words.3)
  }

  private static func words(of raw: UnsafeRawBufferPointer) -> (UInt64, UInt64, UInt64, UInt64) {
    func word(_ index: Int) -> UInt64 {
      UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
    }
    return (word(0), word(1), word(2), word(3))
  }

  public static func == (left: Self, right: Self) -> Bool { left.words == right.words }

  public static func < (left: Self, right: Self) -> Bool { left.words < right.words }

  public func hash(into hasher: inout Hasher) {
    // The first word of a cryptographic hash already spreads evenly.
    hasher.combine(words.0)
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let text = try container.decode(String.self)
    guard let hash = Self(text) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "expected a hash of 64 hexadecimal digits, found \"\(text.prefix(80))\"")
    }
    self = hash
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
