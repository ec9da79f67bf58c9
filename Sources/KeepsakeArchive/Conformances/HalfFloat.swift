#if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
/// Encoded as a Float, which represents every Float16 exactly. Intel Macs, which have no Float16, read it as a Float.
extension Float16: Archivable {
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(.float) }
  public static var archiveIsKeyed: Bool { false }
  public func encode(to writer: inout ArchiveWriter) throws { try Float(self).encode(to: &writer) }

  public init(from reader: inout ArchiveReader) throws {
    let value = try Float(from: &reader)
    self.init(value)
    guard isFinite || !value.isFinite else {
      throw ArchiveError(.mismatch, "The saved number \(value) doesn't fit into Float16", offset: reader.offset)
    }
  }
}
#endif
