import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// The game's own tables are restored after damage: from a backup, else row by row, else they start from the beginning;
/// each of these emits an incident.
@Suite struct RecordsRecoveryTests {
  private let folder: TemporaryFolder
  private var files: RecordsFiles { RecordsFiles(folder: folder.url) }

  init() throws { folder = try TemporaryFolder() }

  private func open(_ told: Shared<[StoreIncident]> = Shared([])) throws -> RecordsDatabase {
    try RecordsDatabase.open(in: folder.url) { told.value += [$0] }
  }

  /// Some 400 rows in some 30 leaves, with an index, rows that refer to them, full text, and what else a game may have.
  private func fill(backup: Bool = false) throws {
    let records = try open()
    var migrator = DatabaseMigrator()
    migrator.registerMigration("first") { db in
      try db.execute(
        sql: """
          CREATE TABLE creature (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, size INTEGER, \
          twice INTEGER AS (size * 2));
          CREATE INDEX by_size ON creature (size);
          CREATE TABLE sighting (creature INTEGER NOT NULL REFERENCES creature (id), place TEXT);
          CREATE TABLE "odd ""name'; --" ("a""b" BLOB);
          CREATE TABLE setting (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
          CREATE VIEW large AS SELECT * FROM creature WHERE size > 100;
          CREATE TRIGGER named AFTER INSERT ON sighting BEGIN UPDATE creature SET size = size WHERE id = new.creature; \
          END;
          CREATE VIRTUAL TABLE story USING fts5(text);
          PRAGMA user_version = 42;
          """)
    }
    try records.migrate(migrator)
    try records.write { db in
      for number in 1...400 {
        try db.execute(
          sql: "INSERT INTO creature (name, size) VALUES (?, ?)",
          arguments: ["creature \(number) " + String(repeating: "x", count: 250), number])
        try db.execute(sql: "INSERT INTO sighting VALUES (?, 'forest')", arguments: [number])
        try db.execute(
          sql: "INSERT INTO \"odd \"\"name'; --\" VALUES (?)", arguments: [Data([UInt8(number & 0xFF), 0, 1])])
      }
      try db.execute(sql: "INSERT INTO setting VALUES ('volume', 0.5), ('name', 'A' || char(0) || 'B')")
      try db.execute(sql: "INSERT INTO story VALUES ('once upon a time')")
    }
    try records.close()
    if !backup { for backup in files.presentBackups { try FileManager.default.removeItem(at: backup) } }
  }

  private func alter(_ body: (inout Data) throws -> Void) throws {
    var bytes = try Data(contentsOf: files.database)
    try body(&bytes)
    try bytes.write(to: files.database)
  }

  /// The leaf pages of a table, found from its root page.
  private func leaves(of table: String) throws -> [Int] {
    let queue = try DatabaseQueue(path: files.database.path)
    defer { try? queue.close() }
    let root = try queue.read {
      try Int.fetchOne($0, sql: "SELECT rootpage FROM sqlite_master WHERE name = ?", arguments: [table]) ?? 0
    }
    let bytes = [UInt8](try Data(contentsOf: files.database))
    func below(_ page: Int) -> [Int] {
      let start = (page - 1) * 4_096 + (page == 1 ? 100 : 0)
      guard bytes[start] == 5 else { return [page] }
      let cells = bytes.half(at: start + 3)
      let children = (0..<cells).map { Int(bytes.word(at: (page - 1) * 4_096 + bytes.half(at: start + 12 + $0 * 2))) }
      return (children + [Int(bytes.word(at: start + 8))]).flatMap(below)
    }
    return below(root)
  }

  private func lose(_ page: Int) throws {
    try alter { $0.replaceSubrange((page - 1) * 4_096..<page * 4_096, with: Data(repeating: 0xEE, count: 4_096)) }
  }

  private func ids(_ records: RecordsDatabase) throws -> [Int] {
    try records.reading { try Int.fetchAll($0, sql: "SELECT id FROM creature ORDER BY id") }
  }

  @Test(
    "without a backup, a lost page costs only its own rows and those that refer to them; everything else is unchanged")
  func salvages() throws {
    try fill()
    let leaves = try leaves(of: "creature")
    try #require(leaves.count > 20)
    try lose(leaves[10])
    let told = Shared<[StoreIncident]>([])
    let records = try open(told)
    defer { try? records.close() }
    #expect(told.value.map(\.kind) == [.recovered])
    #expect(told.value.first?.message.contains("creature in 1 place") == true, "\(told.value)")
    let ids = try ids(records)
    #expect(ids.first == 1 && ids.last == 400 && (380...390).contains(ids.count), "\(ids.count) rows")
    let missing = Set(1...400).subtracting(ids).sorted()
    #expect(missing.last.map { $0 - missing[0] } == missing.count - 1, "one gap: \(missing)")
    try records.reading { db throws in
      // Rows that refer to lost ones are removed, or the next migration would fail.
      #expect(try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM sighting") == ids.count)
      #expect(try Row.fetchAll(db, sql: "PRAGMA foreign_key_check").isEmpty)
      #expect(try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM \"odd \"\"name'; --\"") == 400)
      #expect(try Int.fetchOne(db, sql: "SELECT twice FROM creature WHERE size = 300") == 600)
      #expect(try Int.fetchOne(db, sql: "SELECT length(CAST(value AS BLOB)) FROM setting WHERE key = 'name'") == 3)
      #expect(try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM story WHERE story MATCH 'upon'") == 1)
      #expect(try Int.fetchOne(db, sql: "PRAGMA user_version") == 42)
      #expect(try Int.fetchOne(db, sql: "SELECT seq FROM sqlite_sequence WHERE name = 'creature'") == 400)
      #expect(try String.fetchAll(db, sql: "SELECT identifier FROM grdb_migrations") == ["first"])
      #expect(
        try Set(
          String.fetchAll(
            db, sql: "SELECT name FROM sqlite_master WHERE type IN ('view', 'trigger') OR name = 'by_size'")
        ).count == 3
      )
    }
    try records.write { try $0.execute(sql: "INSERT INTO creature (name, size) VALUES ('new', 1)") }
    #expect(try self.ids(records).last == 401)
  }

  @Test(
    "if the first, the last or several pages of a table are lost, all rows on the other pages are recovered",
    arguments: [[0], [-1], [0, 1, -1], [3, 4, 9, 17]])
  func salvagesEnds(lost: [Int]) throws {
    try fill()
    let leaves = try leaves(of: "creature")
    for index in lost { try lose(leaves[index < 0 ? leaves.count + index : index]) }
    let records = try open()
    defer { try? records.close() }
    let ids = try ids(records)
    #expect(ids.count >= 400 - 16 * lost.count && ids.count < 400, "\(ids.count) rows")
  }

  @Test("if the table of migrations is lost, the applied ones are read from its index, so that none runs twice")
  func migrationsLost() throws {
    try fill()
    try lose(try #require(leaves(of: "grdb_migrations").first))
    let records = try open()
    defer { try? records.close() }
    #expect(try records.reading { try String.fetchAll($0, sql: "SELECT identifier FROM grdb_migrations") } == ["first"])
    #expect(try ids(records).count == 400)
  }

  @Test("a damaged or missing database is replaced by the complete backup", arguments: [false, true])
  func restoresBackup(gone: Bool) throws {
    try fill(backup: true)
    #expect(files.presentBackups.count == 1)
    if gone { try FileManager.default.removeItem(at: files.database) } else { try lose(5) }
    let told = Shared<[StoreIncident]>([])
    let records = try open(told)
    defer { try? records.close() }
    #expect(try ids(records).count == 400)
    #expect(told.value.map(\.kind) == [.recovered] && told.value.first?.message.contains("the backup of") == true)
  }

  @Test("a damaged backup is skipped, and an older one is used")
  func olderBackup() throws {
    try fill()
    let records = try open()
    let backup = records.backup
    try backup.copy(records) { false }
    try records.write { try $0.execute(sql: "DELETE FROM sighting; DELETE FROM creature WHERE id > 200") }
    try backup.copy(records) { false }
    #expect(files.presentBackups.count == 2)
    let newest = files.presentBackups[0]
    try records.write { try $0.execute(sql: "DELETE FROM creature") }
    try records.close()
    var bytes = try Data(contentsOf: newest)
    for page in 1..<bytes.count / 4_096 { bytes[page * 4_096] = 0xEE }
    try bytes.write(to: newest)
    try lose(1)
    let again = try open()
    defer { try? again.close() }
    #expect(try ids(again).count == 400)
  }

  @Test("if nothing can be read, the tables start from the beginning, and the damaged file is set aside")
  func beginsAnew() throws {
    try fill()
    let noise = Data(repeating: 0x5A, count: 50_000)
    try noise.write(to: files.database)
    let told = Shared<[StoreIncident]>([])
    let records = try open(told)
    defer { try? records.close() }
    #expect(told.value.first?.message.contains("start from the beginning") == true)
    var migrator = DatabaseMigrator()
    migrator.registerMigration("first") { try $0.execute(sql: "CREATE TABLE creature (id INTEGER PRIMARY KEY)") }
    try records.migrate(migrator)
    #expect(try ids(records) == [])
    let aside = try #require(FileManager.default.contentsOfDirectory(atPath: files.damaged.path).first)
    let isKept =
      try Data(contentsOf: files.damaged.appendingPathComponent(aside).appendingPathComponent("records.sqlite"))
      == noise
    #expect(isKept)
  }

  @Test("an interrupted recovery is finished or started again, wherever it stopped", arguments: [0, 1, 2])
  func interrupted(moved: Int) throws {
    try fill(backup: true)
    try FileManager.default.createDirectory(at: files.workshop, withIntermediateDirectories: true)
    let whole = files.workshop.appendingPathComponent(moved == 0 ? "new.sqlite" : "then.whole")
    try FileManager.default.copyItem(at: files.presentBackups[0], to: whole)
    try lose(5)
    if moved == 2 {
      let aside = files.damaged.appendingPathComponent("then")
      try FileManager.default.createDirectory(at: aside, withIntermediateDirectories: true)
      try FileManager.default.moveItem(at: files.database, to: aside.appendingPathComponent("records.sqlite"))
    }
    let records = try open()
    defer { try? records.close() }
    #expect(try ids(records).count == 400)
    #expect(!StoreFiles.exists(files.workshop))
    #expect(try FileManager.default.contentsOfDirectory(atPath: files.damaged.path).count == 1)
  }

  @Test("a log with damage among its commits is recovered as damage, and not silently taken for an older state")
  func damagedLog() throws {
    try fill(backup: true)
    let records = try open()
    for number in 1...20 {
      try records.write {
        try $0.execute(sql: "UPDATE creature SET size = ? WHERE id = 1", arguments: [1_000 + number])
      }
    }
    // The files as a killed game leaves them.
    let copies = folder.url.appendingPathComponent("copies")
    try FileManager.default.createDirectory(at: copies, withIntermediateDirectories: true)
    for file in [files.database, files.log] {
      try FileManager.default.copyItem(at: file, to: copies.appendingPathComponent(file.lastPathComponent))
    }
    try records.close()
    for backup in files.presentBackups {
      try FileManager.default.copyItem(at: backup, to: copies.appendingPathComponent(backup.lastPathComponent))
    }
    let log = copies.appendingPathComponent("records.sqlite-wal")
    var bytes = try Data(contentsOf: log)
    try #require(bytes.count > 15 * 4_120)
    bytes[32 + 6 * 4_120 + 500] ^= 1
    try bytes.write(to: log)
    let told = Shared<[StoreIncident]>([])
    let again = try RecordsDatabase.open(in: copies) { told.value += [$0] }
    defer { try? again.close() }
    #expect(told.value.map(\.kind) == [.recovered])
  }

  @Test(
    "rows that violate a constraint of the game, and constraints that need the game's code, are not damage",
    arguments: [
      "CREATE TABLE thing (value INTEGER CHECK (value > 0)); PRAGMA ignore_check_constraints = ON",
      "CREATE TABLE thing (value INTEGER CHECK (isGood(value)))",
      "CREATE TABLE thing (value INTEGER); CREATE INDEX good ON thing (isGood(value))",
    ])
  func gameRules(sql: String) throws {
    let records = try open()
    try records.write { db in
      db.add(function: DatabaseFunction("isGood", argumentCount: 1, pure: true) { _ in true })
      try db.execute(sql: sql)
      try db.execute(sql: "INSERT INTO thing VALUES (-1)")
    }
    try records.close()
    let told = Shared<[StoreIncident]>([])
    let again = try open(told)
    #expect(told.value == [])
    #expect(try again.reading { try Int.fetchOne($0, sql: "SELECT value FROM thing") } == -1)
    try again.close()
  }

  @Test(
    "whichever page is lost, the tables open and can be written, and an incident reports any loss",
    arguments: [false, true])
  func everyPage(backup: Bool) async throws {
    try await onThread { [self] in
      try fill(backup: backup)
      let sound = try Data(contentsOf: files.database)
      let saved = try files.presentBackups.map { ($0, try Data(contentsOf: $0)) }
      for page in 1...sound.count / 4_096 {
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.url.path) {
          try FileManager.default.removeItem(at: folder.url.appendingPathComponent(name))
        }
        try sound.write(to: files.database)
        for (url, bytes) in saved { try bytes.write(to: url) }
        try lose(page)
        let told = Shared<[StoreIncident]>([])
        let records = try open(told)
        let rows = (try? ids(records).count) ?? 0
        #expect(told.value.count == 1 || rows == 400, "page \(page)")
        if backup { #expect(rows == 400, "page \(page)") }
        try records.write { try $0.execute(sql: "CREATE TABLE more (id); INSERT INTO more VALUES (1)") }
        try records.close()
      }
    }
  }
}
