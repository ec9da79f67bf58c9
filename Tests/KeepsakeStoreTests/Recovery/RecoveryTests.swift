import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// Damage of each kind to a store with known contents: what is repaired where, what is set aside, and that a crash in
/// the middle leaves either the damaged store or the new one. Random damage is in `KeepsakeTests/DamageTests`.
@Suite struct RecoveryTests {
  let folder: TemporaryFolder
  var files: StoreFiles { StoreFiles(folder: folder.store) }
  let level = CellKey(collection: "progress", key: "level")

  init() throws { folder = try TemporaryFolder() }

  /// Twelve saves in each of two slots, a value and a wallet of 7 operations.
  private func makeStore(backups: Bool = false) throws {
    let store = try Store.open(at: folder.store)
    try store.write { transaction throws in
      for value in 1...6 {
        try transaction.setCell(CellUpdate(key: level, state: CellState(value: .max(.int(Int64(value))))))
      }
      try transaction.setPreference(Data("loud".utf8), named: "volume")
      // So long that its row takes several pages.
      try transaction.setPreference(Data(repeating: 7, count: 20_000), named: "bindings")
      var wallet = try #require(try transaction.wallet())
      wallet.head.count = 7
      try transaction.setWallet(wallet)
      try transaction.setFacts(
        DeviceFacts(container: ContainerID(high: 1, low: 2), cursor: Cursor(epoch: 3, seq: 4, mark: 5), caughtUp: true))
    }
    for number in UInt64(1)...12 {
      for (slot, base) in [("main", UInt64(0)), ("other", 100)] {
        try store.submit([(slot: slot, bytes: Self.bytes(number + base))]) { transaction, kept in
          try transaction.put(number + base, slot: slot, covers: number > 1 ? [number + base - 1] : [], kept)
        }.wait()
      }
    }
    try store.close()
    if !backups { for backup in files.presentBackups { try FileManager.default.removeItem(at: backup) } }
  }

  private static func bytes(_ number: UInt64) -> Data {
    var random = SeededRandom(seed: 5)
    return random.bytes(3_000) + Data("save \(number)".utf8)
  }

  private func alter(_ sql: String) throws {
    let queue = try DatabaseQueue(path: files.database.path)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA writable_schema = ON")
      try database.execute(sql: sql)
    }
    try queue.close()
  }

  private func alterBytes(_ change: (inout Data) -> Void) throws {
    var bytes = try Data(contentsOf: files.database)
    change(&bytes)
    try bytes.write(to: files.database)
  }

  private func check(_ store: Store, newest: UInt64 = 12) throws {
    try store.read { transaction throws in
      for (slot, base) in [("main", UInt64(0)), ("other", 100)] {
        let expected = slot == "main" ? newest : 12
        #expect(try transaction.heads(of: slot) == [id(base + expected)])
        let version = try #require(try transaction.version(id(base + expected)))
        let plain = try transaction.plainContent(version.record.contents[0])
        let isSame = plain == Self.bytes(base + expected)
        #expect(isSame)
      }
      #expect(try transaction.cell(level)?.value == .max(.int(6)))
      #expect(try transaction.wallet()?.head.count == 7)
      let preferences = try transaction.preferences().kept
      #expect(preferences.map(\.name) == ["bindings", "volume"])
      let arePreferencesKept =
        try preferences.map { try $0.bytes() } == [Data(repeating: 7, count: 20_000), Data("loud".utf8)]
      #expect(arePreferencesKept)
    }
  }

  // MARK: Rebuilt in place

  @Test("an index that lacks the newest save is rebuilt, and the save is there")
  func rebuildsIndex() throws {
    try makeStore()
    // The index is declared as a partial one while rows are changed, so that it lacks them; then the old declaration is
    // restored.
    let sql = try schema("version_slot")
    try alter("UPDATE sqlite_schema SET sql = sql || ' WHERE acknowledged = 7' WHERE name = 'version_slot'")
    try alter("UPDATE version SET position = position + 1000 WHERE slot = 'main'")
    try alter("UPDATE sqlite_schema SET sql = '\(sql)' WHERE name = 'version_slot'")
    let store = try Store.open(at: folder.store)
    #expect(store.incidents.map(\.kind) == [.rebuilt])
    try check(store)
    try store.close()
    #expect(!StoreFiles.exists(files.damaged))
    let again = try Store.open(at: folder.store)
    defer { try? again.close() }
    #expect(again.incidents.isEmpty)
  }

  private func schema(_ name: String) throws -> String {
    let queue = try DatabaseQueue(path: files.database.path)
    defer { try? queue.close() }
    return try queue.read {
      try String.fetchOne($0, sql: "SELECT sql FROM sqlite_schema WHERE name = ?", arguments: [name])
    } ?? ""
  }

  @Test(
    "wrong heads, or wrong records of which contents a version needs, are rebuilt before they cause a loss",
    arguments: [
      """
      DELETE FROM content_use WHERE version = (SELECT id FROM version WHERE slot = 'main' ORDER BY position DESC \
      LIMIT 1)
      """,
      """
      UPDATE content_use SET hash = x'00' WHERE version = (SELECT id FROM version WHERE slot = 'main' \
      ORDER BY position DESC LIMIT 1)
      """,
      "UPDATE cloud_content SET depth = 'x'; INSERT INTO cloud_content VALUES (x'00', 'y')",
      "DELETE FROM head WHERE slot = 'main'",
      "UPDATE sqlite_sequence SET seq = \(Int64.max) WHERE name = 'version'",
      "UPDATE sqlite_sequence SET seq = 'x' WHERE name = 'version'",
      "UPDATE head SET id = (SELECT id FROM version WHERE slot = 'main' ORDER BY position LIMIT 1) WHERE slot = 'main'",
      "INSERT INTO head SELECT slot, id FROM covered JOIN version USING (id) LIMIT 1",
    ])
  func rebuildsUse(change: String) throws {
    try makeStore()
    try alter(change)
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(store.incidents.map(\.kind) == [.rebuilt])
    try check(store)
  }

  // MARK: Recovered

  /// Each leaves everything readable, for SQLite or for the scanner of pages.
  static let harmless: [(String, @Sendable (inout Data) -> Void)] = [
    ("the magic", { $0[3] ^= 0x20 }), ("the page size", { $0[16] = 7 }), ("the version for writers", { $0[18] = 9 }),
    ("the schema's format", { $0[47] = 9 }), ("the text's encoding", { $0[59] = 2 }), ("the format", { $0[60] = 0x40 }),
    ("the mark of a store", { $0[69] ^= 1 }),
    ("the whole header", { $0.replaceSubrange(0..<100, with: Data(count: 100)) }),
    ("the page of the schema", { $0.replaceSubrange(0..<4_096, with: Data(repeating: 0xA5, count: 4_096)) }),
    ("the count of free pages", { $0[39] ^= 3 }),
  ]

  @Test(
    "damage in the header or the schema loses nothing, and the damaged file is set aside", arguments: harmless.indices)
  func recoversHeader(index: Int) throws {
    try makeStore()
    let (name, change) = Self.harmless[index]
    try alterBytes(change)
    let before = try Data(contentsOf: files.database)
    let store = try Store.open(at: folder.store)
    #expect(store.incidents.map(\.kind) == [.recovered], "\(name)")
    try check(store)
    // The damaged file is kept as it was, at the path that the incident names.
    let names = try FileManager.default.contentsOfDirectory(atPath: files.damaged.path)
    let aside = files.damaged.appendingPathComponent(try #require(names.first))
    #expect(names.count == 1 && store.incidents[0].message.contains(aside.path))
    let isKept = try Data(contentsOf: aside.appendingPathComponent(Store.databaseName)) == before
    #expect(isKept, "\(name)")
    // Everything is fetched from the cloud again.
    let facts = try store.read { try $0.facts() }
    #expect(facts.container == ContainerID(high: 1, low: 2) && facts.cursor.seq == 4 && facts.cursor.mark != 5)
    try store.save(Data("on".utf8), as: 13)
    try store.close()
    let again = try Store.open(at: folder.store)
    defer { try? again.close() }
    #expect(again.incidents.isEmpty)
    #expect(try again.read { try $0.heads(of: "main") } == [id(13)])
  }

  @Test("if the newest save's row is lost, the slot shows the save before it instead of being empty")
  func stepsBack() throws {
    try makeStore()
    try alter(
      """
      UPDATE version SET slot = 'nowhere' WHERE position = (SELECT MAX(position) FROM version WHERE slot = 'main'); \
      VACUUM
      """)
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(store.incidents.map(\.kind) == [.recovered] && store.incidents[0].message.contains("\"main\""))
    try check(store, newest: 11)
    // Possibly no other device has the lost save, so the one that is shown now is offered to the cloud.
    #expect(try store.read { try $0.unacknowledgedVersions() }.contains(id(11)))
  }

  @Test("an unreadable or missing database is restored from the backup")
  func takesBackup() throws {
    try makeStore(backups: true)
    #expect(files.presentBackups.count == 1)
    try Data("gone".utf8).write(to: files.database)
    var store = try Store.open(at: folder.store)
    #expect(store.incidents.map(\.kind) == [.recovered])
    try check(store)
    try store.close()
    try FileManager.default.removeItem(at: files.database)
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(store.incidents.map(\.kind) == [.recovered])
    try check(store)
  }

  @Test(
    "if no database or backup is readable, opening throws, says whether there was a backup, and changes nothing",
    arguments: 0...2)
  func givesUp(backups: Int) throws {
    try makeStore()
    var random = SeededRandom(seed: 3)
    let noise = random.bytes(80_000)
    for file in [files.database] + files.backups.prefix(backups) { try noise.write(to: file) }
    let before = try FileManager.default.contentsOfDirectory(atPath: folder.store.path).sorted()
    let error = #expect(throws: StoreError.self) { try Store.open(at: folder.store) }
    let missing = ["there is no backup of it", "its backup can't be read either", "its backups can't be read either"][
      backups]
    #expect(
      error?.code == .damaged && error?.message.contains("and \(missing). Nothing was changed") == true,
      "\(error as Any)")
    let isUntouched = try Data(contentsOf: files.database) == noise
    #expect(isUntouched)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.store.path).sorted() == before)
  }

  @Test(
    "after a crash at any step of a recovery, the next opening has all data, and the damaged store is set aside once",
    arguments: 0..<6)
  func surviveCrash(step: Int) throws {
    try makeStore()
    try alterBytes { $0[3] ^= 0x20 }
    // The state after a crash at each step, constructed by hand: the new database comes from a recovery of a copy.
    let copy = folder.url.appendingPathComponent("copy")
    try FileManager.default.copyItem(at: folder.store, to: copy)
    try Store.open(at: copy).close()
    let whole = StoreFiles(folder: copy)
    let damaged = files.damaged.appendingPathComponent("then")
    let recovered = files.workshop.appendingPathComponent("recovered.sqlite")
    try FileManager.default.createDirectory(at: files.workshop, withIntermediateDirectories: true)
    if step == 0 {
      // Half of a new database, and no record of the recovery.
      try Data(count: 5_000).write(to: recovered)
    } else {
      try FileManager.default.copyItem(at: whole.database, to: recovered)
      try Data(#"{"name":"then"}"#.utf8).write(to: files.intent)
      // A log that belongs to the damaged database must not be applied to the new one.
      try Data(repeating: 9, count: 5_000).write(to: files.log)
    }
    if step >= 2 {
      try FileManager.default.createDirectory(at: damaged, withIntermediateDirectories: true)
      try FileManager.default.moveItem(at: files.log, to: damaged.appendingPathComponent(Store.databaseName + "-wal"))
    }
    if step >= 3 {
      try FileManager.default.moveItem(at: files.database, to: damaged.appendingPathComponent(Store.databaseName))
    }
    if step >= 4 { try FileManager.default.moveItem(at: recovered, to: files.database) }
    if step >= 5 { try FileManager.default.removeItem(at: files.intent) }
    let store = try Store.open(at: folder.store)
    try check(store)
    try store.close()
    #expect(!StoreFiles.exists(files.workshop) && !StoreFiles.exists(files.intent))
    #expect(try FileManager.default.contentsOfDirectory(atPath: files.damaged.path).count == 1)
  }

  @Test("a recovery takes from the backup only what is damaged: what is newer than the backup stays as it is")
  func keepsNewer() throws {
    try makeStore(backups: true)
    var store = try Store.open(at: folder.store)
    try store.write { transaction throws in
      try transaction.setCell(CellUpdate(key: level, state: CellState(value: .max(.int(7)))))
      try transaction.setPreference(Data("silent".utf8), named: "volume")
      try transaction.setPinned(true, id(12))
    }
    try store.save(Self.bytes(13), as: 13)
    try store.close()
    #expect(files.presentBackups.count == 1)
    try alter("UPDATE preference SET body = substr(body, 1, 9) || x'00' WHERE name = 'bindings'")
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(store.incidents.map(\.kind) == [.recovered])
    try store.read { transaction throws in
      #expect(try transaction.cell(level)?.value == .max(.int(7)))
      #expect(try transaction.heads(of: "main") == [id(13)])
      #expect(try transaction.isPinned(id(12)))
      let preferences = try transaction.preferences().kept
      #expect(preferences.map(\.name) == ["bindings", "volume"])
      #expect(try preferences.last?.bytes() == Data("silent".utf8))
      let isTaken = try preferences.first?.bytes() == Data(repeating: 7, count: 20_000)
      #expect(isTaken)
    }
  }

  @Test("a damaged preference is lost alone: other preferences and saves remain")
  func losesOnePreference() throws {
    try makeStore()
    try alter("UPDATE preference SET body = substr(body, 1, 9) || x'00' WHERE name = 'volume'")
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(store.incidents.map(\.kind) == [.recovered] && store.incidents[0].message.contains("preference volume"))
    #expect(try store.read { try $0.preferences().kept.map(\.name) } == ["bindings"])
    #expect(try store.read { try $0.heads(of: "main") } == [id(12)])
  }

  // MARK: Large stores

  @Test("in a store too large to check every page, a content that is missing in its index is still detected")
  func findsLostWays() throws {
    try makeStore()
    let sql = try schema("content_base")
    #expect(!sql.isEmpty)
    let findings = { () throws -> StoreAudit.Findings in
      let queue = try DatabaseQueue(path: self.files.database.path)
      defer { try? queue.close() }
      return try queue.read {
        try StoreAudit.run(on: StoreTransaction($0, in: StoreContext(seal: .none)), whole: false)
      }
    }
    #expect(try findings().isEmpty)
    // The entry of one content in the index of hashes is altered, in the file.
    let hash = ContentHash(of: Self.bytes(12)).bytes
    try alterBytes { bytes in
      var from = bytes.startIndex
      while let found = bytes.range(of: hash, in: from..<bytes.endIndex) {
        // In an index, the row's number follows; in the table, the length of the bytes does.
        if bytes[found.upperBound] < 0x0B || found.lowerBound < 4_096 { bytes[found.lowerBound + 3] ^= 1 }
        from = found.upperBound
      }
    }
    #expect(try !findings().isEmpty)
  }

  // MARK: Backups

  @Test("two backups are written alternately, and a backup of a damaged store never replaces a sound one")
  func rollsBackups() throws {
    try makeStore()
    let store = try Store.open(at: folder.store)
    let backup = store.database.backup
    try backup.copy(store.database) { false }
    try store.save(Data("later".utf8), as: 13)
    try backup.copy(store.database) { false }
    #expect(files.presentBackups.count == 2)
    let newest = files.presentBackups[0]
    let heads = { (url: URL) throws -> Int in
      let queue = try DatabaseQueue(path: url.path)
      defer { try? queue.close() }
      return try queue.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM version") } ?? 0
    }
    #expect(try files.presentBackups.map(heads) == [25, 24])
    // A backup that is stopped before its last step leaves both as they are, and nothing else.
    try store.database.write {
      try $0.execute(
        sql: "INSERT INTO quarantine (place, outcome, body) VALUES ('nowhere', 'used', randomblob(4000000))")
    }
    #expect(errorCode { try backup.copy(store.database) { true } } == .timedOut)
    #expect(files.presentBackups.first == newest && files.presentBackups.count == 2)
    #expect(!StoreFiles.exists(folder.store.appendingPathComponent("backup.partial")))
    try store.database.write { try $0.execute(sql: "UPDATE version SET body = x'00' WHERE slot = 'other'") }
    #expect(errorCode { try backup.copy(store.database) { false } } == .damaged)
    #expect(files.presentBackups.first == newest && files.presentBackups.count == 2)
    try store.close()
  }

  @Test("a journal that was left behind doesn't hide a damaged write-ahead log")
  func journalBesideDamagedLog() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try store.write { try $0.setPreference(Data("loud".utf8), named: "volume") }
    // As a killed process leaves it.
    let copy = folder.url.appendingPathComponent("copy")
    try FileManager.default.copyItem(at: folder.store, to: copy)
    let files = StoreFiles(folder: copy)
    try Data().write(to: files.journal)
    #expect(try files.damageAtFirstSight() == nil)
    var log = try Data(contentsOf: files.log)
    try #require(log.count > 200)
    log[100] ^= 1
    try log.write(to: files.log)
    #expect(try files.damageAtFirstSight() != nil)
  }
}
