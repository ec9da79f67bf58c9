import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// Rows, or a whole store, that are reset to an earlier state or removed: each row verifies, and spent money would be
/// there again.
@Suite struct RollbackTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// What an attacker does who can't sign, and so can only remove what was signed, or restore an earlier state of it.
  struct Replay: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var sql: [String]
  }

  static let replays = [
    Replay(
      testDescription: "a value put back as it was",
      sql: ["UPDATE cell SET body = (SELECT body FROM old.cell AS o WHERE o.key = cell.key) WHERE key = 'level'"]),
    Replay(
      testDescription: "money put back as it was",
      sql: ["UPDATE fact SET body = (SELECT body FROM old.fact AS o WHERE o.name = 'wallet') WHERE name = 'wallet'"]),
    Replay(
      testDescription: "a preference put back as it was",
      sql: [
        """
        UPDATE preference SET body = (SELECT body FROM old.preference AS o WHERE o.name = 'volume') \
        WHERE name = 'volume'
        """
      ]),
    Replay(
      testDescription: "a preference put back that was removed",
      sql: ["INSERT INTO preference SELECT * FROM old.preference WHERE name = 'brightness'"]),
    Replay(testDescription: "a preference taken out", sql: ["DELETE FROM preference WHERE name = 'volume'"]),
    Replay(testDescription: "a value taken out", sql: ["DELETE FROM cell WHERE key = 'level'"]),
    Replay(testDescription: "a rival's score taken out", sql: ["DELETE FROM score WHERE player = 'Eve'"]),
    Replay(testDescription: "money taken out", sql: ["DELETE FROM fact WHERE name = 'wallet'"]),
    Replay(
      testDescription: "the newest save taken out",
      sql: [
        "DELETE FROM version WHERE position = 4",
        "DELETE FROM covered WHERE id IN (SELECT id FROM version WHERE position = 3)",
      ]),
    Replay(
      testDescription: "an earlier save made to stand",
      sql: [
        """
        INSERT INTO covered SELECT id, covered_checksum(id) FROM version WHERE slot = 'main' AND id NOT IN (SELECT id \
        FROM covered)
        """,
        "DELETE FROM covered WHERE id IN (SELECT id FROM version WHERE position = 2)",
      ]),
    Replay(
      testDescription: "a value put back with the ledger of another day",
      sql: [
        "UPDATE cell SET body = (SELECT body FROM old.cell AS o WHERE o.key = cell.key) WHERE key = 'level'",
        "UPDATE ledger SET body = (SELECT body FROM old.ledger)",
      ]),
    Replay(testDescription: "the ledger taken out", sql: ["DELETE FROM ledger"]),
    Replay(
      testDescription: "the ledger's count set back",
      sql: ["UPDATE ledger SET body = CAST(x'0000000000000001' || substr(body, 9) AS BLOB)"]
    ),
  ]

  @Test(
    "rows that are removed or reset to an earlier state are detected at the next opening, and reported once",
    arguments: SealLab.kinds, Self.replays)
  func replayed(kind: Seal.Kind, replay: Replay) throws {
    try SealLab.make(SealLab.request(kind), at: folder.store)
    let old = folder.url.appendingPathComponent("yesterday")
    try FileManager.default.copyItem(at: folder.store, to: old)
    let store = try Store.open(at: folder.store, seal: SealLab.request(kind))
    try store.write { transaction throws in
      try transaction.setCell(CellUpdate(key: SealLab.level, state: CellState(value: .max(.int(7)))))
      try transaction.setPreference(Data("half".utf8), named: "volume")
      try transaction.removePreference(named: "brightness")
      var wallet = Wallet(try #require(try transaction.wallet()))
      try wallet.perform(
        WalletOperation(
          id: OperationID(high: 1, low: 1), kind: .earn, currency: "gems", amount: 5, reason: "level 7", goods: []))
      try transaction.setWallet(wallet.state)
    }
    try store.save(SealLab.bytes(4), as: 4)
    try store.close()
    // Everything verifies so far, and the count has grown.
    let untouched = try Store.open(at: folder.store, seal: SealLab.request(kind, policy: .reject))
    #expect(SealLab.findings(of: untouched) == [])
    let count = try #require(try untouched.changeCount())
    try untouched.close()
    let yesterday = try Store.open(at: old, seal: SealLab.request(kind, policy: .reject))
    #expect(try yesterday.changeCount().map { $0 < count } == true)
    try yesterday.close()

    let queue = try DatabaseQueue(path: folder.store.appendingPathComponent(Store.databaseName).path)
    try queue.writeWithoutTransaction { database in
      // The attacker knows the format.
      database.add(
        function: DatabaseFunction("covered_checksum", argumentCount: 1, pure: true) { values in
          Data.fromDatabaseValue(values[0]).flatMap { VersionID(bytes: $0) }.map { CoveredRow.checksum(of: $0) }
        })
      try database.execute(
        sql: "ATTACH DATABASE ? AS old", arguments: [old.appendingPathComponent(Store.databaseName).path])
      for sql in replay.sql {
        try database.execute(sql: sql)
        #expect(database.changesCount > 0, "\(sql)")
      }
    }
    try queue.close()
    #expect(
      errorCode { _ = try Store.open(at: folder.store, seal: SealLab.request(kind, policy: .reject)) } == .tampered)
    let found = try Store.open(at: folder.store, seal: SealLab.request(kind))
    #expect(SealLab.findings(of: found) == [.rollback])
    #expect(try found.read { try $0.facts().cursor.seq } == 0)
    try found.save(SealLab.bytes(5), as: 5)
    try found.close()
    // Reported once; from here on the store's state is accepted.
    let again = try Store.open(at: folder.store, seal: SealLab.request(kind, policy: .reject))
    #expect(SealLab.findings(of: again) == [])
    try again.close()
  }

  @Test("a ledger that is damaged while the game runs doesn't prevent saving, and is detected at the next opening")
  func brokenLedger() throws {
    let store = try Store.open(at: folder.store, seal: SealLab.request(.signed))
    try SealLab.fill(store)
    try SealLab.edit(folder.store) { try $0.execute(sql: "UPDATE ledger SET body = x'00'") }
    try store.save(SealLab.bytes(4), as: 4)
    #expect(errorCode { _ = try store.changeCount() } == .tampered)
    try store.close()
    let again = try Store.open(at: folder.store, seal: SealLab.request(.signed))
    defer { try? again.close() }
    #expect(SealLab.findings(of: again) == [.rollback])
    #expect(try again.read { try $0.heads(of: "main") } == [id(4)])
    #expect(try again.changeCount() != nil)
  }

  @Test("an older copy of the whole folder verifies, and is recognized only by a change count that is kept elsewhere")
  func wholeRollback() throws {
    try SealLab.make(SealLab.request(.sealed), at: folder.store)
    let old = folder.url.appendingPathComponent("yesterday")
    try FileManager.default.copyItem(at: folder.store, to: old)
    var store = try Store.open(at: folder.store, seal: SealLab.request(.sealed))
    try store.save(SealLab.bytes(4), as: 4)
    let anchor = try #require(try store.changeCount())
    try store.close()
    try FileManager.default.removeItem(at: folder.store)
    try FileManager.default.copyItem(at: old, to: folder.store)
    store = try Store.open(at: folder.store, seal: SealLab.request(.sealed))
    defer { try? store.close() }
    #expect(SealLab.findings(of: store) == [])
    #expect(try #require(try store.changeCount()) < anchor)
    let plain = try Store.open(at: folder.url.appendingPathComponent("plain"))
    #expect(try plain.changeCount() == nil)
    try plain.close()
  }
}
