#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
// GRDB has a type of this name, too.
import struct KeepsakeReplication.Cursor

/// One container in SQLite, valid inside the transaction that it was created for.
struct SQLiteContainer: CloudContainer {
  let db: Database
  let id: Data
  let files: ContentFiles
  let now: Int64
  /// Of how many decided operations the details are kept, at least.
  var detailedDecisions = ServerLimits.detailedDecisions
  /// Files that no row names any more once the transaction has committed.
  var removedFiles: [String] = []

  init(_ container: ContainerID, in db: Database, files: ContentFiles, now: Int64) {
    self.db = db
    self.files = files
    self.now = now
    id = container.bytes
  }

  // MARK: Position

  func position() throws -> Cursor {
    guard let row = try row("SELECT epoch, seq, mark FROM container WHERE id = ?", [id]) else { return .start }
    return try Cursor(
      epoch: unsigned(row.decode(atIndex: 0)), seq: unsigned(row.decode(atIndex: 1)),
      mark: unsigned(row.decode(atIndex: 2)))
  }

  mutating func advance(to position: Cursor) throws {
    guard position.seq <= Cursor.maximumSeq else {
      throw ServerError(.damaged, "A container has used up all of its sequence numbers.")
    }
    try run(
      """
      INSERT INTO container (id, epoch, seq, mark) VALUES (?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, seq = excluded.seq, mark = excluded.mark
      """, [id, signed(position.epoch), signed(position.seq), signed(position.mark)])
    try run(
      "INSERT INTO mark (container, seq, mark) VALUES (?, ?, ?)", [id, signed(position.seq), signed(position.mark)])
  }

  func mark(of seq: UInt64) throws -> UInt64? {
    if seq == 0 { return 0 }
    return try row("SELECT mark FROM mark WHERE container = ? AND seq = ?", [id, signed(seq)]).map {
      unsigned(try $0.decode(atIndex: 0))
    }
  }

  // MARK: Cells

  func cell(_ key: CellKey) throws -> SequencedCell? {
    let found = try row(
      "SELECT seq, state FROM cell WHERE container = ? AND collection = ? AND key = ?",
      [id, bytes(key.collection), bytes(key.key)])
    guard let found else { return nil }
    let state = try decode(CellState.self, found.decode(atIndex: 1))
    return SequencedCell(update: CellUpdate(key: key, state: state), seq: unsigned(try found.decode(atIndex: 0)))
  }

  mutating func setCell(_ cell: SequencedCell) throws {
    try run(
      """
      INSERT INTO cell (container, collection, key, seq, state) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (container, collection, key) DO UPDATE SET seq = excluded.seq, state = excluded.state
      """,
      [
        id, bytes(cell.update.key.collection), bytes(cell.update.key.key), signed(cell.seq),
        try encode(cell.update.state),
      ])
  }

  // MARK: Versions

  func version(_ version: VersionID) throws -> SequencedVersion? {
    let found = try row("SELECT seq, record FROM version WHERE container = ? AND id = ?", [id, version.bytes])
    guard let found else { return nil }
    return try SequencedVersion(
      record: decode(VersionRecord.self, found.decode(atIndex: 1)), seq: unsigned(found.decode(atIndex: 0)))
  }

  mutating func putVersion(_ version: SequencedVersion) throws {
    let isHead = try !isCovered(version.record.id)
    if isHead, try row("SELECT 1 FROM version WHERE container = ? AND id = ?", [id, version.record.id.bytes]) == nil {
      for hash in Set(version.record.contents) {
        try run(
          "INSERT INTO holder (container, hash, version, slot) VALUES (?, ?, ?, ?)",
          [id, hash.bytes, version.record.id.bytes, bytes(version.record.slot)])
      }
    }
    try run(
      """
      INSERT INTO version (container, id, slot, seq, head, record) VALUES (?, ?, ?, ?, ?, ?)
      ON CONFLICT (container, id) DO UPDATE
      SET slot = excluded.slot, seq = excluded.seq, head = excluded.head, record = excluded.record
      """,
      [
        id, version.record.id.bytes, bytes(version.record.slot), signed(version.seq), isHead,
        try encode(version.record),
      ])
  }

  func heads(of slot: String) throws -> [VersionID] {
    let rows = try rows(
      "SELECT id FROM version WHERE container = ? AND slot = ? AND head = 1 ORDER BY id", [id, bytes(slot)])
    return try rows.map { try identifier($0.decode(atIndex: 0)) }
  }

  func isCovered(_ version: VersionID) throws -> Bool {
    try row("SELECT 1 FROM covered WHERE container = ? AND id = ?", [id, version.bytes]) != nil
  }

  mutating func markCovered(_ version: VersionID) throws {
    try run("INSERT OR IGNORE INTO covered (container, id) VALUES (?, ?)", [id, version.bytes])
    try run("UPDATE version SET head = 0 WHERE container = ? AND id = ? AND head = 1", [id, version.bytes])
  }

  // MARK: Contents

  func hasContent(_ hash: ContentHash) throws -> Bool {
    let found = try row("SELECT file, suspect FROM content WHERE container = ? AND hash = ?", [id, hash.bytes])
    // A content that a device received damaged is still served, but nothing may depend on it before it was put again.
    guard let found, try found.decode(Int.self, atIndex: 1) == 0 else { return false }
    // A content whose file is gone counts as missing: some device still has it, and sends it again.
    guard let name = try found.decode(String?.self, atIndex: 0) else { return true }
    return try files.file(named: name) != nil
  }

  /// Removes a content whose file is gone, or that is damaged, so that it can be stored again.
  private mutating func forgetLost(_ hash: ContentHash) throws {
    if try !hasContent(hash) { try removeContent(hash) }
  }

  private mutating func removeContent(_ hash: ContentHash) throws {
    let found = try row("DELETE FROM content WHERE container = ? AND hash = ? RETURNING file", [id, hash.bytes])
    if let name = try found?.decode(String?.self, atIndex: 0) ?? nil { removedFiles.append(name) }
  }

  func content(_ hash: ContentHash) throws -> EncodedContent? {
    guard let kept = try keptContent(hash) else { return nil }
    return EncodedContent(hash: hash, length: kept.length, base: kept.base, bytes: try files.bytes(of: kept))
  }

  /// Returns the content as it is stored, a large one as its file.
  func keptContent(_ hash: ContentHash) throws -> KeptContent? {
    let found = try row(
      "SELECT length, base, bytes, file FROM content WHERE container = ? AND hash = ?", [id, hash.bytes])
    guard let found else { return nil }
    let bytes: KeptContent.Bytes
    if let name = try found.decode(String?.self, atIndex: 3) {
      guard let file = try files.file(named: name) else { return nil }
      bytes = file
    } else {
      bytes = .memory(try found.decode(Data?.self, atIndex: 2) ?? Data())
    }
    return KeptContent(
      hash: hash, length: try found.decode(atIndex: 0),
      base: try found.decode(Data?.self, atIndex: 1).flatMap(ContentHash.init(bytes:)), bytes: bytes)
  }

  mutating func putContent(_ content: EncodedContent) throws {
    try forgetLost(content.hash)
    try run(
      """
      INSERT INTO content (container, hash, length, base, bytes, size, taken) VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (container, hash) DO NOTHING
      """, [id, content.hash.bytes, content.length, content.base?.bytes, content.bytes, content.bytes.count, now])
  }

  /// Throws `MissingBase` unless the base of a delta is here.
  func requireBase(_ base: ContentHash?) throws {
    if let base, try !hasContent(base) { throw MissingBase(base: base) }
  }

  /// Stores a content whose bytes are in a file; returns false if it was here already.
  mutating func putContent(_ content: KeptContent, fileName: String, count: Int) throws -> Bool {
    if try hasContent(content.hash) { return false }
    try forgetLost(content.hash)
    try run(
      "INSERT INTO content (container, hash, length, base, file, size, taken) VALUES (?, ?, ?, ?, ?, ?, ?)",
      [id, content.hash.bytes, content.length, content.base?.bytes, fileName, count, now])
    return true
  }

  // MARK: Devices

  func reached() throws -> [DeviceID: UInt64] {
    let rows = try rows("SELECT id, reached FROM device WHERE container = ? AND reached > 0", [id])
    return try rows.reduce(into: [:]) {
      $0[try identifier($1.decode(atIndex: 0))] = unsigned(try $1.decode(atIndex: 1))
    }
  }

  mutating func setReached(_ seq: UInt64, by device: DeviceID) throws {
    // The row exists: a device is recorded before its request is processed. An unchanged value isn't written again.
    try run(
      "UPDATE device SET reached = ?3 WHERE container = ?1 AND id = ?2 AND reached <> ?3",
      [id, device.bytes, signed(seq)])
  }

  // MARK: Changes

  func changes(after seq: UInt64, limit: Int) throws -> [CloudChange] {
    guard limit > 0, seq < Cursor.maximumSeq else { return [] }
    let rows = try rows(
      """
      SELECT seq, collection, key, state FROM cell WHERE container = ?1 AND seq > ?2
      UNION ALL
      SELECT seq, NULL, NULL, record FROM version WHERE container = ?1 AND seq > ?2
      ORDER BY seq LIMIT ?3
      """, [id, signed(seq), limit])
    return try rows.map { row in
      let item: CloudChange.Item
      if let collection = try row.decode(Data?.self, atIndex: 1), let key = try row.decode(Data?.self, atIndex: 2) {
        let key = CellKey(
          collection: String(decoding: collection, as: UTF8.self), key: String(decoding: key, as: UTF8.self))
        item = .cell(CellUpdate(key: key, state: try decode(CellState.self, row.decode(atIndex: 3))))
      } else {
        item = .version(try decode(VersionRecord.self, row.decode(atIndex: 3)))
      }
      return CloudChange(seq: unsigned(try row.decode(atIndex: 0)), item: item)
    }
  }
}

// MARK: Rows and values

extension SQLiteContainer {
  func row(_ sql: String, _ arguments: StatementArguments) throws -> Row? {
    try Row.fetchOne(db.cachedStatement(sql: sql), arguments: arguments)
  }

  func rows(_ sql: String, _ arguments: StatementArguments) throws -> [Row] {
    try Row.fetchAll(db.cachedStatement(sql: sql), arguments: arguments)
  }

  func run(_ sql: String, _ arguments: StatementArguments) throws {
    try db.cachedStatement(sql: sql).execute(arguments: arguments)
  }

  func bytes(_ text: String) -> Data { Data(text.utf8) }

  func signed(_ value: UInt64) -> Int64 { Int64(bitPattern: value) }

  func unsigned(_ value: Int64) -> UInt64 { UInt64(bitPattern: value) }

  func identifier<Kind>(_ bytes: Data) throws -> Identifier<Kind> {
    guard let identifier = Identifier<Kind>(bytes: bytes) else {
      throw ServerError(.damaged, "An identifier in the database has \(bytes.count) bytes instead of 16.")
    }
    return identifier
  }

  func contentHash(_ bytes: Data) throws -> ContentHash {
    guard let hash = ContentHash(bytes: bytes) else {
      throw ServerError(.damaged, "A content's hash in the database has \(bytes.count) bytes instead of 32.")
    }
    return hash
  }

  func encode(_ value: some Encodable) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return try encoder.encode(value)
  }

  func decode<Value: Decodable>(_ type: Value.Type, _ bytes: Data) throws -> Value {
    do {
      return try JSONDecoder().decode(type, from: bytes)
    } catch {
      throw ServerError(.damaged, "A row of the database can't be read.", cause: error)
    }
  }
}
#endif
