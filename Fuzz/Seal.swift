import Foundation

/// The parts of an archive's bytes, found without checking anything, so that one of them can be altered and the rest
/// made to fit again: a reader behind a checksum, an offset and a dozen lengths is not reached by chance.
struct Parts {
  /// In the order in which they stand in `pieces`.
  enum Piece: Int, CaseIterable {
    case root, values, references
    /// The schema of the fixed types, its count apart; the same of the further types; the root's type.
    case fixedCount, fixedTypes, furtherTypes, rootType
    case keys, keyTypes
    /// The count of objects and the runs.
    case objects, runs
  }

  var header: [UInt8]
  var pieces: [[UInt8]]

  subscript(piece: Piece) -> [UInt8] {
    get { pieces[piece.rawValue] }
    set { pieces[piece.rawValue] = newValue }
  }

  /// nil for what is too far from an archive to be taken apart.
  init?(_ bytes: UnsafeRawBufferPointer) {
    let end = bytes.count - 16
    guard end >= 16 else { return nil }
    header = Array(bytes[..<16])
    let offset = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: end, as: UInt64.self))
    guard offset >= 16, offset <= UInt64(end) else { return nil }
    pieces = Array(repeating: [], count: Piece.allCases.count)
    var scan = Scan(bytes: bytes, offset: Int(offset), end: end)
    guard let count = scan.piece({ $0.varint() != nil }), let length = scan.varint(), let fixed = scan.take(length),
      let further = scan.piece({ $0.types() }), let rootType = scan.piece({ $0.expression(0) }),
      let keys = scan.piece({ $0.list { $0.text() } }), let keyTypes = scan.piece({ $0.list { $0.expression(0) } }),
      let lengths = scan.three(), let objects = scan.piece({ $0.varint() != nil })
    else { return nil }
    self[.fixedCount] = count
    self[.fixedTypes] = fixed
    self[.furtherTypes] = further
    self[.rootType] = rootType
    self[.keys] = keys
    self[.keyTypes] = keyTypes
    self[.objects] = objects
    self[.runs] = Array(bytes[scan.offset..<end])
    var body = Scan(bytes: bytes, offset: 16, end: Int(offset))
    for (piece, length) in zip([Piece.root, .values, .references], lengths) {
      guard let bytes = body.take(length) else { return nil }
      self[piece] = bytes
    }
  }

  /// An archive again, whatever the pieces have become.
  func assembled() -> [UInt8] {
    var bytes = header + self[.root] + self[.values] + self[.references]
    let offset = UInt64(bytes.count)
    bytes += self[.fixedCount]
    Varint.append(UInt64(self[.fixedTypes].count), to: &bytes)
    for piece in [Piece.fixedTypes, .furtherTypes, .rootType, .keys, .keyTypes] { bytes += self[piece] }
    for piece in [Piece.root, .values, .references] { Varint.append(UInt64(self[piece].count), to: &bytes) }
    bytes += self[.objects] + self[.runs]
    withUnsafeBytes(of: offset.littleEndian) { bytes.append(contentsOf: $0) }
    bytes += [UInt8](repeating: 0, count: 8)
    Seal.close(&bytes)
    return bytes
  }
}

extension Data {
  /// The archive with one byte of its root changed.
  func altered() -> Data {
    var bytes = [UInt8](self)
    if let last = bytes.last, bytes.count > 48 { bytes[16 + Int(last >> 3)] ^= 1 }
    Seal.close(&bytes)
    return Data(bytes)
  }
}

enum Seal {
  /// Makes the magic, the version and the checksum good.
  static func close(_ bytes: inout [UInt8]) {
    guard bytes.count >= 32 else { return }
    bytes.replaceSubrange(0..<8, with: ArchiveLayout.magic)
    bytes.replaceSubrange(8..<12, with: [UInt8(ArchiveLayout.version), 0, 0, 0])
    let body = bytes.count - 8
    let sum = bytes.withUnsafeBytes { Checksum.xxh64(UnsafeRawBufferPointer(rebasing: $0[..<body])) }
    withUnsafeBytes(of: sum.littleEndian) { bytes.replaceSubrange(body..., with: $0) }
  }

  /// The input with its checksum made good. One that ends in eight zeros is left as it is, so that what is not an
  /// archive is met, too.
  static func closed(_ data: UnsafePointer<UInt8>?, _ count: Int) -> Data {
    var bytes = Array(UnsafeBufferPointer(start: data, count: count))
    if count < 8 || bytes.suffix(8).contains(where: { $0 != 0 }) { close(&bytes) }
    return Data(bytes)
  }
}

/// Passes over the parts of a footer.
private struct Scan {
  let bytes: UnsafeRawBufferPointer
  var offset: Int
  let end: Int

  mutating func byte() -> UInt8? {
    guard offset < end else { return nil }
    defer { offset += 1 }
    return bytes[offset]
  }

  mutating func varint() -> Int? {
    var cursor = ByteCursor(bytes: bytes, offset: offset, end: end)
    guard let value = try? cursor.varint() else { return nil }
    offset = cursor.offset
    return Int(exactly: value)
  }

  mutating func take(_ count: Int) -> [UInt8]? {
    guard count >= 0, count <= end - offset else { return nil }
    defer { offset += count }
    return Array(bytes[offset..<offset + count])
  }

  mutating func piece(_ pass: (inout Scan) -> Bool) -> [UInt8]? {
    let start = offset
    guard pass(&self) else { return nil }
    return Array(bytes[start..<offset])
  }

  mutating func three() -> [Int]? {
    guard let a = varint(), let b = varint(), let c = varint() else { return nil }
    return [a, b, c]
  }

  mutating func list(_ pass: (inout Scan) -> Bool) -> Bool {
    guard let count = varint(), count <= end - offset else { return false }
    for _ in 0..<count where !pass(&self) { return false }
    return true
  }

  mutating func text() -> Bool {
    guard let count = varint() else { return false }
    return take(count) != nil
  }

  mutating func types() -> Bool { list { $0.type() } }

  private mutating func type() -> Bool {
    guard let kind = byte(), text(), varint() != nil else { return false }
    switch kind {
    case 1: return fields()
    case 3: return list { $0.text() && $0.varint() != nil } && fields()
    case 2: return list { $0.text() && $0.fields() }
    default: return true
    }
  }

  private mutating func fields() -> Bool { list { $0.text() && $0.byte() != nil && $0.expression(0) } }

  mutating func expression(_ depth: Int) -> Bool {
    guard depth < 64, let code = byte() else { return false }
    switch code {
    case 32, 33, 34: return expression(depth + 1)
    case 35: return expression(depth + 1) && expression(depth + 1)
    case 36: return byte() != nil && varint() != nil
    case 48: return varint() != nil
    default: return true
    }
  }
}
