import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// The list of saved games, and each start of the game, query the heads of all slots at once.
@Suite struct SlotListTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test(
    "queries of all slots at once return the same as those of each slot: heads, conflicts, pins, slots without a head",
    arguments: [UInt64(1), 2, 3])
  func agrees(seed: UInt64) throws {
    let store = try Store.open(at: folder.store, history: HistoryRules(newest: 3, hourly: 0, daily: 0, weekly: 0))
    defer { try? store.close() }
    var random = SeededRandom(seed: seed)
    try store.write { transaction throws in
      for number in UInt64(1)...400 {
        let slot = "slot \(UInt64.random(in: 0..<30, using: &random))"
        var covers = try transaction.heads(of: slot).map(\.low)
        // Sometimes a head is left uncovered, which makes a conflict.
        if Bool.random(using: &random), !covers.isEmpty { covers.removeFirst() }
        let text = Data("\(slot) \(number)".utf8)
        let kept = [PreparedSave(hashes: [try transaction.keepContent(text)], length: text.count)]
        try transaction.put(number, slot: slot, covers: covers, kept, acknowledged: Bool.random(using: &random))
        if number % 7 == 0 { try transaction.setPinned(true, id(number)) }
        // The version that replaced it isn't known here: a slot without a head.
        if number % 31 == 0 { for head in try transaction.heads(of: slot) { try transaction.markCovered(head) } }
      }
      let lost = Data("lost".utf8)
      let kept = [PreparedSave(hashes: [try transaction.keepContent(lost)], length: lost.count)]
      try transaction.put(401, slot: "slot of which nothing stands", covers: [], kept, acknowledged: true)
      try transaction.markCovered(id(401))
    }
    try store.read { transaction throws in
      let heads = try transaction.headsOfAllSlots()
      let versions = try transaction.headVersionsOfAllSlots()
      #expect(heads.count > 20 && heads.values.contains { $0.count > 1 }, "seed \(seed)")
      #expect(
        versions.values.joined().contains { $0.isPinned } && versions.values.joined().contains { !$0.isPinned },
        "seed \(seed)")
      let slots = try transaction.slots()
      #expect(
        try slots == String.fetchAll(transaction.database, sql: "SELECT DISTINCT slot FROM version").sorted(),
        "seed \(seed)")
      #expect(
        slots.contains("slot of which nothing stands") && heads[.save("slot of which nothing stands")] == nil,
        "seed \(seed)")
      for slot in slots {
        let expected = try transaction.heads(of: slot)
        #expect(heads[.save(slot)] ?? [] == expected, "seed \(seed), \(slot)")
        let pinned = try transaction.pinnedVersions(of: slot)
        let known = try expected.compactMap { try transaction.version($0) }
        #expect((versions[.save(slot)] ?? []).map(\.version) == known, "seed \(seed), \(slot)")
        #expect((versions[.save(slot)] ?? []).map(\.isPinned) == expected.map(pinned.contains), "seed \(seed), \(slot)")
        for id in expected { #expect(try transaction.isPinned(id) == pinned.contains(id), "seed \(seed), \(slot)") }
      }
    }
  }

  @Test("the queries of a list read no versions except heads, however long the histories are")
  func looksAtHeadsOnly() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try store.read { transaction throws in
      func plan(_ sql: String) throws -> [String] {
        try Row.fetchAll(transaction.database, sql: "EXPLAIN QUERY PLAN " + sql).map { $0["detail"] }
      }
      let versions = try plan(StoreTransaction.headVersionsQuery)
      #expect(versions.contains { $0.contains("SEARCH version USING INDEX") }, "\(versions)")
      #expect(!versions.contains { $0.contains("SCAN version") }, "\(versions)")
      let heads = try plan(StoreTransaction.headsQuery)
      #expect(!heads.contains { $0.contains("version") || $0.contains("TEMP B-TREE") }, "\(heads)")
    }
  }
}
