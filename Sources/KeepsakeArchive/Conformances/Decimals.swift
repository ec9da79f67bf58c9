public import Foundation

/// Encoded as a length, then exponent, sign and the significand's bytes; length 0 is NaN. Equal values give equal
/// bytes.
extension Decimal: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(.decimal) }
  public static var archiveIsKeyed: Bool { false }

  public func encode(to writer: inout ArchiveWriter) throws {
    let bytes = try DecimalBytes.make(self)
    writer.putVarint(UInt64(bytes.count))
    bytes.withUnsafeBytes { writer.putBytes($0) }
  }

  /// Also reads integers, but no binary fractions: 0.1 as a Double is not the same number as 0.1 as a Decimal.
  public init(from reader: inout ArchiveReader) throws {
    if !reader.isExact {
      try reader.unwrapPresentOptional("Decimal")
      let code = reader.core.nodes[Int(reader.current)].code
      if code.isInteger {
        let (negative, positive) = try reader.takeInteger(code)
        self = negative < 0 ? Decimal(negative) : Decimal(positive)
        return
      }
      try reader.expect(.decimal)
    }
    let bytes = try reader.takeBytes(try reader.takeCount())
    guard let value = DecimalBytes.read(bytes) else { throw reader.damaged("A saved decimal number is invalid") }
    self = value
  }
}

/// The encoding of a decimal number: exponent (signed), sign (0 or 1), then the significand, little-endian and in as
/// few bytes as possible.
package enum DecimalBytes {
  /// Bytes of the exponent and the sign.
  private static let headBytes = 2
  /// 2 to the 64th.
  private static let word = Decimal(UInt64.max) + 1

  package static func make(_ value: Decimal) throws -> [UInt8] {
    if value.isNaN { return [] }
    guard var significand = UInt128(value.significand.description) else {
      throw ArchiveError(.unsupported, "The decimal number \(value) has a significand of more than 128 bits")
    }
    var exponent = significand == 0 ? 0 : value.exponent
    while significand > 0, exponent < Int(Int8.max), significand.isMultiple(of: 10) {
      significand /= 10
      exponent += 1
    }
    guard let short = Int8(exactly: exponent) else {
      throw ArchiveError(.unsupported, "The decimal number \(value) has an exponent of more than 8 bits")
    }
    var bytes = [UInt8(bitPattern: short), significand > 0 && value.sign == .minus ? 1 : 0]
    while significand > 0 {
      bytes.append(UInt8(truncatingIfNeeded: significand))
      significand >>= 8
    }
    return bytes
  }

  /// Returns nil if the bytes aren't a decimal number.
  static func read(_ bytes: UnsafeRawBufferPointer) -> Decimal? {
    if bytes.isEmpty { return .nan }
    guard bytes.count >= headBytes, bytes.count <= headBytes + 16, bytes[1] <= 1 else { return nil }
    var significand: UInt128 = 0
    for byte in bytes.dropFirst(headBytes).reversed() { significand = significand << 8 | UInt128(byte) }
    let whole =
      Decimal(UInt64(truncatingIfNeeded: significand >> 64)) * word + Decimal(UInt64(truncatingIfNeeded: significand))
    let value = Decimal(
      sign: bytes[1] == 1 ? .minus : .plus, exponent: Int(Int8(bitPattern: bytes[0])), significand: whole)
    return value.isNaN ? nil : value
  }
}
