import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// Saves that are rolled back or fail must not affect the saves after them.
@Suite struct BatchTests {
  let folder: TemporaryFolder
  private struct Refused: Error {}

  init() throws { folder = try TemporaryFolder() }

  @Test("a save doesn't rely on a content that another save of the same batch repaired, if that save was rolled back")
  func batchHealing() throws {
    var store = try Store.open(at: folder.store)
    let bytes = SegmentTests.map(1 << 16, seed: 12)
    try store.save(bytes, as: 1)
    try store.write { try $0.database.execute(sql: "UPDATE content SET bytes = x'00'") }
    try store.close()
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    // Both commits below wait for this one, and then share a transaction.
    let gate = Gate()
    let blocker = try store.submit { _, _ in gate.pass() }
    gate.waitForArrival()
    let a = try store.submit([(slot: "main", bytes: bytes)]) { _, _ in throw Refused() }
    let b = try store.submit([(slot: "main", bytes: bytes)]) { transaction, kept in
      try transaction.put(2, covers: [1], kept)
    }
    gate.open()
    try blocker.wait()
    #expect(throws: Refused.self) { try a.wait() }
    try b.wait()
    store.memory.forgetPlain()
    #expect(errorCode { _ = try store.read { try $0.plainContent(ContentHash(of: bytes)) } } == nil)
  }

  @Test(
    "a save of a batch doesn't build on the content of another one that was rolled back, which isn't there any more")
  func batchBase() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let series = ContentTests.series(count: 3, seed: 6)
    try store.save(series[0], as: 1)
    let gate = Gate()
    let blocker = try store.submit { _, _ in gate.pass() }
    gate.waitForArrival()
    let a = try store.submit([(slot: "main", bytes: series[1])]) { _, _ in throw Refused() }
    let b = try store.submit([(slot: "main", bytes: series[2])]) { transaction, kept in
      try transaction.put(2, covers: [1], kept)
    }
    gate.open()
    try blocker.wait()
    #expect(throws: Refused.self) { try a.wait() }
    try b.wait()
    // Its bytes are still cached.
    #expect(errorCode { _ = try store.read { try $0.plainContent(ContentHash(of: series[1])) } } == .missing)
    store.memory.forgetPlain()
    let isSame = try store.read { try $0.plainContent(ContentHash(of: series[2])) } == series[2]
    #expect(isSame)
  }

  @Test("of the saves that wait together, large or small, one that can't be prepared fails its own commit only")
  func preparedTogether() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try store.save(Data("theirs".utf8), as: 1, slot: "other")
    try store.write { try $0.database.execute(sql: "UPDATE version SET body = x'00' WHERE slot = 'other'") }
    var random = SeededRandom(seed: 14)
    let small = ContentTests.series(count: 3, seed: 7)
    let large = random.noise(3 << 20)
    let gate = Gate()
    let blocker = try store.submit { _, _ in gate.pass() }
    gate.waitForArrival()
    let first = try store.submit([(slot: "main", bytes: small[0])]) { try $0.put(11, $1) }
    let damaged = try store.submit([(slot: "second", bytes: small[2]), (slot: "other", bytes: small[2])]) {
      try $0.put(21, $1)
    }
    let whole = try store.submit([(slot: "main", bytes: large)]) { try $0.put(12, covers: [11], $1) }
    let empty = try store.submit { transaction, kept in kept.count }
    let last = try store.submit([(slot: "main", bytes: small[1])]) { try $0.put(13, covers: [12], $1) }
    gate.open()
    try blocker.wait()
    #expect(errorCode { try damaged.wait() } == .damaged)
    try first.wait()
    try whole.wait()
    try last.wait()
    #expect(try empty.wait() == 0)
    store.memory.forgetPlain()
    try store.read { transaction in
      for (number, bytes) in [(11, small[0]), (12, large), (13, small[1])] as [(UInt64, Data)] {
        let record = try #require(try transaction.version(id(number))).record
        #expect(try transaction.plainBytes(of: record) == bytes)
      }
      #expect(try transaction.version(id(21)) == nil)
    }
    #expect(errorCode { _ = try store.read { try $0.plainContent(ContentHash(of: small[2])) } } == .missing)
  }

  @Test("after a failed commit the next save is stored as a delta against the last save that was committed")
  func failedBase() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let series = ContentTests.series(count: 12, seed: 5)
    for index in stride(from: 0, to: 12, by: 2) {
      try store.save(series[index], as: UInt64(index / 2 + 1))
      let failed = try store.submit([(slot: "main", bytes: series[index + 1])]) { _, _ in throw Refused() }
      #expect(throws: Refused.self) { try failed.wait() }
    }
    let full = try store.read { try Int.fetchOne($0.database, sql: "SELECT COUNT(*) FROM content WHERE base IS NULL") }
    #expect(full == 1)
  }

  @Test("segments that are written before a large save's commit are removed when the commit fails")
  func failedAhead() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    var random = SeededRandom(seed: 4)
    let failed = try store.submit([(slot: "main", bytes: random.noise(9 << 20))]) { _, _ in throw Refused() }
    #expect(throws: Refused.self) { try failed.wait() }
    try store.drain()
    #expect(try store.read { try Int.fetchOne($0.database, sql: "SELECT COUNT(*) FROM content") } == 0)
  }

  @Test("a save made from another device's save is stored as a delta against that save")
  func receivedBase() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    var random = SeededRandom(seed: 9)
    let mine = random.bytes(200_000)
    var theirs = random.bytes(200_000)
    try store.save(mine, as: 1)
    let there = theirs
    try store.write { transaction in
      let hash = try transaction.keepContent(there)
      try transaction.put(2, covers: [1], [PreparedSave(hashes: [hash], length: there.count)])
    }
    theirs[7] ^= 1
    try store.save(theirs, as: 3)
    let size = try store.read {
      try Int.fetchOne(
        $0.database, sql: "SELECT LENGTH(bytes) FROM content WHERE hash = ?", arguments: [ContentHash(of: theirs).bytes]
      )
    }
    #expect((size ?? 0) < 10_000, "one byte changed, \(size ?? 0) bytes stored")
  }

  @Test("segments that are written before a large save's commit are removed when the disk fills up")
  func fullWhileAhead() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try store.save(Data("first".utf8), as: 1)
    try store.write { transaction in
      let pages = try Int.fetchOne(transaction.database, sql: "PRAGMA page_count") ?? 0
      _ = try Int.fetchOne(transaction.database, sql: "PRAGMA max_page_count = \(pages + (20 << 20) / 4096)")
    }
    var random = SeededRandom(seed: 3)
    let large = random.noise(32 << 20)
    #expect(errorCode { try store.save(large, as: 2) } == .diskFull)
    try store.drain()
    let left = try store.read { try Int.fetchOne($0.database, sql: "SELECT SUM(LENGTH(bytes)) FROM content") ?? 0 }
    #expect(left < 1_000, "\(left) bytes of a save that failed stay on the full disk")
    #expect(errorCode { try store.save(random.bytes(3 << 20), as: 2) } == nil)
  }
}
