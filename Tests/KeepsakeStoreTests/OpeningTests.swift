import Foundation
import GRDB
import KeepsakeReplication
import Testing

@testable import KeepsakeStore

/// What opening a store leaves behind for the saves after it.
@Suite struct OpeningTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func offered(in store: Store) throws -> [Bool] {
    try store.read { transaction in try (UInt64(1)...3).compactMap { try transaction.version(id($0))?.offered } }
  }

  @Test("a save that a copy of the store may hold is marked at the next opening, else the copy's save comes back as a conflict")
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

  @Test("an opening that had no room to write leaves it to the next write that succeeds, and does it once")
  func makesUpForFullDisk() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let done = Shared(0)
    store.database.beforeNextWrite { database in
      done.value += 1
      try StoreTransaction(database, memory: store.memory).run("DELETE FROM cloud_content", [])
    }
    struct Refused: Error {}
    #expect(throws: Refused.self) { try store.write { _ in throw Refused() } }
    // Taken back together with what failed, so it is still to be done.
    #expect(done.value == 1)
    try store.save(Data("one".utf8), as: 1)
    #expect(done.value == 2)
    try store.save(Data("two".utf8), as: 2)
    try store.write { try $0.setCloudDepth(1, of: ContentHash(of: Data())) }
    #expect(done.value == 2)
    #expect(try store.read { try $0.cloudDepth(of: ContentHash(of: Data())) } == 1)
  }
}
