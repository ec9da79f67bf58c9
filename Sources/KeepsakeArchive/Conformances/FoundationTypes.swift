public import Foundation

/// Encoded as a length and the bytes.
extension Data: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(.data) }
  public static var archiveIsKeyed: Bool { false }

  public func encode(to writer: inout ArchiveWriter) throws {
    try withUnsafeBytes { try writer.putMeasured($0) }
  }

  public init(from reader: inout ArchiveReader) throws {
    if !reader.isExact { try reader.expect(.data) }
    self = Data(try reader.takeBytes(try reader.takeLength()))
  }
}

/// Encoded as seconds since 2001-01-01 00:00:00 UTC, as a Double.
extension Date: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(.date) }
  public static var archiveIsKeyed: Bool { false }

  public func encode(to writer: inout ArchiveWriter) throws {
    writer.putFixed(timeIntervalSinceReferenceDate.bitPattern)
  }

  public init(from reader: inout ArchiveReader) throws {
    if !reader.isExact { try reader.expect(.date) }
    self.init(timeIntervalSinceReferenceDate: Double(bitPattern: try reader.takeFixed(UInt64.self)))
  }
}

/// Encoded as 16 bytes.
extension UUID: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(.uuid) }
  public static var archiveIsKeyed: Bool { false }

  public func encode(to writer: inout ArchiveWriter) throws { withUnsafeBytes(of: uuid) { writer.putBytes($0) } }

  public init(from reader: inout ArchiveReader) throws {
    if !reader.isExact { try reader.expect(.uuid) }
    self.init(uuid: try reader.takeBytes(16).loadUnaligned(as: uuid_t.self))
  }
}

/// Encoded as the absolute string; the base of a relative URL isn't stored separately.
extension URL: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(.url) }
  public static var archiveIsKeyed: Bool { false }

  public func encode(to writer: inout ArchiveWriter) throws { try absoluteString.encode(to: &writer) }

  public init(from reader: inout ArchiveReader) throws {
    if !reader.isExact { try reader.expect(.url) }
    let bytes = try reader.takeBytes(try reader.takeLength())
    try reader.claim(ArchiveLimits.urlBytes)
    guard let text = String(validating: bytes, as: UTF8.self), let url = URL(string: text) else {
      throw reader.damaged("A saved URL is invalid")
    }
    self = url
  }
}

/// Encoded as a Double, or as a Float on the few platforms where CGFloat is a Float; each can be read as the other.
/// Arrays are blocks, like those of Doubles.
extension CGFloat: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType {
    NativeType.archiveWireType(in: schema)
  }
  public static var archiveIsKeyed: Bool { false }
  public static var archiveBlockCode: UInt8 { NativeType.archiveBlockCode }
  public func encode(to writer: inout ArchiveWriter) throws { try native.encode(to: &writer) }
  public init(from reader: inout ArchiveReader) throws { self.init(try NativeType(from: &reader)) }
}

extension CGPoint: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.vector(.double, count: 2) }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws { try SIMD2(Double(x), Double(y)).encode(to: &writer) }
  public init(from reader: inout ArchiveReader) throws {
    let pair = try SIMD2<Double>(from: &reader)
    self.init(x: pair.x, y: pair.y)
  }
}

extension CGSize: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.vector(.double, count: 2) }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws {
    try SIMD2(Double(width), Double(height)).encode(to: &writer)
  }
  public init(from reader: inout ArchiveReader) throws {
    let pair = try SIMD2<Double>(from: &reader)
    self.init(width: pair.x, height: pair.y)
  }
}

extension CGRect: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.vector(.double, count: 4) }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws {
    try SIMD4(Double(origin.x), Double(origin.y), Double(size.width), Double(size.height)).encode(to: &writer)
  }
  public init(from reader: inout ArchiveReader) throws {
    let all = try SIMD4<Double>(from: &reader)
    self.init(x: all.x, y: all.y, width: all.z, height: all.w)
  }
}
