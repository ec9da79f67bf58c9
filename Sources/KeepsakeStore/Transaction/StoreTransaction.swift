import Foundation
import GRDB
package import KeepsakeReplication

/// A store within one SQLite transaction: what the device's decisions read and write.
///
/// `Store.read` and `Store.write` pass it to a closure; it is invalid after that. Its methods throw `StoreError`.
package struct StoreTransaction: DeviceStorage {
  let database: Database
  let contents: ContentTable
  var context: StoreContext { contents.context }
  let codec: RowCodec
  /// Slots whose versions changed: their history is pruned before the transaction commits.
  var touchedSlots: [String] { touched.map { String(decoding: $0, as: UTF8.self) }.sorted() }
  /// As bytes, because names of files from elsewhere may differ and still compare equal as strings.
  private var touched: Set<Data> = []
  /// Versions of which only the record is here.
  private(set) var lacking: Set<VersionID> = []
  /// Whether a version was replaced of which only the record was here.
  var hasReplacedNotDownloaded = false
  private let known = KnownRows()
  /// The numbers of operations that the last change of the wallet removed from its lists, because they are decided, or
  /// moved.
  var leavingNumbers: [OperationID: Int64] = [:]

  init(_ database: Database, in context: StoreContext) {
    self.database = database
    contents = ContentTable(database: database, context: context)
    codec = RowCodec(seal: context.seal)
  }

  // MARK: Facts

  package func facts() throws -> DeviceFacts { try fact("facts") ?? DeviceFacts() }

  package mutating func setFacts(_ facts: DeviceFacts) throws { try setFact("facts", facts) }

  /// Returns a value that the store's owner keeps beside the rest, such as the names of credentials; nil if it was
  /// never set.
  package func fact<Value: Decodable>(_ name: String) throws -> Value? {
    let body = try Data.fetchOne(statement("SELECT body FROM fact WHERE name = ?"), arguments: [name])
    return try body.map { try codec.decode(Value.self, from: $0, place: RowIdentity.fact(name)) }
  }

  package mutating func setFact(_ name: String, _ value: some Encodable) throws {
    let body = try codec.encode(value, place: RowIdentity.fact(name))
    try run("INSERT OR REPLACE INTO fact (name, body) VALUES (?, ?)", [name, body])
  }

  // MARK: Cells

  package func cell(_ key: CellKey) throws -> CellState? {
    let statement = try statement("SELECT body FROM cell WHERE collection = ? AND key = ?")
    let body = try Data.fetchOne(statement, arguments: [key.collection, key.key])
    return try body.map { try codec.decode(CellState.self, from: $0, place: RowIdentity.cell(key)) }
  }

  package func cells(in collection: String?) throws -> [CellUpdate] {
    let statement = try statement(
      "SELECT collection, key, body FROM cell WHERE ?1 IS NULL OR collection = ?1 ORDER BY collection, key")
    let rows = try Row.fetchAll(statement, arguments: [collection])
    let cells = try rows.map { row in
      let key = CellKey(collection: try row.checked("collection"), key: try row.checked("key"))
      return CellUpdate(
        key: key, state: try codec.decode(CellState.self, from: try row.checked("body"), place: RowIdentity.cell(key)))
    }
    // SQLite sorts by bytes, Swift by canonical equivalence.
    return cells.sorted { $0.key < $1.key }
  }

  package mutating func setCell(_ update: CellUpdate) throws {
    if update.key.collection == ScoreEntry.collection { try showBest(update) }
    let body = try codec.encode(update.state, place: RowIdentity.cell(update.key))
    try run(
      "INSERT OR REPLACE INTO cell (collection, key, body) VALUES (?, ?, ?)",
      [update.key.collection, update.key.key, body])
  }

  // MARK: Versions

  package func version(_ id: VersionID) throws -> StoredVersion? {
    try knownRow(of: id).map(storedVersion)
  }

  private func knownRow(of id: VersionID) throws -> VersionRow? {
    if let known = known.rows[id] { return known }
    let row = try row(of: id)
    known.keep(row, of: id)
    return row
  }

  private static let rowQuery = "SELECT \(VersionRow.columns) FROM version WHERE id = ?"

  private func row(of id: VersionID) throws -> VersionRow? {
    try database.first(Self.rowQuery, id.bytes) { try VersionRow($0) }
  }

  /// Whether a version was ever committed or received here, even if its record has been pruned since. Reads no record.
  package func isKnown(_ id: VersionID) throws -> Bool {
    let statement = try statement(
      "SELECT EXISTS (SELECT 1 FROM version WHERE id = ?1) OR EXISTS (SELECT 1 FROM covered WHERE id = ?1)")
    return try Bool.fetchOne(statement, arguments: [id.bytes]) ?? false
  }

  package mutating func putVersion(_ version: StoredVersion) throws {
    let id = version.record.id
    guard let known = try knownRow(of: id) else { return try putVersion(version, marks: VersionMarks()) }
    guard known.slot == version.record.slot else {
      throw StoreError(.misuse, "the version \(id) belongs to another slot")
    }
    // A version on its way to a cloud is put several times with nothing but other marks.
    if let stored = context.records.record(in: known), stored == version.record {
      return try putMarks(of: version, in: known, with: stored)
    }
    try putVersion(version, marks: known.marks)
  }

  /// Changes the marks that follow from a version whose record is stored as it is. What is kept of its slot's past
  /// doesn't depend on them.
  ///
  /// - Parameter record: The stored record, whose texts may be spelled in other scalars than those of an equal one.
  private mutating func putMarks(
    of version: StoredVersion, in known: VersionRow, with record: VersionRecord
  ) throws {
    var row = known
    (row.marks.acknowledged, row.marks.offered) = (version.acknowledged, version.offered)
    let place = row.place
    row.body = try codec.body(of: codec.json(in: known.body, place: known.place), place: place)
    try statement("UPDATE version SET body = ?, acknowledged = ?, offered = ? WHERE id = ?")
      .execute(arguments: [row.body, row.marks.acknowledged, row.marks.offered, row.id.bytes])
    self.known.keep(row, of: row.id)
    context.records.insert(record, as: row)
    if !row.marks.pruned, try !version.record.contents.allSatisfy(contents.has) { lacking.insert(row.id) }
  }

  /// Stores a version. `pruned` and `pinned` state whether its contents are kept, and whether they must be.
  mutating func putVersion(_ version: StoredVersion, pruned: Bool, pinned: Bool, notDownloaded: Bool = false) throws {
    try putVersion(version, marks: VersionMarks(pruned: pruned, pinned: pinned, notDownloaded: notDownloaded))
  }

  /// Stores a version with those marks that don't follow from the version itself.
  mutating func putVersion(_ version: StoredVersion, marks: VersionMarks) throws {
    let record = version.record
    touched.insert(Data(record.slot.utf8))
    var marks = marks
    (marks.acknowledged, marks.offered, marks.tombstone) = (version.acknowledged, version.offered, record.tombstone)
    let place = RowIdentity.version(record.id, slot: record.slot, savedAt: record.savedAtMilliseconds, marks: marks)
    let body = try codec.encode(record, place: place)
    let row = VersionRow(record, marks: marks, body: body)
    try run(VersionRow.upsert, row.arguments)
    context.records.insert(record, as: row)
    if !marks.pruned, try !record.contents.allSatisfy(contents.has) { lacking.insert(record.id) }
    try showHead(record)
    try useContents(of: record)
  }

  /// Records a version as a head of its slot if nothing covers it.
  private func showHead(_ record: VersionRecord) throws {
    try run(
      "INSERT OR IGNORE INTO head (slot, id) SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM covered WHERE id = ?2)",
      [record.slot, record.id.bytes])
  }

  /// Pins a version that is kept whole, or subjects it to the rules for history again. Throws `missing` if it isn't
  /// kept whole here.
  package mutating func setPinned(_ pinned: Bool, _ id: VersionID) throws {
    guard let version = try version(id), try isPruned(id) == false, try version.record.contents.allSatisfy(contents.has)
    else {
      throw StoreError(.missing, "the version \(id) isn't in this store")
    }
    try putVersion(version, pruned: false, pinned: pinned)
  }

  /// Returns whether only the record of a version is kept; nil for a version that isn't here.
  func isPruned(_ id: VersionID) throws -> Bool? {
    try Bool.fetchOne(statement("SELECT thinned FROM version WHERE id = ?"), arguments: [id.bytes])
  }

  /// Returns the pinned versions of a slot.
  package func pinnedVersions(of slot: String) throws -> Set<VersionID> {
    try Set(identifiers("SELECT id FROM version WHERE slot = ? AND thinned = 0 AND pinned", [slot]))
  }

  /// Holds the contents of a version until it is pruned.
  func useContents(of record: VersionRecord) throws {
    for hash in record.contents {
      try run(
        """
        INSERT OR IGNORE INTO content_use (hash, version)
        SELECT ?, id FROM version WHERE id = ? AND NOT thinned
        """, [hash.bytes, record.id.bytes])
    }
  }

  package func slots() throws -> [String] {
    // Steps from one name to the next by the index: a slot may have thousands of records.
    let statement = try statement(
      """
      WITH RECURSIVE name (slot) AS (
        SELECT MIN(slot) FROM version
        UNION ALL SELECT (SELECT MIN(slot) FROM version WHERE slot > name.slot) FROM name WHERE slot IS NOT NULL)
      SELECT slot FROM name WHERE slot IS NOT NULL
      """)
    return try String.fetchAll(statement).sorted()
  }

  package func heads(of slot: String) throws -> [VersionID] {
    try database.all(Self.slotHeadsQuery, slot) { columns in
      try Self.refuseCovered(columns.flag(1, "mark"))
      return try Self.versionID(columns.data(0, "id"))
    }
  }

  private static let slotHeadsQuery = "SELECT id, \(isHeadCovered) FROM head WHERE slot = ? ORDER BY id"
  static let isHeadCovered = "EXISTS (SELECT 1 FROM covered WHERE covered.id = head.id)"

  /// The table of heads derives from others and has no seal of its own, so it is checked on every opening and whenever
  /// it is read.
  static func refuseCovered(_ isCovered: Bool) throws {
    guard !isCovered else {
      throw StoreError(
        .damaged, "the record of which saves are the newest is wrong: close and reopen the store to correct it")
    }
  }

  package func isCovered(_ id: VersionID) throws -> Bool {
    try database.exists("SELECT 1 FROM covered WHERE id = ?", id.bytes)
  }

  package mutating func markCovered(_ id: VersionID) throws {
    try run("INSERT OR IGNORE INTO covered (id, checksum) VALUES (?, ?)", [id.bytes, CoveredRow.checksum(of: id)])
    guard
      let row = try Row.fetchOne(statement("SELECT slot, deferred FROM version WHERE id = ?"), arguments: [id.bytes])
    else { return }
    let slot: String = try row.checked(at: 0, "slot")
    touched.insert(Data(slot.utf8))
    try run("DELETE FROM head WHERE slot = ? AND id = ?", [slot, id.bytes])
    if try row.checked(at: 1, "deferred") { try pruneReplaced(id) }
  }

  package func unacknowledgedVersions() throws -> [VersionID] {
    try identifiers("SELECT id FROM version WHERE acknowledged = 0 ORDER BY id", [])
  }

  package func unofferedVersions() throws -> [VersionID] {
    try identifiers("SELECT id FROM version WHERE acknowledged = 0 AND NOT offered ORDER BY id", [])
  }

  /// Returns the versions of a slot that are kept whole, newest first in the order in which this store learned of them.
  package func history(of slot: String) throws -> [StoredVersion] {
    try database.all(Self.historyQuery, slot) { try VersionRow($0) }.map(storedVersion)
  }

  private static let historyQuery =
    "SELECT \(VersionRow.columns) FROM version WHERE slot = ? AND thinned = 0 ORDER BY position DESC"

  func versions(_ sql: String, _ arguments: StatementArguments) throws -> [StoredVersion] {
    try Row.fetchAll(statement(sql), arguments: arguments).map { try storedVersion(VersionRow($0)) }
  }

  // MARK: Outbox

  package func outbox(limit: Int) throws -> [OutboxGroup] {
    let rows = try Row.fetchAll(
      statement("SELECT id, body FROM outbox ORDER BY id LIMIT ?"), arguments: [max(limit, 0)])
    return try rows.map(outboxGroup)
  }

  func outboxGroup(_ id: Int64) throws -> OutboxGroup? {
    try Row.fetchOne(statement("SELECT id, body FROM outbox WHERE id = ?"), arguments: [id]).map(outboxGroup)
  }

  package func outboxCount() throws -> Int { try Int.fetchOne(statement("SELECT COUNT(*) FROM outbox")) ?? 0 }

  package func newestOutboxGroup() throws -> OutboxGroup? {
    try Row.fetchOne(statement("SELECT id, body FROM outbox ORDER BY id DESC LIMIT 1")).map(outboxGroup)
  }

  package mutating func appendToOutbox(_ group: OutboxGroup) throws {
    // The group's number must be known before its body, whose checksum covers it.
    try run("INSERT INTO outbox (body) VALUES (x'')", [])
    var numbered = group
    numbered.id = database.lastInsertedRowID
    try updateOutbox(numbered)
  }

  package mutating func updateOutbox(_ group: OutboxGroup) throws {
    let body = try codec.encode(group, place: RowIdentity.outbox(group.id))
    try run("UPDATE outbox SET body = ? WHERE id = ?", [body, group.id])
    context.commits.didWrite(group, as: body)
  }

  package mutating func removeFromOutbox(_ id: Int64) throws {
    try run("DELETE FROM outbox WHERE id = ?", [id])
    context.commits.didRemoveGroup(id)
  }

  // MARK: Staged

  package func hasStaged() throws -> Bool { try Row.fetchOne(statement("SELECT 1 FROM staged LIMIT 1")) != nil }

  package func staged() throws -> [CloudChange] {
    let rows = try Row.fetchAll(statement("SELECT position, body FROM staged ORDER BY position"))
    return try rows.map { row in
      try codec.decode(CloudChange.self, from: try row.checked("body"), place: RowIdentity.staged)
    }
  }

  package mutating func stage(_ changes: [CloudChange]) throws {
    for change in changes {
      try run("INSERT INTO staged (body) VALUES (?)", [codec.encode(change, place: RowIdentity.staged)])
      guard case .version(let record) = change.item else { continue }
      for hash in record.contents { try run("INSERT OR IGNORE INTO awaited (hash) VALUES (?)", [hash.bytes]) }
    }
  }

  package mutating func clearStaged() throws {
    try run("DELETE FROM staged", [])
    try recordAwaited()
  }

  // MARK: -

  func statement(_ sql: String) throws -> Statement { try database.cachedStatement(sql: sql) }

  func run(_ sql: String, _ arguments: StatementArguments) throws {
    known.forget()
    try statement(sql).execute(arguments: arguments)
  }

  func identifiers(_ sql: String, _ arguments: StatementArguments) throws -> [VersionID] {
    try Data.fetchAll(statement(sql), arguments: arguments).map(Self.versionID)
  }

  static func versionID(_ bytes: Data) throws -> VersionID {
    guard let id = VersionID(bytes: bytes) else {
      throw StoreError(.damaged, "a version of the store has an invalid id")
    }
    return id
  }

  private func storedVersion(_ found: VersionRow) throws -> StoredVersion {
    if let record = context.records.record(in: found) { return stored(record, found.marks) }
    let record = try codec.decode(VersionRecord.self, from: found.body, place: found.place)
    context.records.insert(record, as: found)
    return stored(record, found.marks)
  }

  private func stored(_ record: VersionRecord, _ marks: VersionMarks) -> StoredVersion {
    StoredVersion(record: record, acknowledged: marks.acknowledged, offered: marks.offered)
  }

  private func outboxGroup(_ row: Row) throws -> OutboxGroup {
    let id: Int64 = try row.checked("id")
    let body: Data = try row.checked("body")
    if let group = context.commits.group(id, in: body) { return group }
    var group = try codec.decode(OutboxGroup.self, from: body, place: RowIdentity.outbox(id))
    group.id = id
    context.commits.didRead(group, in: body)
    return group
  }
}
