/// Prefix varints: the number of trailing zero bits of the first byte is the number of bytes that follow it.
///
///     xxxxxxx1                      7 bits      xxxxxx10 xxxxxxxx        14 bits
///     ...        x1000000 + 6       49 bits     10000000 + 7 bytes       56 bits
///     00000000 + 8 bytes            64 bits     (little-endian throughout)
package enum Varint {
  package static func append(_ value: UInt64, to bytes: inout [UInt8]) {
    let bits = 64 - value.leadingZeroBitCount
    if bits > 56 {
      bytes.append(0)
      for shift in stride(from: UInt64(0), to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
      return
    }
    let length = max(1, (bits + 6) / 7)
    let word = ((value << 1) | 1) << UInt64(length - 1)
    for index in 0..<length { bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(8 * index))) }
  }

  package static func append(_ text: String, to bytes: inout [UInt8]) {
    append(UInt64(text.utf8.count), to: &bytes)
    bytes.append(contentsOf: text.utf8)
  }
}

/// Reads the schema and the tables of an archive. Every step is checked against the end.
struct ByteCursor {
  let bytes: UnsafeRawBufferPointer
  var offset: Int
  let end: Int

  func damaged(_ message: String) -> ArchiveError { ArchiveError(.damaged, message, offset: offset) }

  mutating func byte() throws -> UInt8 {
    guard offset < end else { throw damaged("The archive ends too early") }
    defer { offset += 1 }
    return bytes[offset]
  }

  @inline(__always) mutating func varint() throws -> UInt64 {
    if offset < end, bytes[offset] & 1 == 1 {
      defer { offset += 1 }
      return UInt64(bytes[offset] >> 1)
    }
    return try longVarint()
  }

  private mutating func longVarint() throws -> UInt64 {
    let first = try byte()
    let more = first.trailingZeroBitCount
    guard end - offset >= more else { throw damaged("The archive ends too early") }
    if more == 8 {
      defer { offset += 8 }
      return UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
    var word = UInt64(first)
    for index in 0..<more { word |= UInt64(bytes[offset + index]) << UInt64(8 * (index + 1)) }
    offset += more
    return word >> UInt64(more + 1)
  }

  mutating func signed() throws -> Int64 {
    let value = try varint()
    return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
  }

  /// Reads the number of things that take at least one byte each.
  mutating func count(limit: Int, _ what: String) throws -> Int {
    guard let count = Int(exactly: try varint()), count <= end - offset else {
      throw damaged("A count is larger than the rest of the archive")
    }
    guard count <= limit else {
      throw ArchiveError(.limit, "The archive has \(count) \(what); the limit is \(limit)", offset: offset)
    }
    return count
  }

  mutating func string(limit: Int) throws -> String {
    let length = try count(limit: limit, "bytes in a string")
    guard
      let text = String(validating: UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + length]), as: UTF8.self)
    else {
      throw damaged("A name is not valid UTF-8")
    }
    offset += length
    return text
  }
}
