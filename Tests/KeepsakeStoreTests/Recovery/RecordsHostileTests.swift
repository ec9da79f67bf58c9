import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Files of the game's own tables as accidents, other programs and attackers leave them.
@Suite(.hangLimit) struct RecordsHostileTests {
  private let folder: TemporaryFolder
  private let told = Shared<[StoreIncident]>([])
  private var files: RecordsFiles { RecordsFiles(folder: folder.url) }

  init() throws { folder = try TemporaryFolder() }

  private func open() throws -> RecordsDatabase {
    try RecordsDatabase.open(in: folder.url) { [told] in told.value += [$0] }
  }

  private func make(_ sql: String, rows: Int = 0) throws {
    let records = try open()
    try records.write { database in
      try database.execute(sql: sql)
      for number in 0..<rows {
        try database.execute(
          sql: "INSERT INTO thing (name) VALUES (?)",
          arguments: ["thing \(number) " + String(repeating: "x", count: 200)])
      }
    }
    try records.close()
  }

  private func removeBackups() throws {
    for backup in files.presentBackups { try FileManager.default.removeItem(at: backup) }
  }

  /// Edits the file, bypassing everything that keeps a description of tables valid.
  private func edit(_ sql: String...) throws {
    for statement in sql {
      let queue = try DatabaseQueue(path: files.database.path)
      try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA writable_schema = ON; \(statement)") }
      try queue.close()
    }
  }

  private func root(of name: String) throws -> Int {
    let queue = try DatabaseQueue(path: files.database.path)
    defer { try? queue.close() }
    return try queue.read {
      try Int.fetchOne($0, sql: "SELECT rootpage FROM sqlite_master WHERE name = ?", arguments: [name]) ?? 0
    }
  }

  private func lose(_ page: Int) throws {
    var bytes = try Data(contentsOf: files.database)
    bytes.replaceSubrange((page - 1) * 4_096..<page * 4_096, with: Data(repeating: 0xEE, count: 4_096))
    try bytes.write(to: files.database)
  }

  private func count(_ records: RecordsDatabase, _ table: String = "thing") throws -> Int {
    try records.reading { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM \(table) NOT INDEXED") ?? 0 }
  }

  // MARK: Damage

  /// Makes an index that lacks one row, and a backup from before there was any row.
  private func makeIndexLie() throws {
    try make("CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT); CREATE INDEX by_name ON thing (name)")
    let records = try open()
    try records.write { database in
      for number in 1...300 {
        try database.execute(sql: "INSERT INTO thing VALUES (?, 'thing ' || ?)", arguments: [number, number])
      }
    }
    try records.close()
    let root = try root(of: "by_name")
    try edit(
      "DELETE FROM sqlite_master WHERE name = 'by_name'", "UPDATE thing SET name = 'unlisted' WHERE id = 150",
      "INSERT INTO sqlite_master VALUES ('index', 'by_name', 'thing', \(root), 'CREATE INDEX by_name ON thing (name)')")
  }

  @Test("if a recovery can't check foreign keys, rows that refer to lost ones are kept, and the incident reports that")
  func uncheckedKeys() throws {
    try make(
      """
      CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT);
      CREATE TABLE part (id INTEGER PRIMARY KEY, owner TEXT REFERENCES thing (name));
      """)
    let queue = try DatabaseQueue(path: files.database.path)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA foreign_keys = OFF")
      for number in 1...300 {
        try database.execute(
          sql: "INSERT INTO thing VALUES (?, ?)",
          arguments: [number, "thing \(number) " + String(repeating: "x", count: 200)])
        try database.execute(sql: "INSERT INTO part VALUES (?, ?)", arguments: [number, "thing \(number)"])
      }
    }
    try queue.close()
    try removeBackups()
    let row = try #require(try Data(contentsOf: files.database).range(of: Data("thing 150 xxx".utf8)))
    try lose(row.lowerBound / 4_096 + 1)
    let records = try open()
    defer { try? records.close() }
    #expect(told.value.map(\.kind) == [.recovered])
    #expect(
      told.value.first?.message.contains("the check of foreign keys (foreign key mismatch") == true, "\(told.value)")
    #expect(try count(records) < 300)
    #expect(try count(records, "part") == 300)
  }

  @Test("an index that disagrees with its table is rebuilt when the tables are opened, without loss of a row")
  func mendsIndexes() throws {
    try makeIndexLie()
    let records = try open()
    defer { try? records.close() }
    #expect(told.value.map(\.kind) == [.rebuilt])
    #expect(try count(records) == 300)
    #expect(try records.reading { try Int.fetchOne($0, sql: "SELECT id FROM thing WHERE name = 'unlisted'") } == 150)
    try records.write { try $0.execute(sql: "DELETE FROM thing WHERE id = 150") }
  }

  @Test("damage of an index that a running game meets is repaired at the next opening")
  func mendsMetIndexes() throws {
    try make("CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT); CREATE INDEX by_name ON thing (name)")
    let records = try open()
    // Too much to be checked in full at each opening.
    try records.write { database in
      for number in 1...300 {
        try database.execute(sql: "INSERT INTO thing VALUES (?, 'thing ' || ?)", arguments: [number, number])
      }
      try database.execute(sql: "CREATE TABLE much (body); INSERT INTO much VALUES (zeroblob(20000000))")
    }
    try records.close()
    let root = try root(of: "by_name")
    try edit(
      "DELETE FROM sqlite_master WHERE name = 'by_name'", "UPDATE thing SET name = 'unlisted' WHERE id = 150",
      "INSERT INTO sqlite_master VALUES ('index', 'by_name', 'thing', \(root), 'CREATE INDEX by_name ON thing (name)')")
    let running = try open()
    #expect(errorCode { try running.write { try $0.execute(sql: "DELETE FROM thing WHERE id = 150") } } == .damaged)
    try running.close()
    let again = try open()
    defer { try? again.close() }
    #expect(told.value.map(\.kind) == [.rebuilt])
    try again.write { try $0.execute(sql: "DELETE FROM thing WHERE id = 150") }
    #expect(try count(again) == 299)
  }

  @Test("a lost page of an index costs no row, though the backup is older than the newest rows")
  func lostIndexPage() throws {
    try make("CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT); CREATE INDEX by_name ON thing (name)", rows: 20)
    #expect(files.presentBackups.count == 1)
    let records = try open()
    try records.write { try $0.execute(sql: "INSERT INTO thing (name) VALUES ('newer than the backup')") }
    try records.close()
    try lose(try root(of: "by_name"))
    let again = try open()
    defer { try? again.close() }
    #expect(told.value.map(\.kind) == [.recovered])
    #expect(told.value.first?.message.contains("nothing was lost") == true, "\(told.value)")
    #expect(try count(again) == 21)
    #expect(
      try again.reading {
        try Int.fetchOne($0, sql: "SELECT id FROM thing INDEXED BY by_name WHERE name >= 'n' AND name < 'o'")
      } == 21)
  }

  @Test("a recovery reports the rows that it leaves out, and keeps rows that only violate the game's own constraints")
  func tellsDroppedRows() throws {
    try make(
      """
      PRAGMA ignore_check_constraints = ON;
      CREATE TABLE odd (value INTEGER CHECK (value > 0));
      INSERT INTO odd VALUES (-1), (1);
      CREATE TABLE unlike (value TEXT);
      CREATE UNIQUE INDEX alone ON unlike (value);
      CREATE TABLE single (value TEXT UNIQUE);
      INSERT INTO single VALUES ('a'), ('b');
      CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT);
      """, rows: 100)
    try removeBackups()
    // Another row with the same value, which the index doesn't contain.
    let unique = try root(of: "sqlite_autoindex_single_1")
    try edit(
      """
      UPDATE sqlite_master SET sql = 'CREATE TABLE single (value TEXT)' WHERE name = 'single'; DELETE \
      FROM sqlite_master WHERE name = 'sqlite_autoindex_single_1'
      """,
      "INSERT INTO single VALUES ('a')",
      """
      UPDATE sqlite_master SET sql = 'CREATE TABLE single (value TEXT UNIQUE)' WHERE name = 'single';
      INSERT INTO sqlite_master VALUES ('index', 'sqlite_autoindex_single_1', 'single', \(unique), NULL)
      """)
    let leaf = try self.root(of: "thing") + 2
    try lose(leaf)
    let records = try open()
    defer { try? records.close() }
    #expect(try records.reading { try Int.fetchAll($0, sql: "SELECT value FROM odd ORDER BY value") } == [-1, 1])
    #expect(try count(records, "single") == 2)
    #expect(told.value.first?.message.contains("1 row of single") == true, "\(told.value)")
  }

  @Test("a backup of large tables that are damaged doesn't replace a sound one")
  func largeBackup() async throws {
    try await onThread { [self] in
      try make("CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT)", rows: 400)
      try removeBackups()
      let records = try open()
      try records.write {
        try $0.execute(sql: "CREATE TABLE much (body); INSERT INTO much VALUES (zeroblob(70000000))")
      }
      try records.backup.copy(records) { false }
      try records.close()
      #expect(files.presentBackups.count == 1)
      try lose(5)
      let again = try open()
      #expect(throws: StoreError.self) { try again.backup.copy(again) { false } }
      #expect(files.presentBackups.count == 1)
      #expect(!StoreFiles.exists(files.partialBackup))
      try again.close()
    }
  }

  @Test(
    "whichever bit is flipped, the tables open and can be written, and no row is missing without an incident",
    arguments: [false, true])
  func flippedBits(backup: Bool) async throws {
    try await onThread { [self] in
      try make(
        "CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT); CREATE INDEX by_name ON thing (name)", rows: 150)
      if !backup { try removeBackups() }
      let sound = try Data(contentsOf: files.database)
      let saved = try files.presentBackups.map { ($0, try Data(contentsOf: $0)) }
      var random = SeededRandom(seed: 31)
      var repairs = 0
      for flip in 0..<120 {
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.url.path) {
          try FileManager.default.removeItem(at: folder.url.appendingPathComponent(name))
        }
        for (url, bytes) in saved { try bytes.write(to: url) }
        var bytes = sound
        // Half of them are in the headers of pages.
        let page = Int.random(in: 0..<sound.count / 4_096, using: &random) * 4_096
        let place = page + Int.random(in: 0..<(flip % 2 == 0 ? 100 : 4_096), using: &random)
        bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        try bytes.write(to: files.database)
        told.value = []
        let records = try open()
        let rows = try? count(records)
        if backup || told.value.isEmpty { #expect(rows == 150, "seed 31, flip \(flip) at \(place), \(told.value)") }
        try records.write { try $0.execute(sql: "CREATE TABLE more (id)") }
        try records.close()
        repairs += told.value.count
      }
      #expect(repairs > 30)
    }
  }

  // MARK: Other files

  @Test(
    "a folder, a pipe or a device under the name of the tables is refused at once, and nothing is written",
    arguments: ["folder", "pipe", "device"])
  func noFile(kind: String) async throws {
    try await onThread { [self] in
      switch kind {
      case "folder": try FileManager.default.createDirectory(at: files.database, withIntermediateDirectories: false)
      case "pipe": try #require(mkfifo(files.database.path, 0o600) == 0)
      default: try FileManager.default.createSymbolicLink(atPath: files.database.path, withDestinationPath: "/dev/zero")
      }
      #expect(errorCode { _ = try open() } == .misuse)
      #expect(errorCode { _ = try RecordsDoctor(folder: folder.url).examine() } == .misuse)
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["records.sqlite"])
    }
  }

  @Test("an error of another database within a write or a read isn't mistaken for damage of the tables")
  func othersDamage() throws {
    try make("CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT)", rows: 3)
    let mod = folder.url.appendingPathComponent("mod.sqlite")
    try Data(repeating: 0x5A, count: 8_192).write(to: mod)
    let records = try open()
    defer { try? records.close() }
    func readMod(_: Database) throws {
      let queue = try DatabaseQueue(path: mod.path)
      _ = try queue.read { try Row.fetchAll($0, sql: "SELECT * FROM sqlite_master") }
    }
    #expect(throws: DatabaseError.self) { try records.write(readMod) }
    #expect(throws: DatabaseError.self) { try records.reading(readMod) }
    #expect(throws: DatabaseError.self) { try records.write { _ in throw DatabaseError(resultCode: .SQLITE_IOERR) } }
    #expect(!StoreFiles.exists(files.suspicion))
    try records.write { try $0.execute(sql: "DELETE FROM thing WHERE id = 1") }
    #expect(try count(records) == 2 && told.value == [])
  }

  // MARK: Attacks

  @Test(
    "a database that was crafted to do harm when it is repaired does none",
    arguments: [
      ("table", "VACUUM main INTO '{}'"), ("table", "ATTACH DATABASE '{}' AS other"),
      ("index", "VACUUM main INTO '{}'"),
      ("trigger", "ATTACH DATABASE '{}' AS other"), ("view", "DROP TABLE thing"),
      ("table", "CREATE TABLE copy AS SELECT name FROM thing"),
      ("table", "CREATE TABLE \"a\"\"(b\" /* ( */ AS SELECT 1"),
      ("table", "CREATE TRIGGER early AFTER INSERT ON thing BEGIN DELETE FROM thing; END"),
    ])
  func harmfulDescription(type: String, sql: String) throws {
    try make(
      "CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE other /* ( */ (\"a(\" TEXT)", rows: 100)
    try removeBackups()
    let target = folder.url.appendingPathComponent("harm")
    let text = sql.replacing("{}", with: target.path).replacing("'", with: "''")
    try edit("INSERT INTO sqlite_master VALUES ('\(type)', 'evil', 'evil', 0, '\(text)')")
    let records = try open()
    defer { try? records.close() }
    #expect(!StoreFiles.exists(target))
    #expect(told.value.first?.message.contains("evil") == true, "\(told.value)")
    #expect(try count(records) == 100 && count(records, "other") == 0)
    #expect(try records.reading { try $0.tableExists("copy") || $0.tableExists("a\"(b") } == false)
  }
}
