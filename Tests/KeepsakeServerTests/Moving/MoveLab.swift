#if Cloud && PostgreSQL
import Foundation
import GRDB
import KeepsakePostgreSQL
import KeepsakeReplication
import KeepsakeSimulation
import Logging
import TestSupport
import Testing

@testable import KeepsakeServer

/// A data folder and an empty PostgreSQL database, between which a cloud is moved.
struct MoveLab: Sendable {
  let folder: URL
  let address: String

  var data: URL { folder.appendingPathComponent("cloud") }
  var request: CloudMove.Request { CloudMove.Request(data: data, address: address) }

  static func with(_ body: (MoveLab) async throws -> Void) async throws {
    try await TemporaryFolder.with { folder in
      let name = "s\(UUID().uuidString.lowercased().filter { $0 != "-" })"
      let lab = MoveLab(folder: folder, address: try TestDatabase.address(ofSchema: name))
      let contents = lab.data.appendingPathComponent(DataFolder.contentsName)
      try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
      try await body(lab)
      try TestDatabase.drop(schema: name)
    }
  }

  func storage() throws -> SQLiteCloudStorage { try Self.storage(in: data) }

  static func storage(in data: URL) throws -> SQLiteCloudStorage {
    try SQLiteCloudStorage(
      database: data.appendingPathComponent(DataFolder.databaseName),
      contents: data.appendingPathComponent(DataFolder.contentsName),
      witness: data.appendingPathComponent(DataFolder.witnessName),
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
  }

  func count(_ table: String) throws -> Int64 {
    let rows = try PostgreSQLConnection(TestDatabase.settings(address)).run([
      PostgreSQLStatement("SELECT count(*) FROM \(table)")
    ])
    return try #require(rows[0].first).int(0)
  }

  /// Runs a statement in the PostgreSQL database, as somebody could who has it.
  @discardableResult
  func run(_ sql: String, _ values: [PostgreSQLValue] = []) throws -> PostgreSQLRows {
    try PostgreSQLConnection(TestDatabase.settings(address)).run([PostgreSQLStatement(sql, values)])[0]
  }

  /// What the PostgreSQL database says of a move; nil if it says nothing.
  func step() throws -> CloudMoveState.Step? {
    try run("SELECT state FROM cloud_move").first.flatMap { CloudMoveState.Step(rawValue: try $0.int(0)) }
  }

  /// Makes a cloud in the PostgreSQL database, with one player, who gets one more gem each time.
  func addGem() async throws {
    let storage = try await TestDatabase.storage(at: address)
    try await storage.addGem(to: MoveWriters.container(1), mark: 7)
    try await storage.close()
  }

  /// Builds the fence, as the last step of a move does that is killed after that.
  func fence() async throws {
    let queue = try AdminDatabase.open(data)
    try await queue.write { db in
      try CloudFence.build(in: db, target: "there")
      try ChangeCapture.setFenced(1, in: db)
    }
    try queue.close()
  }

  /// Has folder and database say that the cloud goes there, as a move back does that is killed after that.
  func leave(to data: URL) async throws {
    try FileManager.default.createDirectory(at: data, withIntermediateDirectories: true)
    let mark = ReturnMark(id: ChangeCapture.randomID(), origin: CloudMove.name(of: address))
    try mark.write(data)
    let pool = PostgreSQLPool(TestDatabase.settings(address), connections: 1)
    do {
      try await CloudMoveState.leave(pool, to: data.path, mark.id)
    } catch {
      await pool.finish()
      throw error
    }
    await pool.finish()
  }

  /// What the database says of its cloud.
  func state() async throws -> CloudMoveState? {
    let pool = PostgreSQLPool(TestDatabase.settings(address), connections: 1)
    do {
      let state = try await CloudMoveState.read(pool)
      await pool.finish()
      return state
    } catch {
      await pool.finish()
      throw error
    }
  }

  /// What a server is told that is started with the database; nil if it may use it.
  func refusal() async -> ServerError? {
    do {
      _ = try await CloudMoveState.awaitFinished(TestDatabase.settings(address), logger: Logger(label: "test"))
      return nil
    } catch {
      return error as? ServerError
    }
  }

  func isFenced() throws -> Bool {
    let queue = try AdminDatabase.open(data)
    let isFenced = try queue.read { try CloudFence.target(in: $0) != nil }
    try queue.close()
    return isFenced
  }

  // MARK: A cloud with everything

  /// Fills each column of each table, by what the database says of its tables and not by what is moved.
  func fill(_ owners: [ContainerID]) throws {
    let queue = try AdminDatabase.open(data)
    var random = SeededGenerator(seed: 5)
    try queue.write { db in
      for table in try Self.tables(in: db) {
        let columns = try Self.columns(of: table, in: db)
        for owner in owners.map(\.bytes) + (table == "receipt" ? [Data()] : []) {
          let isOne = ["container", "ban", "recovery"].contains(table)
          for index in 0..<(isOne ? 1 : 4) {
            try Self.insert(columns, into: table, of: owner, index, &random, db)
          }
        }
      }
      try CloudNumber.bankEpoch.set(77, in: db)
      try CloudNumber.auditRows.set(1_000, in: db)
      // Of each owner, one content leans on another one, and one on what isn't here.
      try db.execute(
        sql: """
          UPDATE content SET base = (SELECT min(number) FROM content AS first WHERE first.container = content.container)
          WHERE number % 4 = 2;
          UPDATE content SET base = randomblob(32) WHERE number % 4 = 3;
          INSERT INTO head (container, slot, version) SELECT container, slot, number FROM version WHERE number % 3 = 0;
          """)
      for (index, owner) in owners.enumerated() { try addFiles(of: owner, index, db) }
    }
    try queue.close()
  }

  private static func insert(
    _ columns: [Column], into table: String, of owner: Data, _ index: Int, _ random: inout SeededGenerator,
    _ db: Database
  ) throws {
    var values: [DatabaseValue] = [owner.databaseValue]
    var (names, places): ([String], [String]) = ([], [])
    for column in columns {
      names.append(column.name)
      if column.name == (table == "shared" ? "parent" : table == "container" ? "id" : "container") {
        places.append(
          column.type == "INTEGER" ? "(SELECT number FROM container WHERE id = ?1)" : "?1")
        continue
      }
      places.append("?\(values.count + 1)")
      values.append(value(of: column, table, owner, index, &random))
    }
    try db.execute(
      sql: "INSERT INTO \(table) (\(names.joined(separator: ", "))) VALUES (\(places.joined(separator: ", ")))",
      arguments: StatementArguments(values))
  }

  private static func value(
    of column: Column, _ table: String, _ owner: Data, _ index: Int, _ random: inout SeededGenerator
  ) -> DatabaseValue {
    switch "\(table).\(column.name)" {
    case "content.base", "content.file": return .null
    case "container.reached":
      let devices = (0..<3).map { (DeviceID(high: $0, low: random.next()), random.next() as UInt64) }
      return PackedReached(Dictionary(devices) { $1 }).bytes.databaseValue
    case "audit.number": return Int64.random(in: 1 ... .max, using: &random).databaseValue
    case "container.revision": return Int64.random(in: 1...9, using: &random).databaseValue
    default: break
    }
    if !column.isRequired, index == 1 { return .null }
    switch column.type {
    case "INTEGER":
      let flags = ["holds", "suspect", "current", "pruned"]
      return flags.contains(column.name)
        ? Int64(index % 2).databaseValue
        : (index == 0 ? Int64.min : Int64.random(in: .min ... .max, using: &random)).databaseValue
    case "TEXT": return "text \u{E9} \(random.next() as UInt64)".databaseValue
    default:
      let count = column.name == "hash" ? 32 : 16
      return Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }).databaseValue
    }
  }

  /// A large content whose file is here, and one whose file is lost.
  private func addFiles(of owner: ContainerID, _ index: Int, _ db: Database) throws {
    for isLost in [false, true] {
      let bytes = saveBytes(600_000 + index, seed: UInt64(index))
      let hash = ContentHash(of: bytes + Data([isLost ? 1 : 0]))
      let name = "\(owner)-\(hash)-\(index)"
      let url = data.appendingPathComponent(DataFolder.contentsName).appendingPathComponent(name)
      if !isLost { try bytes.write(to: url) }
      try db.execute(
        sql: """
          INSERT INTO content (container, length, file, size, taken, suspect, hash)
          VALUES ((SELECT number FROM container WHERE id = ?), 5, ?, ?, 7, ?, ?)
          """, arguments: [owner.bytes, name, bytes.count, isLost, hash.bytes])
    }
  }

  // MARK: Looking into it

  struct Column {
    var name: String
    var type: String
    var isRequired: Bool
  }

  /// Returns the names of everything in a data folder's database.
  static func names(in data: URL) throws -> [String] {
    let queue = try AdminDatabase.open(data)
    let names = try queue.read { try String.fetchAll($0, sql: "SELECT name FROM sqlite_master") }
    try queue.close()
    return names
  }

  /// All tables whose rows have to be somewhere else afterwards.
  static func tables(in db: Database) throws -> [String] {
    try String.fetchAll(
      db,
      sql: """
        SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*' AND name NOT GLOB 'move*'
        AND name NOT GLOB 'webhook*' AND name NOT IN ('grdb_migrations', 'head', 'number')
        ORDER BY name <> 'container', name
        """)
  }

  static func columns(of table: String, in db: Database) throws -> [Column] {
    try Row.fetchAll(db, sql: "SELECT name, type, \"notnull\" FROM pragma_table_info('\(table)')").map { row in
      Column(name: row["name"], type: row["type"], isRequired: row["notnull"])
    }
    .filter { column in
      column.name != "number" || !["container", "cell", "version", "content"].contains(table)
    }
  }

  /// Returns all rows of a data folder's database as texts, without the numbers by which rows name each other.
  static func dump(_ data: URL) throws -> [String] {
    let queue = try AdminDatabase.open(data)
    let texts = try queue.read { db in
      var texts: [String] = []
      for table in try tables(in: db) {
        let columns = try columns(of: table, in: db).map { column in
          switch (column.name, column.type) {
          case ("container", "INTEGER"): "(SELECT hex(id) FROM container AS owner WHERE owner.number = container)"
          case ("base", _):
            """
            CASE typeof(base) WHEN 'integer'
            THEN 'here ' || (SELECT hex(hash) FROM content AS leant WHERE leant.number = content.base)
            ELSE quote(base) END
            """
          default: "quote(\(column.name))"
          }
        }
        let row = columns.map { "ifnull(\($0), '?')" }.joined(separator: " || ' ' || ")
        texts += try String.fetchAll(db, sql: "SELECT '\(table) ' || \(row) FROM \(table)")
      }
      texts += try String.fetchAll(
        db,
        sql: """
          SELECT 'head ' || hex(container.id) || hex(head.slot) || hex(version.id) FROM head
          JOIN container ON container.number = head.container JOIN version ON version.number = head.version
          """)
      texts += try String.fetchAll(
        db, sql: "SELECT name || ' ' || value FROM number WHERE name IN ('bankEpoch', 'auditRows')")
      return texts
    }
    try queue.close()
    return texts.sorted()
  }
}
#endif
