/// An integer type. Encoded as a prefix varint, zigzag-coded if signed; 8-bit integers are encoded as a single byte.
public protocol ArchivableInteger: Archivable, FixedWidthInteger {
  /// The code of the scalar type in archives. For the types that come with the archive.
  static var archiveCode: UInt8 { get }
}

extension ArchivableInteger {
  @usableFromInline static var wireCode: WireCode { WireCode(rawValue: archiveCode) ?? .int64 }

  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(wireCode) }
  @inlinable public static var archiveIsKeyed: Bool { false }
  @inlinable public static var archiveBlockCode: UInt8 { archiveCode }

  @inlinable @inline(__always) public func encode(to writer: inout ArchiveWriter) throws {
    if Self.bitWidth == 8 {
      writer.putByte(UInt8(truncatingIfNeeded: self))
    } else if Self.isSigned {
      let wide = Int64(truncatingIfNeeded: self)
      writer.putVarint(UInt64(bitPattern: (wide << 1) ^ (wide >> 63)))
    } else {
      writer.putVarint(UInt64(truncatingIfNeeded: self))
    }
  }

  @inlinable @inline(__always) public init(from reader: inout ArchiveReader) throws {
    if !reader.isExact {
      self = try reader.readMappedInteger(Self.self)
    } else if Self.bitWidth == 8 {
      self = Self(truncatingIfNeeded: try reader.takeByte())
    } else {
      let raw = try reader.takeVarint()
      let value =
        Self.isSigned
        ? Self(exactly: Int64(bitPattern: raw >> 1) ^ -Int64(bitPattern: raw & 1)) : Self(exactly: raw)
      guard let value else { throw reader.damaged("An integer is out of its type's range") }
      self = value
    }
  }
}

extension Int: ArchivableInteger { @inlinable public static var archiveCode: UInt8 { WireCode.int64.rawValue } }
extension Int8: ArchivableInteger { @inlinable public static var archiveCode: UInt8 { WireCode.int8.rawValue } }
extension Int16: ArchivableInteger { @inlinable public static var archiveCode: UInt8 { WireCode.int16.rawValue } }
extension Int32: ArchivableInteger { @inlinable public static var archiveCode: UInt8 { WireCode.int32.rawValue } }
extension Int64: ArchivableInteger { @inlinable public static var archiveCode: UInt8 { WireCode.int64.rawValue } }
extension UInt: ArchivableInteger { @inlinable public static var archiveCode: UInt8 { WireCode.uint64.rawValue } }
extension UInt8: ArchivableInteger { @inlinable public static var archiveCode: UInt8 { WireCode.uint8.rawValue } }
extension UInt16: ArchivableInteger { @inlinable public static var archiveCode: UInt8 { WireCode.uint16.rawValue } }
extension UInt32: ArchivableInteger { @inlinable public static var archiveCode: UInt8 { WireCode.uint32.rawValue } }
extension UInt64: ArchivableInteger { @inlinable public static var archiveCode: UInt8 { WireCode.uint64.rawValue } }

extension ArchiveReader {
  /// Reads one saved integer of any width.
  mutating func takeInteger(_ code: WireCode) throws -> (negative: Int64, positive: UInt64) {
    if blockWidth > 0 { return try takeBlockInteger(code) }
    switch code {
    case .int8:
      let value = Int64(Int8(bitPattern: try takeByte()))
      return value < 0 ? (value, 0) : (0, UInt64(value))
    case .uint8: return (0, UInt64(try takeByte()))
    case .int16, .int32, .int64:
      let raw = try takeVarint()
      let value = Int64(bitPattern: raw >> 1) ^ -Int64(bitPattern: raw & 1)
      return value < 0 ? (value, 0) : (0, UInt64(value))
    default: return (0, try takeVarint())
    }
  }

  @usableFromInline mutating func readMappedInteger<T: ArchivableInteger>(_ type: T.Type) throws -> T {
    try unwrapPresentOptional("\(T.self)")
    let code = core.nodes[Int(current)].code
    guard code.isInteger else { return try readMappedWide(T.self) }
    let (negative, positive) = try takeInteger(code)
    guard let value = negative < 0 ? T(exactly: negative) : T(exactly: positive) else {
      throw ArchiveError(
        .mismatch, "The saved number \(negative < 0 ? "\(negative)" : "\(positive)") doesn't fit into \(T.self)",
        offset: offset)
    }
    return value
  }
}
