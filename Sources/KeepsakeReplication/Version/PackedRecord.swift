package import Foundation

/// A version's record in few bytes, as servers store it beside the version's id and slot.
///
///     byte      the form: 1
///     byte      flags: 1 provisional, 2 tombstone, 4 title, 8 playtime, 16 progress, 32 thumbnail, 64 custom
///     number    how many versions it covers, then 16 bytes for each
///     number    how many contents it has, then 32 bytes for each
///     number    the length of its plain bytes
///     number    when it was saved, in milliseconds since 1970, zigzag
///     8 bytes   the writer, big-endian
///     what the flags name, in their order: a text or bytes as its length and UTF-8 or bytes, a number of seconds or
///     progress as the 8 bytes of its IEEE 754 form, custom values as their count and pairs of texts sorted by key
///
/// A number has seven bits in each byte, the lowest first; the last byte is less than 128. Reading is bounded by the
/// bytes that are there: a count that they can't hold is an error, and so are bytes that are left.
package struct PackedRecord: Hashable, Sendable {
  /// Bytes that aren't a packed record.
  package struct Damaged: Error, CustomStringConvertible {
    package var description: String
  }

  private enum Flag {
    static let provisional: UInt8 = 1
    static let tombstone: UInt8 = 2
    static let title: UInt8 = 4
    static let playtime: UInt8 = 8
    static let progress: UInt8 = 16
    static let thumbnail: UInt8 = 32
    static let custom: UInt8 = 64
    static let all: UInt8 = 127
  }

  private static let form: UInt8 = 1

  package let bytes: Data

  package init(bytes: Data) { self.bytes = bytes }

  /// Packs a record without its id and slot.
  package init(_ record: VersionRecord) {
    let metadata = record.metadata
    var flags: UInt8 = 0
    if record.provisional { flags |= Flag.provisional }
    if record.tombstone { flags |= Flag.tombstone }
    if metadata.title != nil { flags |= Flag.title }
    if metadata.playtime != nil { flags |= Flag.playtime }
    if metadata.progress != nil { flags |= Flag.progress }
    if metadata.thumbnail != nil { flags |= Flag.thumbnail }
    if !metadata.custom.isEmpty { flags |= Flag.custom }
    var packer = Packer(
      capacity: 40 + record.covers.count * 16 + record.contents.count * 32 + metadata.size)
    packer.append(Self.form)
    packer.append(flags)
    packer.append(number: UInt64(record.covers.count))
    for id in record.covers {
      packer.append(word: id.high)
      packer.append(word: id.low)
    }
    packer.append(number: UInt64(record.contents.count))
    for hash in record.contents { packer.bytes.append(hash.bytes) }
    packer.append(number: UInt64(bitPattern: Int64(record.length)))
    packer.append(zigzag: record.savedAtMilliseconds)
    packer.append(word: record.writer.value)
    if let title = metadata.title { packer.append(text: title) }
    if let playtime = metadata.playtime { packer.append(word: playtime.bitPattern) }
    if let progress = metadata.progress { packer.append(word: progress.bitPattern) }
    if let thumbnail = metadata.thumbnail { packer.append(data: thumbnail) }
    if !metadata.custom.isEmpty {
      packer.append(number: UInt64(metadata.custom.count))
      for (key, value) in metadata.custom.sorted(by: { ExactText($0.key) < ExactText($1.key) }) {
        packer.append(text: key)
        packer.append(text: value)
      }
    }
    bytes = packer.bytes
  }

  /// Returns the record of the version with this id, of this slot.
  ///
  /// - Throws: ``Damaged`` for bytes that no packing gives.
  package func record(id: VersionID, slot: String) throws -> VersionRecord {
    var reader = Unpacker(bytes)
    guard try reader.byte() == Self.form else { throw Damaged(description: "a record of an unknown form") }
    let flags = try reader.byte()
    guard flags & ~Flag.all == 0 else { throw Damaged(description: "a record with unknown flags") }
    let covers = try reader.list(of: 16) { VersionID(high: try $0.word(), low: try $0.word()) }
    let contents = try reader.list(of: 32) { reader in
      guard let hash = ContentHash(bytes: try reader.data(32)) else { throw Unpacker.ended }
      return hash
    }
    guard let length = Int(exactly: Int64(bitPattern: try reader.number())) else {
      throw Damaged(description: "a record whose length is out of range")
    }
    let savedAt = try reader.zigzag()
    let writer = WriterID(try reader.word())
    var metadata = SaveMetadata()
    if flags & Flag.title != 0 { metadata.title = try reader.text() }
    if flags & Flag.playtime != 0 { metadata.playtime = Double(bitPattern: try reader.word()) }
    if flags & Flag.progress != 0 { metadata.progress = Double(bitPattern: try reader.word()) }
    if flags & Flag.thumbnail != 0 { metadata.thumbnail = try reader.data(try reader.count(of: 1)) }
    if flags & Flag.custom != 0 {
      // A pair has at least the bytes of its two lengths.
      for pair in try reader.list(of: 2, { (try $0.text(), try $0.text()) }) { metadata.custom[pair.0] = pair.1 }
    }
    guard reader.isAtEnd else { throw Damaged(description: "bytes follow a record") }
    return VersionRecord(
      id: id, slot: slot, covers: covers, contents: contents, length: length, metadata: metadata,
      savedAtMilliseconds: savedAt, writer: writer, provisional: flags & Flag.provisional != 0,
      tombstone: flags & Flag.tombstone != 0)
  }
}

/// Appends numbers and bytes.
private struct Packer {
  var bytes: Data

  init(capacity: Int) { bytes = Data(capacity: capacity) }

  mutating func append(_ byte: UInt8) { bytes.append(byte) }

  mutating func append(number: UInt64) {
    var rest = number
    while rest >= 128 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 128)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  mutating func append(zigzag number: Int64) { append(number: UInt64(bitPattern: (number << 1) ^ (number >> 63))) }

  mutating func append(word: UInt64) { withUnsafeBytes(of: word.bigEndian) { bytes.append(contentsOf: $0) } }

  mutating func append(data: Data) {
    append(number: UInt64(data.count))
    bytes.append(data)
  }

  mutating func append(text: String) { append(data: Data(text.utf8)) }
}

/// Reads numbers and bytes, never beyond the end.
private struct Unpacker {
  static let ended = PackedRecord.Damaged(description: "a record ends early")

  private let bytes: Data
  private var next: Int

  init(_ bytes: Data) { (self.bytes, next) = (bytes, bytes.startIndex) }

  var isAtEnd: Bool { next == bytes.endIndex }

  mutating func byte() throws -> UInt8 {
    guard next < bytes.endIndex else { throw Self.ended }
    defer { next += 1 }
    return bytes[next]
  }

  mutating func number() throws -> UInt64 {
    var number: UInt64 = 0
    for shift in stride(from: UInt64(0), to: 64, by: 7) {
      let byte = try byte()
      guard shift < 63 || byte < 2 else { break }
      number |= UInt64(byte & 127) << shift
      if byte < 128 { return number }
    }
    throw PackedRecord.Damaged(description: "a number of a record is too long")
  }

  mutating func zigzag() throws -> Int64 {
    let number = try number()
    return Int64(bitPattern: number >> 1) ^ -Int64(bitPattern: number & 1)
  }

  mutating func word() throws -> UInt64 {
    var word: UInt64 = 0
    for _ in 0..<8 { word = word << 8 | UInt64(try byte()) }
    return word
  }

  mutating func data(_ count: Int) throws -> Data {
    guard count >= 0, count <= bytes.endIndex - next else { throw Self.ended }
    defer { next += count }
    return Data(bytes[next..<(next + count)])
  }

  /// Reads a count of items that take at least so many bytes each.
  mutating func count(of size: Int) throws -> Int {
    guard let count = Int(exactly: try number()), count <= (bytes.endIndex - next) / size else { throw Self.ended }
    return count
  }

  mutating func list<Item>(of size: Int, _ item: (inout Unpacker) throws -> Item) throws -> [Item] {
    let count = try count(of: size)
    var items: [Item] = []
    items.reserveCapacity(count)
    for _ in 0..<count { items.append(try item(&self)) }
    return items
  }

  mutating func text() throws -> String {
    let bytes = try data(try count(of: 1))
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw PackedRecord.Damaged(description: "a text of a record isn't UTF-8")
    }
    return text
  }
}
