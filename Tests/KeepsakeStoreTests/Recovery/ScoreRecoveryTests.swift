import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// Damage to a board: what can be read is recovered, and one damaged entry doesn't make the list unreadable.
@Suite struct ScoreRecoveryTests {
  let folder: TemporaryFolder
  private static let count: UInt64 = 200
  private static let best = 1 as UInt64

  init() throws { folder = try TemporaryFolder() }

  private static func entry(_ number: UInt64, player: String? = nil) -> ScoreEntry {
    ScoreEntry(
      board: "easy", player: player ?? "player \(number % 3)", order: .descending, value: .int(1_000 - Int64(number)),
      dateMilliseconds: Int64(number), id: ScoreID(high: 0, low: number),
      context: Data(repeating: UInt8(number), count: 100))
  }

  private func make(_ seal: SealRequest = .none, backups: Bool = false) throws {
    let store = try Store.open(at: folder.store, seal: seal)
    try store.write { transaction throws in
      for number in 2...Self.count { try transaction.putScore(Self.entry(number)) }
      let best = Self.entry(Self.best)
      try transaction.setCell(CellUpdate(key: best.key, state: CellState(value: .best(best.best))))
    }
    try store.close()
    if !backups {
      for backup in StoreFiles(folder: folder.store).presentBackups { try FileManager.default.removeItem(at: backup) }
    }
  }

  private func numbers(_ store: Store) throws -> [UInt64] {
    let found = try store.read { try $0.topScores(.max, on: "easy", .descending) }
    #expect(found.objections.isEmpty)
    #expect(found.entries.allSatisfy { $0 == Self.entry($0.id.low) })
    return found.entries.map(\.id.low)
  }

  private func alter(_ change: (inout Data) throws -> Void) throws {
    let file = folder.store.appendingPathComponent(Store.databaseName)
    var bytes = try Data(contentsOf: file)
    try change(&bytes)
    try bytes.write(to: file)
  }

  @Test(
    "an altered score is left out, all others remain, and an incident reports it",
    arguments: [Seal.Kind.none, .signed, .sealed])
  func alteredRow(kind: Seal.Kind) throws {
    try make(SealLab.request(kind))
    try SealLab.edit(folder.store) {
      try $0.execute(sql: "UPDATE score SET body = \(bodyAltered(at: 31)) WHERE date = 7")
    }
    let store = try Store.open(at: folder.store, seal: SealLab.request(kind))
    defer { try? store.close() }
    #expect(store.incidents.map(\.kind) == [.recovered])
    #expect(try numbers(store) == (1...Self.count).filter { $0 != 7 })
  }

  @Test("a player's best whose row was altered is restored from its cell")
  func alteredBest() throws {
    try make()
    try SealLab.edit(folder.store) { try $0.execute(sql: "UPDATE score SET player = 'Eve' WHERE date = 1") }
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(store.incidents.map(\.kind) == [.recovered])
    #expect(try numbers(store) == Array(1...Self.count))
  }

  @Test("the loss of any page, header and schema included, costs at most the scores on that page")
  func lostPages() throws {
    try make()
    let whole = try Data(contentsOf: folder.store.appendingPathComponent(Store.databaseName))
    var lost = 0
    for page in stride(from: 0, to: whole.count / 4_096, by: 2) {
      try? FileManager.default.removeItem(at: folder.store.appendingPathComponent("damaged"))
      try alter { bytes in
        bytes = whole
        bytes.replaceSubrange(page * 4_096..<(page + 1) * 4_096, with: Data(repeating: 0xA5, count: 4_096))
      }
      for suffix in ["-wal", "-shm"] {
        let file = folder.store.appendingPathComponent(Store.databaseName + suffix)
        if FileManager.default.fileExists(atPath: file.path) { try FileManager.default.removeItem(at: file) }
      }
      for backup in StoreFiles(folder: folder.store).presentBackups { try FileManager.default.removeItem(at: backup) }
      let store = try Store.open(at: folder.store)
      let found = try numbers(store)
      #expect(found.count > Int(Self.count) - 40 && found == found.sorted(), "page \(page): \(found.count)")
      if found.count < Int(Self.count) { lost += 1 }
      try store.close()
    }
    #expect(lost > 0, "no page with scores was lost")
  }

  @Test("the scores of an unreadable database are restored from the backup")
  func backup() throws {
    try make(backups: true)
    try Data("gone".utf8).write(to: folder.store.appendingPathComponent(Store.databaseName))
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(store.incidents.map(\.kind) == [.recovered])
    #expect(try numbers(store) == Array(1...Self.count))
  }

  @Test("an index that lacks scores is rebuilt, and lists all of the players' scores")
  func lostIndex() throws {
    try make()
    try SealLab.edit(folder.store) { database in
      try database.execute(sql: "PRAGMA writable_schema = ON")
      let sql = try String.fetchOne(database, sql: "SELECT sql FROM sqlite_schema WHERE name = 'score_player'") ?? ""
      try database.execute(
        sql: "UPDATE sqlite_schema SET sql = ? WHERE name = 'score_player'", arguments: [sql + " WHERE date < 9"])
    }
    try SealLab.edit(folder.store) { database in
      try database.execute(sql: "UPDATE score SET player = player WHERE date > 100")
      try database.execute(sql: "DELETE FROM score WHERE date = 150")
    }
    try SealLab.edit(folder.store) { database in
      try database.execute(sql: "PRAGMA writable_schema = ON")
      try database.execute(
        sql: "UPDATE sqlite_schema SET sql = replace(sql, ' WHERE date < 9', '') WHERE name = 'score_player'")
    }
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(!store.incidents.isEmpty)
    let found = try store.read { transaction in
      try transaction.players(on: "easy", .descending).flatMap {
        try transaction.scores(.max, of: $0, on: "easy", .descending).entries
      }
    }
    let expected = (1...Self.count).filter { (number: UInt64) -> Bool in number != 150 }
    #expect(found.map(\.id.low).sorted() == expected)
  }

  @Test(
    "a seal detects a forged score, even as the first of the board: the store is refused, or the score set aside",
    arguments: SealLab.kinds)
  func forged(kind: Seal.Kind) throws {
    try make(SealLab.request(kind))
    let forged = Self.entry(0, player: "Eve")
    try SealLab.edit(folder.store) { database in
      let row = try ScoreRow(forged, RowCodec(seal: .none))
      try database.execute(
        sql: "INSERT INTO score (\(ScoreRow.columns)) VALUES (?, ?, ?, ?, ?, ?)", arguments: row.arguments)
    }
    #expect(
      errorCode { _ = try Store.open(at: folder.store, seal: SealLab.request(kind, policy: .reject)) } == .tampered)
    let store = try Store.open(at: folder.store, seal: SealLab.request(kind))
    defer { try? store.close() }
    #expect(SealLab.findings(of: store).map(\.place) == [try SealLab.place(of: forged)])
    #expect(try numbers(store) == Array(1...Self.count))
  }

  @Test("scores are resealed with a new secret, too", arguments: SealLab.kinds)
  func resealed(kind: Seal.Kind) throws {
    try make(SealLab.request(kind))
    let store = try Store.open(
      at: folder.store, seal: SealLab.request(kind, SealLab.otherSecret, previous: [SealLab.secret]))
    try store.reseal()
    try store.close()
    let again = try Store.open(at: folder.store, seal: SealLab.request(kind, SealLab.otherSecret, policy: .reject))
    defer { try? again.close() }
    #expect(try numbers(again) == Array(1...Self.count))
  }
}
