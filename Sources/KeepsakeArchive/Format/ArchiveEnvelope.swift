/// What surrounds an archive's content, checked: magic, version, checksum, and where the footer stands.
struct ArchiveEnvelope {
  let bytes: UnsafeRawBufferPointer
  let version: UInt16
  let footer: Range<Int>

  init(_ bytes: UnsafeRawBufferPointer, limits: ArchiveLimits) throws {
    self.bytes = bytes
    guard !bytes.isEmpty else { throw ArchiveError(.missing, "There are no bytes to read") }
    guard bytes.count <= limits.archiveBytes else {
      throw ArchiveError(.limit, "The archive takes \(bytes.count) bytes; the limit is \(limits.archiveBytes)")
    }
    guard ArchiveLayout.isMagic(bytes) else {
      throw ArchiveError(.notAnArchive, "The bytes don't begin like an archive")
    }
    guard bytes.count >= ArchiveLayout.headerBytes + ArchiveLayout.trailerBytes else {
      throw ArchiveError(.damaged, "The archive is cut off after \(bytes.count) bytes", offset: bytes.count)
    }
    version = UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt16.self))
    let flags = UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: 10, as: UInt16.self))
    // Before the version is believed: a flipped bit in it must read as damage, not as "too new".
    let sum = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self))
    guard Checksum.xxh64(UnsafeRawBufferPointer(rebasing: bytes[..<(bytes.count - 8)])) == sum else {
      throw ArchiveError(.damaged, "The archive's checksum is wrong: it was cut off or altered")
    }
    guard version == ArchiveLayout.version, flags == 0 else {
      throw ArchiveError(
        .tooNew, "The archive has format version \(version), flags \(flags); this program reads version \(ArchiveLayout.version)")
    }
    let end = bytes.count - ArchiveLayout.trailerBytes
    let start = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: end, as: UInt64.self))
    guard start >= UInt64(ArchiveLayout.headerBytes), start <= UInt64(end) else {
      throw ArchiveError(.damaged, "The archive's footer is out of place", offset: end)
    }
    footer = Int(start)..<end
  }

  /// Where the root stands, if it is all there is: declared as in the program, without objects. What is damaged is for `ArchiveFile`.
  func onlyRoot(_ compiled: CompiledSchema) -> Range<Int>? {
    guard compiled.isHead(of: UnsafeRawBufferPointer(rebasing: bytes[footer])) else { return nil }
    let root = ArchiveLayout.headerBytes..<footer.lowerBound
    var input = ByteCursor(bytes: bytes, offset: footer.lowerBound + compiled.footerHead.count, end: footer.upperBound)
    // Its length, no values, no references, no objects, no runs of them.
    guard let length = try? input.varint(), length == UInt64(root.count), footer.upperBound - input.offset == 4 else { return nil }
    return bytes.loadUnaligned(fromByteOffset: input.offset, as: UInt32.self) == 0x0101_0101 ? root : nil
  }
}
