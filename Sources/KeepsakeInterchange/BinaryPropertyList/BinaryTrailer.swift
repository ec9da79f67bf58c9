/// The trailer of a binary property list: the locations of its tables.
struct BinaryTrailer {
  let offsetBytes: Int
  let referenceBytes: Int
  let objectCount: Int
  let root: Int
  /// The offset of the table of offsets.
  let table: Int
  /// The offset of the trailer; no part of an object may be behind it.
  let end: Int

  /// Checks all sizes against the number of bytes in the file.
  init(_ bytes: UnsafeRawBufferPointer) throws {
    guard bytes.count >= BinaryFormat.magic.count + BinaryFormat.trailerBytes else {
      throw PropertyListError(
        .damaged, "A binary property list has at least 40 bytes, and this one has \(bytes.count): it was cut off",
        offset: bytes.count)
    }
    guard bytes.starts(with: BinaryFormat.magic) else {
      let version = String(decoding: bytes[6..<8], as: UTF8.self)
      throw PropertyListError(
        .unsupported, "This is a binary property list of version \"\(version)\"; only version 00 is supported",
        offset: 6)
    }
    let end = bytes.count - BinaryFormat.trailerBytes
    try self.init(trailer: UnsafeRawBufferPointer(rebasing: bytes[end...]), at: end)
  }

  /// Checks the last bytes of a file, which begin at `end`.
  init(trailer bytes: UnsafeRawBufferPointer, at end: Int) throws {
    self.end = end
    offsetBytes = Int(bytes[6])
    referenceBytes = Int(bytes[7])
    func number(_ offset: Int, _ what: String, below limit: Int) throws -> Int {
      let value = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      guard value < UInt64(limit) else {
        throw PropertyListError(
          .damaged, "The \(what) is \(value), which is past the end: the file was cut off or altered",
          offset: end + offset)
      }
      return Int(value)
    }
    guard (1...8).contains(offsetBytes), (1...8).contains(referenceBytes) else {
      throw PropertyListError(
        .damaged,
        """
        Offsets of \(offsetBytes) and references of \(referenceBytes) bytes are impossible: the file was cut off or \
        altered
        """,
        offset: end + 6)
    }
    table = try number(24, "offset of the table of offsets", below: end + 1)
    objectCount = try number(8, "count of objects", below: (end - table) / offsetBytes + 1)
    root = try number(16, "number of the root", below: objectCount)
  }
}
