/// Bool is encoded as a byte, Float as IEEE 754, little-endian. So is Double, unless a number of thousandths is
/// shorter.
extension Bool: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(.bool) }
  @inlinable public static var archiveIsKeyed: Bool { false }

  @inlinable @inline(__always) public func encode(to writer: inout ArchiveWriter) throws {
    writer.putByte(self ? 1 : 0)
  }

  @inlinable @inline(__always) public init(from reader: inout ArchiveReader) throws {
    if !reader.isExact { try reader.expect(.bool) }
    self = try reader.takeFlag()
  }
}

extension Float: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(.float) }
  @inlinable public static var archiveIsKeyed: Bool { false }
  @inlinable public static var archiveBlockCode: UInt8 { WireCode.float.rawValue }

  @inlinable @inline(__always) public func encode(to writer: inout ArchiveWriter) throws { writer.putFixed(bitPattern) }

  @inlinable @inline(__always) public init(from reader: inout ArchiveReader) throws {
    self =
      reader.isExact
      ? Float(bitPattern: try reader.takeFixed(UInt32.self)) : Float(try reader.readMappedNumber(narrow: true))
  }
}

extension Double: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(.double) }
  @inlinable public static var archiveIsKeyed: Bool { false }
  @inlinable public static var archiveBlockCode: UInt8 { WireCode.double.rawValue }

  @inlinable @inline(__always) public func encode(to writer: inout ArchiveWriter) throws { writer.putDouble(self) }

  @inlinable @inline(__always) public init(from reader: inout ArchiveReader) throws {
    self = reader.isExact ? try reader.takeDouble() : try reader.readMappedNumber(narrow: false)
  }
}

extension ArchiveWriter {
  /// Writes a number with at most three decimals as its number of thousandths, any other number as its bits.
  @inlinable @inline(__always) mutating func putDouble(_ value: Double) {
    let scaled = value * 1000
    // False for NaN. From this bound on, the varint would save no space.
    if abs(scaled) < 140_737_488_355_328 {
      // Adding 1.5 times 2^52 rounds a number of this size to an integer, which is then in the lowest bits.
      let base = 6_755_399_441_055_744.0
      let shifted = scaled + base
      // Compared by their bits, because -0.0 equals 0.0.
      if ((shifted - base) / 1000).bitPattern == value.bitPattern {
        let thousandths = Int64(bitPattern: shifted.bitPattern &- base.bitPattern)
        return putVarint(UInt64(bitPattern: (thousandths &<< 1) ^ (thousandths &>> 63)) &<< 1)
      }
    }
    putVarint(1)
    putFixed(value.bitPattern)
  }
}

extension ArchiveReader {
  @inlinable @inline(__always) mutating func takeDouble() throws -> Double {
    let raw = try takeVarint()
    if raw & 1 == 0 { return Double(Int64(bitPattern: raw &>> 2) ^ -Int64(bitPattern: (raw &>> 1) & 1)) / 1000 }
    guard raw == 1 else { throw damaged("A number has an unknown form") }
    return Double(bitPattern: try takeFixed(UInt64.self))
  }

  /// Throws unless exactly this kind of value was saved.
  @usableFromInline mutating func expect(_ code: WireCode) throws {
    try unwrapPresentOptional("\(code)")
    guard core.nodes[Int(current)].code == code else { throw mismatch("\(code)") }
  }

  /// Reads a saved number as a Double; integers must be represented exactly.
  @usableFromInline mutating func readMappedNumber(narrow: Bool) throws -> Double {
    try unwrapPresentOptional("number")
    let code = core.nodes[Int(current)].code
    switch code {
    case .float: return Double(Float(bitPattern: try takeFixed(UInt32.self)))
    case .double:
      let value = blockWidth > 0 ? Double(bitPattern: try takeFixed(UInt64.self)) : try takeDouble()
      return narrow ? Double(try self.narrow(value)) : value
    default:
      guard code.isInteger else { throw mismatch(narrow ? "Float" : "Double") }
      let (negative, positive) = try takeInteger(code)
      guard let value = negative < 0 ? Double(exactly: negative) : Double(exactly: positive),
        !narrow || Float(exactly: value) != nil
      else {
        throw ArchiveError(.mismatch, "The saved integer doesn't fit into a floating-point number", offset: offset)
      }
      return value
    }
  }

  /// Converts to Float. A finite Double outside Float's range is an error; a loss of precision is not.
  @usableFromInline mutating func narrow(_ value: Double) throws -> Float {
    let result = Float(value)
    guard result.isFinite || !value.isFinite else {
      throw ArchiveError(.mismatch, "The saved number \(value) doesn't fit into Float", offset: offset)
    }
    return result
  }
}
