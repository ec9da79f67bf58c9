/// Encoded as 16 bytes, little-endian, two's complement.
extension Int128: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(.int128) }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws { writer.putFixed(self) }

  public init(from reader: inout ArchiveReader) throws {
    self = try reader.isExact ? reader.takeFixed(Int128.self) : reader.readMappedWide(Int128.self)
  }
}

/// Encoded as 16 bytes, little-endian.
extension UInt128: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(.uint128) }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws { writer.putFixed(self) }

  public init(from reader: inout ArchiveReader) throws {
    self = try reader.isExact ? reader.takeFixed(UInt128.self) : reader.readMappedWide(UInt128.self)
  }
}

/// Encoded as attoseconds in an `Int128`, which represents every duration exactly.
extension Duration: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(.int128) }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws { writer.putFixed(attoseconds) }

  // Numbers of other widths were hardly meant as attoseconds.
  public init(from reader: inout ArchiveReader) throws {
    if !reader.isExact { try reader.expect(.int128) }
    self.init(attoseconds: try reader.takeFixed(Int128.self))
  }
}

extension ArchiveReader {
  /// Reads a saved integer of any width, where the saved or the program's type has 128 bits.
  mutating func readMappedWide<T: FixedWidthInteger>(_ type: T.Type) throws -> T {
    try unwrapPresentOptional("\(T.self)")
    let code = core.nodes[Int(current)].code
    let value: T?
    let text: String
    switch code {
    case .int128:
      let saved = try takeFixed(Int128.self)
      (value, text) = (T(exactly: saved), "\(saved)")
    case .uint128:
      let saved = try takeFixed(UInt128.self)
      (value, text) = (T(exactly: saved), "\(saved)")
    default:
      guard code.isInteger else { throw mismatch("\(T.self)") }
      let (negative, positive) = try takeInteger(code)
      (value, text) = negative < 0 ? (T(exactly: negative), "\(negative)") : (T(exactly: positive), "\(positive)")
    }
    guard let value else {
      throw ArchiveError(.mismatch, "The saved number \(text) doesn't fit into \(T.self)", offset: offset)
    }
    return value
  }
}
