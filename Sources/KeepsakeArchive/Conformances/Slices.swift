/// Encoded and read as an array. Costs a copy each way.
extension ContiguousArray: Archivable where Element: Archivable {
  public static var archiveName: String { [Element].archiveName }
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType {
    [Element].archiveWireType(in: schema)
  }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws { try Array(self).encode(to: &writer) }
  public init(from reader: inout ArchiveReader) throws { self.init(try [Element](from: &reader)) }
}

/// Encoded and read as an array; the indices of the read slice begin at 0. Costs a copy each way.
extension ArraySlice: Archivable where Element: Archivable {
  public static var archiveName: String { [Element].archiveName }
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType {
    [Element].archiveWireType(in: schema)
  }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws { try Array(self).encode(to: &writer) }
  public init(from reader: inout ArchiveReader) throws { self.init(try [Element](from: &reader)) }
}

/// Encoded and read as a string.
extension Substring: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(.string) }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws { try String(self).encode(to: &writer) }
  public init(from reader: inout ArchiveReader) throws { self.init(try String(from: &reader)) }
}

/// Encoded as a string of exactly one scalar.
extension Unicode.Scalar: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(.string) }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws { try String(Character(self)).encode(to: &writer) }

  public init(from reader: inout ArchiveReader) throws {
    let scalars = try String(from: &reader).unicodeScalars
    guard let first = scalars.first, scalars.count == 1 else {
      throw ArchiveError(.mismatch, "The saved text is not a single Unicode scalar", offset: reader.offset)
    }
    self = first
  }
}
