// Encoded like the narrow vectors in Vectors.swift: the scalars one after the other, each in its full width.

extension SIMD8: Archivable where Scalar: ArchivableScalar {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { vectorType(in: schema) }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws { writeScalars(to: &writer) }
  public init(from reader: inout ArchiveReader) throws { self = try Self.readScalars(from: &reader) }
}

extension SIMD16: Archivable where Scalar: ArchivableScalar {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { vectorType(in: schema) }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws { writeScalars(to: &writer) }
  public init(from reader: inout ArchiveReader) throws { self = try Self.readScalars(from: &reader) }
}

extension SIMD32: Archivable where Scalar: ArchivableScalar {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { vectorType(in: schema) }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws { writeScalars(to: &writer) }
  public init(from reader: inout ArchiveReader) throws { self = try Self.readScalars(from: &reader) }
}

extension SIMD64: Archivable where Scalar: ArchivableScalar {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { vectorType(in: schema) }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws { writeScalars(to: &writer) }
  public init(from reader: inout ArchiveReader) throws { self = try Self.readScalars(from: &reader) }
}
