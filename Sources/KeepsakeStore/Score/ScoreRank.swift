import Foundation
import KeepsakeReplication

/// A score as bytes that sort, the best first, and from which it can be read back.
///
/// ```
/// 1 byte    0x10 for ascending, 0x20 for descending, plus 0, 1, 2 for a number below, within or above what Int64 holds
/// 8 bytes   within: the whole number at or below it, the sign's bit turned; else the bits of the Double, all turned if it is negative
/// 8 bytes   only for a number within that is not whole: the bits of the Double, made to sort
/// ```
/// A whole number is a prefix of the fractions above it, so it sorts before them. Of descending scores the negative is written. Neither
/// order rounds: SQLite compares the bytes, and no whole number beyond 2^53 is taken for its neighbour.
struct ScoreRank: Hashable, Sendable, CustomStringConvertible {
  private static let (ascending, descending): (UInt8, UInt8) = (0x10, 0x20)
  private static let (below, within, above): (UInt8, UInt8, UInt8) = (0, 1, 2)

  let bytes: Data
  let order: ScoreOrder
  /// Finite; a whole number that fits is an `int`.
  let value: Scalar

  /// Nil for what is no finite number.
  init?(_ value: Scalar, _ order: ScoreOrder) {
    guard let value = Self.plain(value), let sorted = order == .ascending ? value : Self.negative(of: value) else { return nil }
    (self.value, self.order) = (value, order)
    bytes = Self.bytes(of: sorted, behind: order == .ascending ? Self.ascending : Self.descending)
  }

  /// Nil for bytes that no score has.
  init?(bytes: Data) {
    guard let first = bytes.first, bytes.count == 9 || bytes.count == 17 else { return nil }
    let order: ScoreOrder = first & 0xF0 == Self.ascending ? .ascending : .descending
    let number: Scalar
    switch first & 0x0F {
    case Self.within where bytes.count == 9: number = .int(Int64(bitPattern: Self.word(bytes, 1) ^ 1 << 63))
    case Self.within: number = .double(Self.double(Self.word(bytes, 9)))
    default: number = .double(Self.double(Self.word(bytes, 1)))
    }
    guard let value = order == .ascending ? number : Self.negative(of: number), let rank = ScoreRank(value, order), rank.bytes == bytes
    else {
      return nil
    }
    self = rank
  }

  /// The bytes of every score of an order are at or above the first and below the second.
  static func bounds(_ order: ScoreOrder) -> (from: Data, below: Data) {
    let first = order == .ascending ? ascending : descending
    return (Data([first]), Data([first + 0x10]))
  }

  /// Hexadecimal.
  var description: String {
    var digits: [UInt8] = []
    digits.reserveCapacity(bytes.count * 2)
    for byte in bytes {
      for half in [byte >> 4, byte & 0x0F] { digits.append(half < 10 ? UInt8(ascii: "0") + half : UInt8(ascii: "a") + half - 10) }
    }
    return String(decoding: digits, as: UTF8.self)
  }

  private static func plain(_ value: Scalar) -> Scalar? {
    switch value {
    case .int: return value
    case .double(let number):
      guard number.isFinite else { return nil }
      return Int64(exactly: number).map { .int($0) } ?? value
    case .string, .data: return nil
    }
  }

  private static func negative(of value: Scalar) -> Scalar? {
    switch value {
    // The one whose negative doesn't fit is a power of two.
    case .int(.min): .double(0x1p63)
    case .int(let number): .int(-number)
    case .double(let number): plain(.double(-number))
    case .string, .data: nil
    }
  }

  private static func bytes(of value: Scalar, behind first: UInt8) -> Data {
    func data(_ kind: UInt8, _ words: UInt64...) -> Data {
      var data = Data(capacity: 17)
      data.append(first + kind)
      for word in words { withUnsafeBytes(of: word.bigEndian) { data.append(contentsOf: $0) } }
      return data
    }
    switch value {
    case .int(let number): return data(within, UInt64(bitPattern: number) ^ 1 << 63)
    case .double(let number):
      if number >= 0x1p63 { return data(above, sorted(number)) }
      guard let whole = Int64(exactly: number.rounded(.down)) else { return data(below, sorted(number)) }
      return data(within, UInt64(bitPattern: whole) ^ 1 << 63, sorted(number))
    case .string, .data: return Data()
    }
  }

  /// The bits of a Double as a number that sorts as it does.
  private static func sorted(_ number: Double) -> UInt64 { number < 0 ? ~number.bitPattern : number.bitPattern | 1 << 63 }

  private static func double(_ sorted: UInt64) -> Double { Double(bitPattern: sorted >> 63 == 1 ? sorted & ~(1 << 63) : ~sorted) }

  private static func word(_ bytes: Data, _ offset: Int) -> UInt64 {
    bytes.withUnsafeBytes { UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) }
  }
}
