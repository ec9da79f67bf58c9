import Foundation
import GRDB
import GRDBSQLite
import KeepsakeReplication
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeStore

/// The disk fails while the game saves: the save throws the reason, earlier saves remain, and saving works again when
/// the cause is gone.
@Suite(.serialized) struct DiskFaultTests {
  let folder: URL

  init() throws {
    try #require(FaultyDisk.isInstalled)
    folder = TemporaryFolder.url(FaultyDisk.mark)
  }

  private func failing(_ fault: FaultyDisk.Fault, _ body: () throws -> Void) rethrows {
    FaultyDisk.fault.withLock { $0 = fault }
    defer { FaultyDisk.fault.withLock { $0 = nil } }
    try body()
  }

  private func heads(_ store: Store) throws -> [VersionID] { try store.read { try $0.heads(of: "main") } }

  @Test(
    "each cause of a failed save throws its own error, every time, and the next save after it works",
    arguments: [
      (FaultyDisk.Fault.write(SQLITE_FULL), StoreError.Code.diskFull), (.write(SQLITE_READONLY), .notPermitted),
      (.write(FaultyDisk.failedWrite), .io), (.sync(FaultyDisk.failedSync), .io),
    ])
  func tells(fault: FaultyDisk.Fault, expected: StoreError.Code) throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let store = try Store.open(at: folder)
    try store.save(Data("first".utf8), as: 1)
    failing(fault) {
      for number in UInt64(2)...4 {
        let code = errorCode { try store.save(Data("lost \(number)".utf8), as: number) }
        #expect(code == expected, "save \(number)")
      }
    }
    #expect(try heads(store) == [id(1)])
    try store.save(Data("second".utf8), as: 2)
    #expect(try heads(store) == [id(2)])
    #expect(try store.read { try $0.plainContent(ContentHash(of: Data("first".utf8))) } == Data("first".utf8))
    // After an I/O error the disk may have dropped data, so the store was reopened before each further attempt; a full
    // disk drops nothing.
    #expect(Set(store.incidents.map(\.kind)) == (expected == .io ? [.reopened] : []))
    try store.close()
    let again = try Store.open(at: folder)
    defer { try? again.close() }
    #expect(try heads(again) == [id(2)] && again.incidents.isEmpty)
  }

  @Test("a save whose sync failed is not in the store afterwards, though its bytes look committed")
  func distrustsFailedSync() throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let store = try Store.open(at: folder)
    try store.save(Data("first".utf8), as: 1)
    let log = StoreFiles(folder: folder).log
    failing(.sync(FaultyDisk.failedSync)) { #expect(errorCode { try store.save(Data("lost".utf8), as: 2) } == .io) }
    // The log contains a commit that SQLite itself would accept at the next opening.
    #expect(try WriteAheadLog.read(log, defaultPageSize: 4_096).state == .sound)
    try store.write { transaction throws in #expect(try transaction.heads(of: "main") == [id(1)]) }
    #expect(store.incidents.map(\.kind) == [.reopened])
    #expect(try store.read { try !$0.hasContent(ContentHash(of: Data("lost".utf8))) })
    try store.close()
  }

  @Test("after a save has met damage, the running game's saves are refused; the next opening repairs the store")
  func meetsDamage() throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let store = try Store.open(at: folder)
    try store.save(Data("first".utf8), as: 1)
    failing(.write(SQLITE_CORRUPT)) { #expect(errorCode { try store.save(Data("lost".utf8), as: 2) } == .damaged) }
    #expect(errorCode { try store.save(Data("lost".utf8), as: 2) } == .damaged)
    #expect(try heads(store) == [id(1)])
    #expect(StoreFiles.exists(StoreFiles(folder: folder).suspicion))
    try store.close()
    let again = try Store.open(at: folder)
    defer { try? again.close() }
    #expect(!StoreFiles.exists(StoreFiles(folder: folder).suspicion))
    try again.save(Data("second".utf8), as: 2)
    #expect(try heads(again) == [id(2)])
  }

  @Test("what is rescued of a store that has met damage is marked, so that its opening checks all of it")
  func rescuesAfterDamage() throws {
    let rescued = TemporaryFolder.url()
    defer { for url in [folder, rescued] { try? FileManager.default.removeItem(at: url) } }
    let store = try Store.open(at: folder)
    defer { try? store.close() }
    try store.save(Data("first".utf8), as: 1)
    failing(.write(SQLITE_CORRUPT)) { #expect(errorCode { try store.save(Data("lost".utf8), as: 2) } == .damaged) }
    try StoreRescue.rescue(store, nil, to: rescued)
    #expect(StoreFiles.exists(StoreFiles(folder: rescued).suspicion))
    let found = try Store.open(at: rescued)
    defer { try? found.close() }
    #expect(try heads(found) == [id(1)] && found.incidents.isEmpty)
  }

  @Test("a save that waits behind one whose sync fails is written only after the store was reopened")
  func waitsForTheLook() throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let store = try Store.open(at: folder)
    defer { try? store.close() }
    try store.save(Data("first".utf8), as: 1)
    let gate = Gate()
    let failed = try store.submit { transaction, _ in
      try transaction.put(2, covers: [1])
      gate.pass()
    }
    gate.waitForArrival()
    let second = WatchedThread { () throws -> (outcome: String, incidents: Int) in
      do {
        try store.write { transaction in
          FaultyDisk.fault.withLock { $0 = nil }
          try transaction.put(3, covers: [1])
        }
        return ("written", store.incidents.count)
      } catch { return ("\(error)", store.incidents.count) }
    }
    let hasWaited = second.waitUntilBlocked()
    FaultyDisk.fault.withLock { $0 = .sync(FaultyDisk.failedSync) }
    gate.open()
    let code = errorCode { try failed.wait() }
    let seen = try second.value()
    FaultyDisk.fault.withLock { $0 = nil }
    #expect(hasWaited, "the second save must wait for the first")
    #expect(code == .io)
    #expect(seen.incidents > 0, "acknowledged after a failed sync, without reopening the store: \(seen)")
  }

  @Test(
    "after a failed transaction the player's next save replaces the last durable one",
    arguments: [FaultyDisk.Fault.write(SQLITE_FULL), .sync(FaultyDisk.failedSync)])
  func goesOnFromDurable(fault: FaultyDisk.Fault) throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let store = try Store.open(at: folder)
    defer { try? store.close() }
    _ = try store.submit(GameCommit(1)).wait()
    try failing(fault) {
      let pending = try (UInt64(2)...4).map { try store.submit(GameCommit($0)) }
      let move = try store.submit(SlotMove(of: "main", .leave(removing: false), now: 5))
      for commit in pending { #expect(throws: StoreError.self) { try commit.wait() } }
      #expect(throws: StoreError.self) { try move.wait() }
    }
    let outcome = try store.submit(GameCommit(6)).wait()
    #expect(outcome.versions[0].record.covers == [id(1)] && outcome.versions[0].record.slot == "main")
    #expect(try heads(store) == [id(6)])
  }

  @Test(
    "a commit that fails at any write to the disk leaves nothing behind, and the next replaces the last durable save",
    arguments: [SQLITE_FULL, FaultyDisk.failedWrite])
  func everyWrite(code: Int32) throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let store = try Store.open(at: folder, history: .newestOnly, writer: WriterID(1))
    defer { try? store.close() }
    _ = try store.submit(GameCommit(1)).wait()
    var durable: [UInt64] = [1]
    for spared in 0..<500 {
      let number = UInt64(spared) + 2
      // Reopens the store if the disk failed: what is to fail is the commit.
      try store.drain()
      var isLost = false
      try failing(.write(code, after: spared)) {
        let commit = try store.submit(GameCommit(number))
        do { _ = try commit.wait() } catch is StoreError { isLost = true }
      }
      if !isLost { durable.append(number) }
      #expect(try heads(store) == durable.suffix(1).map(id), "after \(spared) writes")
      if !isLost { break }
    }
    // A commit that needs hardly any writes would show nothing.
    #expect(durable.count == 2 && durable[1] > 6)
    _ = try store.submit(GameCommit(1_000)).wait()
    try store.expectOnly(durable + [1_000])
  }

  @Test("a content that a failed transaction had repaired is repaired by the next save", arguments: [true, false])
  func repairsAgain(isSubmitted: Bool) throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let store = try Store.open(at: folder)
    defer { try? store.close() }
    let bytes = Data("first".utf8)
    try store.save(bytes, as: 1)
    try store.write { try $0.database.execute(sql: "UPDATE content SET bytes = x'00'") }
    store.memory.forgetPlain()
    failing(.write(SQLITE_FULL)) {
      let code = errorCode {
        if isSubmitted { try store.save(bytes, as: 2) } else { try store.write { _ = try $0.keepContent(bytes) } }
      }
      #expect(code == .diskFull)
    }
    try store.drain()
    try store.save(bytes, as: 2)
    store.memory.forgetPlain()
    #expect(errorCode { _ = try store.read { try $0.plainContent(ContentHash(of: bytes)) } } == nil)
    #expect(try heads(store) == [id(2)])
  }
}
