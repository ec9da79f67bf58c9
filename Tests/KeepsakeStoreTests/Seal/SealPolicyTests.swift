import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// What each policy does with rows that don't verify: what the player gets, and what is reported.
@Suite struct SealPolicyTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Raises a level and replaces a save, as a save editor would.
  private func cheat(_ url: URL) throws {
    try SealLab.forge(CellState(value: .max(.int(99))), of: SealLab.level, in: url)
    let json = try JSONEncoder().encode(
      record(3, covers: [2], contents: [ContentHash(of: SealLab.bytes(1))], length: SealLab.bytes(1).count))
    try SealLab.edit(url) { database in
      try database.execute(
        sql: "UPDATE version SET body = ? WHERE position = 3",
        arguments: [SealLab.forged(String(decoding: json, as: UTF8.self), place: SealLab.headPlace)])
    }
  }

  @Test(
    "quarantine: a forged value is not used, and the newest save that verifies is shown instead of a forged one",
    arguments: SealLab.kinds)
  func quarantines(kind: Seal.Kind) throws {
    try SealLab.make(SealLab.request(kind), at: folder.store)
    try cheat(folder.store)
    let store = try Store.open(at: folder.store, seal: SealLab.request(kind))
    defer { try? store.close() }
    let findings = SealLab.findings(of: store)
    #expect(Set(findings.map(\.place)) == ["cell progress/level", SealLab.headPlace])
    let version = try #require(findings.first { $0.version != nil })
    #expect(version.version == id(3) && version.slot == "main" && version.usedInstead == id(2))
    try store.read { transaction throws in
      #expect(try transaction.cell(SealLab.level) == nil)
      #expect(try transaction.cell(SealLab.coins) == CellState(value: .max(.int(60))))
      #expect(try transaction.heads(of: "main") == [id(2)])
      #expect(try transaction.heads(of: "other") == [id(1_000)])
      let head = try #require(try transaction.version(id(2)))
      #expect(try transaction.plainContent(head.record.contents[0]) == SealLab.bytes(2))
      // Everything is fetched from the cloud again: it may have the value that was forged here.
      #expect(try transaction.facts().cursor == Cursor(epoch: 3, seq: 0, mark: 0))
      #expect(try transaction.facts().caughtUp)
      #expect(try transaction.staged() == [])
    }
    try store.save(SealLab.bytes(4), as: 4)
    #expect(try store.read { try $0.heads(of: "main") }.contains(id(4)))
  }

  @Test(
    "flag: forged rows are used, and reported at each opening from then on, also if the game has written them again")
  func flags() throws {
    try SealLab.make(SealLab.request(.signed), at: folder.store)
    try cheat(folder.store)
    for _ in 0..<2 {
      let store = try Store.open(at: folder.store, seal: SealLab.request(.signed, policy: .flag))
      let findings = SealLab.findings(of: store)
      #expect(Set(findings.map(\.place)) == ["cell progress/level", SealLab.headPlace])
      #expect(findings.allSatisfy { $0.outcome == .used && !$0.isDamage })
      try store.read { transaction throws in
        #expect(try transaction.cell(SealLab.level) == CellState(value: .max(.int(99))))
        #expect(try transaction.heads(of: "main") == [id(3)])
        #expect(try transaction.facts().cursor.seq == 7)
      }
      // A value made from a forged one verifies, and is as doubtful as that one.
      try store.write { transaction throws in
        try transaction.setCell(CellUpdate(key: SealLab.level, state: CellState(value: .max(.int(99)))))
      }
      try store.close()
    }
    let kept = try SealLab.edit(folder.store) {
      try Row.fetchAll($0, sql: "SELECT place, outcome FROM quarantine ORDER BY place")
    }
    #expect(kept.map { $0["outcome"] as String? } == ["used", "used"])
    // Damage is treated as damage under any policy: what it means is unknown.
    try SealLab.edit(folder.store) { database in
      try database.execute(sql: "UPDATE cell SET body = x'0011223344' WHERE key = 'coins'")
    }
    let store = try Store.open(at: folder.store, seal: SealLab.request(.signed, policy: .flag))
    defer { try? store.close() }
    #expect(store.incidents.map(\.kind) == [.recovered])
    // What was used remains reported, also after a recovery.
    #expect(Set(SealLab.findings(of: store).map(\.place)) == ["cell progress/level", SealLab.headPlace])
  }

  @Test(
    "reject: a store with a forged row is neither opened nor changed, and opens again without the forgery",
    arguments: SealLab.kinds)
  func rejects(kind: Seal.Kind) throws {
    try SealLab.make(SealLab.request(kind), at: folder.store)
    let good = try SealLab.edit(folder.store) { database in
      try #require(try Data.fetchOne(database, sql: "SELECT body FROM cell WHERE key = 'level'"))
    }
    try SealLab.forge(CellState(value: .max(.int(99))), of: SealLab.level, in: folder.store)
    let before = try SealLab.rows(of: folder.store)
    #expect(
      errorCode { _ = try Store.open(at: folder.store, seal: SealLab.request(kind, policy: .reject)) } == .tampered)
    #expect(try SealLab.rows(of: folder.store) == before)
    try SealLab.edit(folder.store) {
      try $0.execute(sql: "UPDATE cell SET body = ? WHERE key = 'level'", arguments: [good])
    }
    try Store.open(at: folder.store, seal: SealLab.request(kind, policy: .reject)).close()
  }

  @Test(
    "a row that is forged while the game runs is reported under the policy flag, and refused under the others",
    arguments: Seal.Policy.all)
  func whileRunning(policy: Seal.Policy) throws {
    let store = try Store.open(at: folder.store, seal: SealLab.request(.signed, policy: policy))
    defer { try? store.close() }
    try SealLab.fill(store)
    try SealLab.forge(CellState(value: .max(.int(99))), of: SealLab.level, in: folder.store)
    if policy == .flag {
      #expect(try store.read { try $0.cell(SealLab.level) } == CellState(value: .max(.int(99))))
      #expect(SealLab.findings(of: store).map(\.place) == ["cell progress/level"])
    } else {
      #expect(errorCode { _ = try store.read { try $0.cell(SealLab.level) } } == .tampered)
    }
  }

  private func forgeOutbox() throws {
    try SealLab.edit(folder.store) { database in
      for id in try Int64.fetchAll(database, sql: "SELECT id FROM outbox") {
        try database.execute(
          sql: "UPDATE outbox SET body = ? WHERE id = ?",
          arguments: [
            SealLab.forged(#"{"cells":[],"id":\#(id),"refusals":[],"versions":[]}"#, place: "outbox \(id)"), id,
          ])
      }
    }
  }

  @Test("if the outbox is forged, unsent saves and all values are queued again")
  func offersAgain() throws {
    try SealLab.make(SealLab.request(.signed), at: folder.store)
    try forgeOutbox()
    let store = try Store.open(at: folder.store, seal: SealLab.request(.signed))
    defer { try? store.close() }
    #expect(SealLab.findings(of: store).count == 2)
    let groups = try store.read { try $0.outbox(limit: 10) }
    #expect(groups.flatMap(\.versions) == [id(3)])
    #expect(Set(groups.flatMap(\.cells).map(\.key)) == [SealLab.level, SealLab.coins])
  }

  @Test("what is queued again after a forgery is in groups of the usual size")
  func offersInPieces() throws {
    var store = try Store.open(at: folder.store, seal: SealLab.request(.signed))
    for number in 0..<20 {
      let key = CellKey(collection: "progress", key: "large \(number)")
      let draft = CommitDraft(cells: [CellDraft(key, .max(.data(Data(count: 60_000))))])
      try store.write { transaction in
        var random = SystemRandomNumberGenerator()
        try DeviceCommit.apply(draft, now: 1, writer: store.writer, in: &transaction, using: &random)
      }
    }
    try store.close()
    try forgeOutbox()
    store = try Store.open(at: folder.store, seal: SealLab.request(.signed))
    defer { try? store.close() }
    let groups = try store.read { try $0.outbox(limit: 100) }
    #expect(groups.flatMap(\.cells).count == 20)
    #expect(groups.allSatisfy { $0.cells.reduce(0) { $0 + $1.size } <= DeviceCommit.maximumGroupBytes })
  }
}

extension Seal.Policy {
  static let all: [Seal.Policy] = [.flag, .quarantine, .reject]
}
