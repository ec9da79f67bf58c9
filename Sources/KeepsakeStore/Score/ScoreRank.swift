import Foundation
import KeepsakeReplication

/// A score as bytes that sort the best score first, and that can be converted back.
///
/// ```
/// 1 byte    0x10 for ascending, 0x20 for descending, plus 0, 1, 2 for a number below, within or above Int64's range
/// 8 bytes   within: the integer at or below it, its sign bit flipped; else the Double's bits, all flipped if negative
/// 8 bytes   only for a number within the range that is not an integer: the Double's bits, transformed to sort
/// ```
///
/// An integer is a prefix of the fractions above it, so it sorts before them. Descending scores are written negated.
/// Neither order rounds: SQLite compares the bytes, so even integers beyond 2^53 are not mistaken for their neighbours.
struct ScoreRank: Hashable, Sendable, CustomStringConvertible {
  private static let (ascending, descending): (UInt8, UInt8) = (0x10, 0x20)
  private static let (below, within, above): (UInt8, UInt8, UInt8) = (0, 1, 2)

  let bytes: Data
  let order: ScoreOrder
  /// Finite; an integer that fits is an `int`.
  let value: Scalar

  /// Nil if the value isn't a finite number.
  init?(_ value: Scalar, _ order: ScoreOrder) {
    guard let value = Self.plain(value), let sorted = order == .ascending ? value : Self.negative(of: value) else {
      return nil
    }
    (self.value, self.order) = (value, order)
    bytes = Self.bytes(of: sorted, behind: order == .ascending ? Self.ascending : Self.descending)
  }

  /// Nil for bytes that aren't the rank of any score.
  init?(bytes: Data) {
    guard let first = bytes.first, bytes.count == 9 || bytes.count == 17 else { return nil }
    let order: ScoreOrder = first & 0xF0 == Self.ascending ? .ascending : .descending
    let number: Scalar
    switch first & 0x0F {
    case Self.within where bytes.count == 9: number = .int(Int64(bitPattern: Self.word(bytes, 1) ^ 1 << 63))
    case Self.within: number = .double(Self.double(Self.word(bytes, 9)))
    default: number = .double(Self.double(Self.word(bytes, 1)))
    }
    guard let value = order == .ascending ? number : Self.negative(of: number), let rank = ScoreRank(value, order),
      rank.bytes == bytes
    else {
      return nil
    }
    self = rank
  }

  /// Returns bounds for an order: all its ranks are at or above `from`, and below `below`.
  static func bounds(_ order: ScoreOrder) -> (from: Data, below: Data) {
    let first = order == .ascending ? ascending : descending
    return (Data([first]), Data([first + 0x10]))
  }

  /// Hexadecimal.
  var description: String {
    var digits: [UInt8] = []
    digits.reserveCapacity(bytes.count * 2)
    for byte in bytes {
      for half in [byte >> 4, byte & 0x0F] {
        digits.append(half < 10 ? UInt8(ascii: "0") + half : UInt8(ascii: "a") + half - 10)
      }
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
    // The only `Int64` whose negative doesn't fit; that is a power of two.
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

  /// Returns a Double's bits as an integer that sorts as the Double does.
  private static func sorted(_ number: Double) -> UInt64 {
    number < 0 ? ~number.bitPattern : number.bitPattern | 1 << 63
  }

  private static func double(_ sorted: UInt64) -> Double {
    Double(bitPattern: sorted >> 63 == 1 ? sorted & ~(1 << 63) : ~sorted)
  }

  private static func word(_ bytes: Data, _ offset: Int) -> UInt64 {
    bytes.withUnsafeBytes { UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) }
  }
}
