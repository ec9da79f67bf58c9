/// Encoded as its length in bytes and its UTF-8.
extension String: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(.string) }
  @inlinable public static var archiveIsKeyed: Bool { false }

  @inlinable @inline(__always) public func encode(to writer: inout ArchiveWriter) throws {
    if try utf8.withContiguousStorageIfAvailable({ try writer.putMeasured(UnsafeRawBufferPointer($0)) }) != nil {
      return
    }
    // A string bridged from Objective-C is copied first.
    var copy = self
    try copy.withUTF8 { try writer.putMeasured(UnsafeRawBufferPointer($0)) }
  }

  @inlinable public init(from reader: inout ArchiveReader) throws {
    if !reader.isExact { try reader.expect(.string) }
    let bytes = try reader.takeBytes(try reader.takeLength())
    guard let text = String(archived: bytes) else { throw reader.damaged("A string is not valid UTF-8") }
    self = text
  }
}

extension String {
  /// Creates a string from UTF-8; nil if the bytes are invalid. Plain ASCII, which nearly all names are, needs no
  /// validation; the validating initialiser takes four times as long.
  @inlinable init?(archived bytes: UnsafeRawBufferPointer) {
    var high: UInt64 = 0
    var index = 0
    while index &+ 8 <= bytes.count {
      high |= bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      index &+= 8
    }
    while index < bytes.count {
      high |= UInt64(bytes[index])
      index &+= 1
    }
    if high & 0x8080_8080_8080_8080 == 0 {
      self = String(decoding: bytes, as: UTF8.self)
    } else if let text = String(validating: bytes, as: UTF8.self) {
      self = text
    } else {
      return nil
    }
  }
}

/// Encoded as a string of exactly one character.
extension Character: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(.string) }
  public static var archiveIsKeyed: Bool { false }

  public func encode(to writer: inout ArchiveWriter) throws { try String(self).encode(to: &writer) }

  public init(from reader: inout ArchiveReader) throws {
    let text = try String(from: &reader)
    guard let first = text.first, text.count == 1 else {
      throw ArchiveError(.mismatch, "The saved text is not a single character", offset: reader.offset)
    }
    self = first
  }
}
