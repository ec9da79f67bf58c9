#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
// GRDB has a type of this name, too.
import struct KeepsakeReplication.Cursor

/// The rows of one container in SQLite, valid inside the transaction that it was created for.
struct SQLiteContainer: BankStorage {
  let db: Database
  let id: Data
  /// What remains of the container's id once everything of the player was deleted.
  let deletedMark: Data
  /// By which the rows of its items name it; 0 while it has no row.
  private(set) var number: Int64 = 0
  /// Its row as it was when this was created, or when `findRow` was called; nil while it has none.
  private(set) var found: Found?
  let files: ContentFiles
  let now: Int64
  /// Of how many decided operations the details are kept, at least.
  var detailedDecisions = ServerLimits.detailedDecisions
  /// Files that no row names any more once the transaction has committed.
  var removedFiles: [String] = []
  /// Takes what a studio's backends are told; nil if there are none.
  var outbox: WebhookOutbox?
  /// Whether it has got anything.
  var hasEvents = false

  init(_ container: ContainerID, in db: Database, files: ContentFiles, now: Int64) throws {
    self.db = db
    self.files = files
    self.now = now
    (id, deletedMark) = (container.bytes, container.deletedMark)
    try findRow()
  }

  /// Reads the container's row, once it has one.
  mutating func findRow() throws {
    let found = try row("SELECT number, epoch, seq, mark, revision, used, reached FROM container WHERE id = ?", [id])
    guard let found else { return }
    number = try found.decode(atIndex: 0)
    self.found = Found(
      position: Cursor(
        epoch: unsigned(try found.decode(atIndex: 1)), seq: unsigned(try found.decode(atIndex: 2)),
        mark: unsigned(try found.decode(atIndex: 3))),
      revision: unsigned(try found.decode(atIndex: 4)), used: try found.decode(atIndex: 5),
      reached: try found.decode(atIndex: 6))
  }

  // MARK: Position

  /// What a container's row says.
  struct Found {
    var position: Cursor
    var revision: UInt64
    var used: Int64
    /// Packed; decoded only if it is asked for.
    var reached: Data
  }

  func position() throws -> Cursor {
    guard let row = try row("SELECT epoch, seq, mark FROM container WHERE number = ?", [number]) else { return .start }
    return try Cursor(
      epoch: unsigned(row.decode(atIndex: 0)), seq: unsigned(row.decode(atIndex: 1)),
      mark: unsigned(row.decode(atIndex: 2)))
  }

  func mark(of seq: UInt64) throws -> UInt64? {
    if seq == 0 { return 0 }
    return try row(
      """
      SELECT mark FROM version WHERE container = ?1 AND seq = ?2
      UNION ALL SELECT mark FROM cell WHERE container = ?1 AND seq = ?2
      UNION ALL SELECT mark FROM mark WHERE container = ?1 AND seq = ?2
      LIMIT 1
      """, [number, signed(seq)]
    ).map { unsigned(try $0.decode(atIndex: 0)) }
  }

  // MARK: Cells

  func cell(_ key: CellKey) throws -> SequencedCell? {
    let found = try row(
      "SELECT seq, state FROM cell WHERE container = ? AND collection = ? AND key = ?",
      [number, bytes(key.collection), bytes(key.key)])
    guard let found else { return nil }
    let state = try decode(CellState.self, found.decode(atIndex: 1))
    return SequencedCell(update: CellUpdate(key: key, state: state), seq: unsigned(try found.decode(atIndex: 0)))
  }

  // MARK: Versions

  private static let isHead = """
    EXISTS (
      SELECT 1 FROM head
      WHERE head.container = version.container AND head.slot = version.slot AND head.version = version.number
    )
    """
  /// What ``sequencedVersion(_:)`` reads, whether it is a head, and the seq with which it was accepted if that is
  /// another.
  static let versionColumns = "seq, id, slot, record, \(isHead), accepted"

  /// Returns a version, and whether it is a head.
  func versionAndHead(_ version: VersionID) throws -> (SequencedVersion, isHead: Bool)? {
    let found = try row(
      "SELECT \(Self.versionColumns) FROM version WHERE container = ? AND id = ?", [number, version.bytes])
    return try found.map { (try sequencedVersion($0), try $0.decode(atIndex: 4)) }
  }

  /// Reads a row that begins with seq, id, slot and record.
  func sequencedVersion(_ row: Row) throws -> SequencedVersion {
    SequencedVersion(record: try record(row, at: 1), seq: unsigned(try row.decode(atIndex: 0)))
  }

  /// Reads the id, the slot and the record of a row from this column on.
  func record(_ row: Row, at index: Int) throws -> VersionRecord {
    let slot = String(decoding: try row.decode(Data.self, atIndex: index + 1), as: UTF8.self)
    do {
      return try PackedRecord(bytes: row.decode(atIndex: index + 2)).record(
        id: identifier(row.decode(atIndex: index)), slot: slot)
    } catch let error as PackedRecord.Damaged {
      throw ServerError(.damaged, "A row of the database can't be read.", cause: error)
    }
  }

  func slot(of version: VersionID) throws -> String? {
    try row("SELECT slot FROM version WHERE container = ? AND id = ?", [number, version.bytes])
      .map { String(decoding: try $0.decode(Data.self, atIndex: 0), as: UTF8.self) }
  }

  /// Returns whether a version that isn't here is covered.
  func isUnknownCovered(_ version: VersionID) throws -> Bool {
    try row("SELECT 1 FROM covered WHERE container = ? AND id = ?", [number, version.bytes]) != nil
  }

  // MARK: Contents

  /// Selects the content with a hash: what is found by the first bytes of it has the rest, too.
  static let isNamed = "container = ?1 AND substr(hash, 1, 8) = substr(?2, 1, 8) AND hash = ?2"
  /// The hash of a content's base, which is the base's number if that is here. Empty for a base that is gone.
  static let base = """
    CASE typeof(content.base) WHEN 'integer'
    THEN ifnull((SELECT hash FROM content AS base WHERE base.number = content.base), x'') ELSE content.base END
    """

  func hasContent(_ hash: ContentHash) throws -> Bool {
    let found = try row("SELECT file, suspect FROM content WHERE \(Self.isNamed)", [number, hash.bytes])
    // A content that a device received damaged is still served, but nothing may depend on it before it was put again.
    guard let found, try found.decode(Int.self, atIndex: 1) == 0 else { return false }
    // A content whose file is gone counts as missing: some device still has it, and sends it again.
    guard let name = try found.decode(String?.self, atIndex: 0) else { return true }
    return try files.file(named: name) != nil
  }

  /// Returns the content as it is stored, a large one as its file.
  func keptContent(_ hash: ContentHash) throws -> KeptContent? {
    let found = try row(
      "SELECT length, \(Self.base), bytes, file FROM content WHERE \(Self.isNamed)", [number, hash.bytes])
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
      base: try found.decode(Data?.self, atIndex: 1).map(contentHash), bytes: bytes)
  }

  // MARK: Changes

  /// A change as it is stored.
  struct StoredChange {
    var change: CloudChange
    /// Of the container when it was made.
    var mark: UInt64
    /// Whether it is a version that is a head.
    var isHead: Bool
    var bytes: Int
  }

  func changes(after seq: UInt64, limit: Int) throws -> [CloudChange] {
    var changes: [CloudChange] = []
    try eachChange(after: seq) { change in
      guard changes.count < limit else { return false }
      changes.append(change.change)
      return true
    }
    return changes
  }

  /// Calls `body` with each change after a seq, in their order, until it returns false.
  func eachChange(after seq: UInt64, _ body: (StoredChange) throws -> Bool) throws {
    guard seq < Cursor.maximumSeq else { return }
    let rows = try Row.fetchCursor(
      db.cachedStatement(
        sql: """
          SELECT seq, mark, 0, collection, key, state FROM cell WHERE container = ?1 AND seq > ?2
          UNION ALL
          SELECT seq, mark, 1 + \(Self.isHead), id, slot, record FROM version WHERE container = ?1 AND seq > ?2
          ORDER BY seq
          """), arguments: [number, signed(seq)])
    while let row = try rows.next() {
      let kind = try row.decode(Int.self, atIndex: 2)
      let item: CloudChange.Item
      if kind == 0 {
        let key = CellKey(
          collection: String(decoding: try row.decode(Data.self, atIndex: 3), as: UTF8.self),
          key: String(decoding: try row.decode(Data.self, atIndex: 4), as: UTF8.self))
        item = .cell(CellUpdate(key: key, state: try decode(CellState.self, row.decode(atIndex: 5))))
      } else {
        item = .version(try record(row, at: 3))
      }
      let change = StoredChange(
        change: CloudChange(seq: unsigned(try row.decode(atIndex: 0)), item: item),
        mark: unsigned(try row.decode(atIndex: 1)), isHead: kind == 2,
        bytes: try row.decode(Data.self, atIndex: 5).count)
      guard try body(change) else { return }
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

  func encode(_ value: some Encodable) throws -> Data { try EncodedRows.encode(value) }

  func decode<Value: Decodable>(_ type: Value.Type, _ bytes: Data) throws -> Value {
    do {
      return try JSONDecoder().decode(type, from: bytes)
    } catch {
      throw ServerError(.damaged, "A row of the database can't be read.", cause: error)
    }
  }
}
#endif
