import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#elseif canImport(Darwin)
import Darwin
#endif

/// How opening a store affects the saves in it, and the writes after it.
@Suite struct OpeningTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func offered(in store: Store) throws -> [Bool] {
    try store.read { transaction in try (UInt64(1)...3).compactMap { try transaction.version(id($0))?.offered } }
  }

  @Test("a save that a copy of the store may contain is marked as offered at the next opening")
  func marksWhatCopiesHold() throws {
    var store = try Store.open(at: folder.store)
    try store.save(Data("one".utf8), as: 1, acknowledged: false)
    try store.save(Data("two".utf8), as: 2, acknowledged: true)
    #expect(try offered(in: store) == [false, true])
    try store.close()
    store = try Store.open(at: folder.store)
    #expect(try offered(in: store) == [true, true])
    #expect(try store.read { try $0.unofferedVersions() } == [])
    try store.save(Data("three".utf8), as: 3, acknowledged: false)
    #expect(try offered(in: store) == [true, true, false])
    #expect(try store.read { try $0.unofferedVersions() } == [id(3)])
    try store.close()
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(try offered(in: store) == [true, true, true])
    #expect(try store.read { try $0.unacknowledgedVersions() } == [id(1), id(3)])
  }

  /// One byte or one mark of a row of each kind.
  static let damage = [
    "UPDATE fact SET \(flip("body")) WHERE name = 'wallet'", "UPDATE cell SET \(flip("body")) WHERE key = 'level'",
    "UPDATE version SET \(flip("body")) WHERE position = 2", "UPDATE version SET slot = 'Main' WHERE position = 2",
    "UPDATE version SET acknowledged = 1 - acknowledged WHERE position = 2",
    "UPDATE version SET offered = 1 - offered WHERE position = 2",
    "UPDATE outbox SET \(flip("body")) WHERE id = 1", "UPDATE staged SET \(flip("body"))",
    "UPDATE covered SET checksum = x'0011223344556677' WHERE id = (SELECT MIN(id) FROM covered)",
    "UPDATE covered SET checksum = x'' WHERE id = (SELECT MIN(id) FROM covered)",
    "UPDATE covered SET id = x'00000000000000000000000000000042' WHERE id = (SELECT MIN(id) FROM covered)",
    "UPDATE covered SET id = x'42' WHERE id = (SELECT MIN(id) FROM covered)",
  ]

  private static func flip(_ column: String) -> String {
    """
    \(column) = CAST(substr(\(column), 1, 12) || char((unicode(substr(\(column), 13, 1)) + 1) % 127) \
    || substr(\(column), 14) AS BLOB)
    """
  }

  @Test("a row that isn't as it was written is detected at opening, and the store is recovered", arguments: damage)
  func findsDamage(sql: String) throws {
    try SealLab.make(.none, at: folder.store)
    try SealLab.edit(folder.store) { database in
      try database.execute(sql: sql)
      #expect(database.changesCount == 1)
    }
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(store.incidents.map(\.kind) == [.recovered])
  }

  @Test("a store that is released without being closed keeps its lock until what was submitted is written", .hangLimit)
  func releasedWhileWriting() throws {
    let gate = Gate()
    do {
      let store = try Store.open(at: folder.store)
      _ = try store.submit { transaction, _ in
        try transaction.put(1)
        gate.pass()
      }
      gate.waitForArrival()
    }
    // As another process would.
    let file = open(folder.store.appendingPathComponent("lock").path, O_RDWR)
    defer { close(file) }
    #expect(flock(file, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK)
    let folder = folder.store
    let opening = WatchedThread { try Store.open(at: folder) }
    #expect(opening.waitUntilBlocked())
    gate.open()
    let again = try opening.value()
    defer { try? again.close() }
    #expect(try again.read { try $0.heads(of: "main") } == [id(1)])
    #expect(again.incidents.isEmpty)
  }

  @Test("who waits for a released store gives up if it isn't done in time, and the store keeps its folder", .hangLimit)
  func releasedForLong() throws {
    let gate = Gate()
    do {
      let store = try Store.open(at: folder.store)
      _ = try store.submit { transaction, _ in
        try transaction.put(1)
        gate.pass()
      }
      gate.waitForArrival()
    }
    let lock = folder.store.appendingPathComponent("lock")
    #expect(errorCode { _ = try StoreLock(at: lock, within: .milliseconds(1)) } == .inUse)
    gate.open()
    let again = try Store.open(at: folder.store)
    defer { try? again.close() }
    #expect(try again.read { try $0.heads(of: "main") } == [id(1)])
  }

  @Test("a released store whose folder was replaced leaves what is there alone")
  func releasedAfterReplacing() throws {
    let other = TemporaryFolder.url()
    let log = folder.store.appendingPathComponent(Store.databaseName + "-wal")
    do {
      let store = try Store.open(at: folder.store)
      try store.save(Data("one".utf8), as: 1)
      try FileManager.default.moveItem(at: folder.store, to: other)
      try FileManager.default.createDirectory(at: folder.store, withIntermediateDirectories: true)
      try Data("another's log".utf8).write(to: log)
    }
    defer { try? FileManager.default.removeItem(at: other) }
    // Waits until the store has ended.
    try StoreLock(at: folder.store.appendingPathComponent("lock")).release()
    #expect(try Data(contentsOf: log) == Data("another's log".utf8))
    let found = try Store.open(at: other)
    defer { try? found.close() }
    #expect(try found.read { try $0.heads(of: "main") } == [id(1)])
  }

  @Test("a write that opening had no room for is made with the next write that succeeds, and only once")
  func makesUpForFullDisk() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let done = Shared(0)
    store.database.beforeNextWrite { database in
      done.value += 1
      try StoreTransaction(database, in: store.database.context).run("DELETE FROM cloud_content", [])
    }
    struct Refused: Error {}
    #expect(throws: Refused.self) { try store.write { _ in throw Refused() } }
    // It was rolled back together with the failed write, so it is still due.
    #expect(done.value == 1)
    try store.save(Data("one".utf8), as: 1)
    #expect(done.value == 2)
    try store.save(Data("two".utf8), as: 2)
    try store.write { try $0.setCloudDepth(1, of: ContentHash(of: Data())) }
    #expect(done.value == 2)
    #expect(try store.read { try $0.cloudDepth(of: ContentHash(of: Data())) } == 1)
  }
}
