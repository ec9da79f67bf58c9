import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// Changes that a player makes offline wait in the store for the cloud; however many wait, a commit must not cost more.
@Suite struct OutboxTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func cell(_ number: Int, _ value: Int64 = 1) -> CellDraft {
    CellDraft(CellKey(collection: "progress", key: "key \(number)"), .max(.int(value)))
  }

  @Test("after a season offline a save reads only the outbox group that it joins, not the thousands of waiting values")
  func readsOneGroup() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    var random = SeededRandom(seed: 71)
    func commit(_ cells: [CellDraft], saving text: String? = nil) throws {
      try store.write { transaction throws in
        var saves: [SaveDraft] = []
        if let text {
          let bytes = Data(text.utf8)
          saves = [
            SaveDraft(
              id: VersionID(using: &random), slot: "main", parents: .everyHead,
              contents: [try transaction.keepContent(bytes)],
              length: bytes.count, savedAtMilliseconds: 0)
          ]
        }
        try DeviceCommit.apply(
          CommitDraft(saves: saves, cells: cells), now: 0, writer: store.writer, in: &transaction, using: &random)
      }
    }
    // 5,000 keys: each group takes 200, and the next one begins.
    for group in 0..<25 { try commit((0..<DeviceCommit.maximumGroupCells).map { cell(group * 1_000 + $0) }) }
    let waiting = try store.read { try $0.outboxCount() }
    #expect(waiting == 25)
    // The other 24 are unreadable: reading even one of them throws.
    try store.write { transaction throws in
      try transaction.database.execute(sql: "UPDATE outbox SET body = x'00' WHERE id < (SELECT MAX(id) FROM outbox)")
    }
    #expect(throws: StoreError.self) { try store.read { try $0.outbox(limit: 1) } }
    try commit([cell(24_000, 2)], saving: "joins the group that is full, for it makes it no larger")
    try commit([cell(99_000)], saving: "begins a group")
    try commit([cell(99_001)], saving: "joins it")
    #expect(try store.read { try $0.outboxCount() } == 26)
    let newest = try #require(try store.read { try $0.newestOutboxGroup() })
    #expect(newest.cells.map(\.key.key) == ["key 99000", "key 99001"] && newest.versions.count == 1)
  }

  @Test("the newest outbox group is as its row says, though the store remembers what it wrote")
  func readsRow() throws {
    let store = try Store.open(at: folder.store)
    var random = SeededRandom(seed: 72)
    let real = CellDraft(CellKey(collection: "progress", key: "real"), .max(.double(0.1)))
    for number in 0..<3 {
      _ = try store.write { transaction throws in
        try DeviceCommit.apply(
          CommitDraft(cells: [cell(number), real]), now: 0, writer: store.writer, in: &transaction, using: &random)
      }
    }
    let known = try #require(try store.read { try $0.newestOutboxGroup() })
    try store.close()
    let again = try Store.open(at: folder.store)
    defer { try? again.close() }
    #expect(try again.read { try $0.newestOutboxGroup() } == known)
    // Writes the row, and then damages it.
    try again.write { transaction throws in
      try transaction.updateOutbox(known)
      #expect(try transaction.newestOutboxGroup() == known)
      try transaction.database.execute(sql: "UPDATE outbox SET body = x'00'")
    }
    #expect(throws: StoreError.self) { try again.read { try $0.newestOutboxGroup() } }
  }

  @Test("each waiting group is as its row says, though the store remembers what it read")
  func readsRows() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    var random = SeededRandom(seed: 73)
    for group in 0..<3 {
      let cells = (0..<DeviceCommit.maximumGroupCells).map { cell(group * 1_000 + $0) }
      try store.write { transaction throws in
        _ = try DeviceCommit.apply(
          CommitDraft(cells: cells), now: 0, writer: store.writer, in: &transaction, using: &random)
      }
    }
    let all = try store.read { try $0.outbox(limit: 9) }
    #expect(all.count == 3)
    for group in all {
      #expect(try store.read { try $0.outbox(limit: 9) } == all)
      try store.write { transaction throws in
        try transaction.database.execute(sql: "UPDATE outbox SET body = x'00' WHERE id = ?", arguments: [group.id])
      }
      #expect(throws: StoreError.self) { try store.read { try $0.outbox(limit: 9) } }
      try store.write { try $0.updateOutbox(group) }
    }
    #expect(try store.read { try $0.outbox(limit: 9) } == all)
  }

  @Test("the newest outbox group is nil in a store without unsent changes, and otherwise the last one")
  func empty() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(try store.read { try $0.newestOutboxGroup() } == nil)
    try store.write { transaction throws in
      try transaction.appendToOutbox(OutboxGroup(versions: [id(1)]))
      try transaction.appendToOutbox(OutboxGroup(versions: [id(2)]))
    }
    let groups = try store.read { try $0.outbox(limit: .max) }
    #expect(groups.count == 2)
    #expect(try store.read { try $0.newestOutboxGroup() } == groups.last)
  }
}
