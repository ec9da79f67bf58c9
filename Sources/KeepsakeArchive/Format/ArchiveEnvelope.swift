/// The validated outer parts of an archive: magic, version, checksum, and the location of the footer.
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
      throw ArchiveError(.notAnArchive, "The bytes don't begin with the signature of an archive")
    }
    guard bytes.count >= ArchiveLayout.headerBytes + ArchiveLayout.trailerBytes else {
      throw ArchiveError(.damaged, "The archive is cut off after \(bytes.count) bytes", offset: bytes.count)
    }
    version = UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt16.self))
    let flags = UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: 10, as: UInt16.self))
    // Checked before the version is used: a flipped bit in the version must be reported as damage, not as "too new".
    let sum = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self))
    guard Checksum.xxh64(UnsafeRawBufferPointer(rebasing: bytes[..<(bytes.count - 8)])) == sum else {
      throw ArchiveError(.damaged, "The archive's checksum is wrong: it was cut off or altered")
    }
    guard version == ArchiveLayout.version, flags == 0 else {
      throw ArchiveError(
        .tooNew,
        "The archive has format version \(version), flags \(flags); this program reads version \(ArchiveLayout.version)"
      )
    }
    let end = bytes.count - ArchiveLayout.trailerBytes
    let start = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: end, as: UInt64.self))
    guard start >= UInt64(ArchiveLayout.headerBytes), start <= UInt64(end) else {
      throw ArchiveError(.damaged, "The offset of the archive's footer is out of range", offset: end)
    }
    footer = Int(start)..<end
  }
}
