import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

#if canImport(Glibc)
import Glibc
#endif

@Suite struct StoreTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test("everything that was written to a store is there after it was closed and opened again")
  func reopens() throws {
    let chain = ChainID(high: 3, low: 4)
    let cell = CellUpdate(
      key: CellKey(collection: "progress", key: "level"), state: CellState(generation: 2, value: .max(.int(6))))
    let counter = CellUpdate(
      key: CellKey(collection: "progress", key: "coins"),
      state: CellState(value: .counter([WriterID(7): CounterEntry(plus: 9, minus: 2)])))
    var facts = DeviceFacts(
      container: ContainerID(high: 1, low: 2), cursor: Cursor(epoch: 1, seq: 1 << 61, mark: .max), caughtUp: true,
      serverOffsetMilliseconds: -5, lastFetchedMilliseconds: 8, hasArrivals: true)
    facts.moves = 3
    facts.isRefused = true
    let wallet = WalletState(chain: chain)
    let staged = [CloudChange(seq: 4, item: .cell(cell)), CloudChange(seq: 9, item: .version(record(77)))]
    let metadata = SaveMetadata(
      title: "Höhle \u{0}", playtime: 1.5, progress: 2, thumbnail: Data([0, 255]), custom: ["a": "b"])
    let bytes = Data("the world".utf8)
    var saved: VersionRecord?

    var store = try Store.open(at: folder.store)
    let firstWriter = store.writer
    try store.write { transaction throws in
      try transaction.setFacts(facts)
      try transaction.setWallet(wallet)
      try transaction.setCell(cell)
      try transaction.setCell(counter)
      let hash = try transaction.keepContent(bytes)
      let version = record(5, covers: [1, 2], contents: [hash], length: bytes.count, metadata: metadata)
      saved = version
      try transaction.putVersion(StoredVersion(record: version, acknowledged: false, offered: true))
      try transaction.markCovered(id(1))
      try transaction.setCloudDepth(3, of: hash)
      try transaction.appendToOutbox(OutboxGroup(cells: [cell], versions: [id(5)]))
      try transaction.appendToOutbox(OutboxGroup(versions: [id(5)]))
      try transaction.stage(staged)
    }
    try store.close()

    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(store.writer != firstWriter)
    try store.read { transaction throws in
      #expect(try transaction.facts() == facts)
      #expect(try transaction.wallet() == wallet)
      #expect(try transaction.cell(cell.key) == cell.state)
      #expect(try transaction.cell(CellKey(collection: "scores", key: "level")) == nil)
      #expect(try transaction.cells(in: "progress") == [counter, cell])
      #expect(try transaction.cells(in: nil) == [counter, cell])
      #expect(try transaction.cells(in: "scores") == [])
      let version = try #require(try transaction.version(id(5)))
      #expect(version == StoredVersion(record: try #require(saved), acknowledged: false, offered: true))
      #expect(try transaction.slots() == ["main"])
      #expect(try transaction.heads(of: "main") == [id(5)])
      #expect(try transaction.unacknowledgedVersions() == [id(5)])
      #expect(try transaction.isCovered(id(1)))
      #expect(try !transaction.isCovered(id(2)))
      let hash = version.record.contents[0]
      #expect(try transaction.plainContent(hash) == bytes)
      #expect(try transaction.cloudDepth(of: hash) == 3)
      let outbox = try transaction.outbox(limit: 10)
      #expect(outbox.map(\.versions) == [[id(5)], [id(5)]])
      #expect(outbox.first?.cells == [cell])
      #expect(outbox.map(\.id) == outbox.map(\.id).sorted() && outbox[0].id != outbox[1].id)
      #expect(try transaction.outbox(limit: 1).count == 1)
      #expect(try transaction.staged() == staged)
    }
    try store.write { transaction throws in
      let last = try transaction.outbox(limit: 2)[1].id
      try transaction.removeFromOutbox(last)
      try transaction.appendToOutbox(OutboxGroup())
      // A group's number is never used again.
      #expect(try transaction.outbox(limit: 9).last.map { $0.id > last } == true)
      try transaction.clearStaged()
      try transaction.clearCloudDepths()
      #expect(try transaction.staged() == [])
      #expect(try transaction.cloudDepth(of: ContentHash(of: bytes)) == nil)
    }
  }

  #if os(Linux)
  @Test("a store can be opened again at once even if the game started another program while closing it")
  func releasesLockOfChildren() throws {
    let store = try Store.open(at: folder.store)
    let copies = try copiedDescriptors(of: folder.store.appendingPathComponent("lock"))
    defer { for copy in copies { close(copy) } }
    #expect(copies.count == 1)
    try store.close()
    try Store.open(at: folder.store).close()
  }
  #endif

  @Test("a write that throws leaves nothing behind")
  func rollsBack() throws {
    struct Stop: Error {}
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(throws: Stop.self) {
      try store.write { transaction throws in
        try transaction.put(1, [PreparedSave(hashes: [transaction.keepContent(Data([1, 2, 3]))], length: 3)])
        throw Stop()
      }
    }
    try store.read { transaction throws in
      #expect(try transaction.slots() == [])
      #expect(try !transaction.hasContent(ContentHash(of: Data([1, 2, 3]))))
      #expect(throws: StoreError.self) { try transaction.plainContent(ContentHash(of: Data([1, 2, 3]))) }
    }
  }

  @Test("a commit that fails affects none of the commits beside it, and only its own call throws")
  func failsAlone() throws {
    struct Stop: Error {}
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    var pending: [PendingCommit<Void>] = []
    for number in UInt64(1)...20 {
      pending.append(
        try store.submit([(slot: "slot \(number)", bytes: Data([UInt8(number)]))]) {
          transaction, kept in
          try transaction.put(number, slot: "slot \(number)", kept)
          if number == 7 { throw Stop() }
        })
    }
    for (index, commit) in pending.enumerated() {
      if index == 6 { #expect(throws: Stop.self) { try commit.wait() } } else { try commit.wait() }
    }
    #expect(try store.read { try $0.slots().count } == 19)
    #expect(try store.read { try !$0.hasContent(ContentHash(of: Data([7]))) })
  }

  @Test("a save that a task awaits is in the store when the task continues")
  func awaits() async throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let commit = try store.submit([(slot: "main", bytes: Data("x".utf8))]) { transaction, kept in
      try transaction.put(1, kept)
      return kept[0].hashes[0]
    }
    let hash = try await commit.value
    #expect(try store.read { try $0.plainContent(hash) } == Data("x".utf8))
    #expect(try commit.wait(within: .zero) == hash)
  }

  @Test("a row that is altered while the store is open is detected, though it was written or read a moment ago")
  func alteredWhileOpen() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    for number in UInt64(1)...2 { try store.save(Data("save \(number)".utf8), as: number) }
    let before = try store.read { try $0.version(id(1)) }
    #expect(before?.record == record(1, contents: [ContentHash(of: Data("save 1".utf8))], length: 6))
    try store.write {
      try $0.database.execute(sql: "UPDATE version SET body = \(bodyAltered(at: 21))")
    }
    for number in UInt64(1)...2 { #expect(errorCode { _ = try store.read { try $0.version(id(number)) } } == .damaged) }
    // Neither another row's body is accepted, nor the same body beside other columns.
    try store.save(Data("other".utf8), as: 1_000, slot: "other")
    try store.write { try $0.database.execute(sql: "UPDATE version SET saved_at = 7 WHERE slot = 'other'") }
    #expect(errorCode { _ = try store.read { try $0.version(id(1_000)) } } == .damaged)
  }

  @Test("a version never changes its slot")
  func otherSlot() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try store.write { try $0.put(1, slot: "a") }
    #expect(errorCode { try store.write { try $0.put(1, slot: "b") } } == .misuse)
    #expect(try store.read { try ($0.heads(of: "a"), $0.heads(of: "b")) } == ([id(1)], []))
  }

  @Test("a game that submits saves faster than the disk writes them loses nothing")
  func backPressure() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    var last: PendingCommit<Void>?
    for number in UInt64(1)...500 {
      last = try store.submit([(slot: "main", bytes: Data("\(number)".utf8))]) { transaction, kept in
        try transaction.put(number, covers: number > 1 ? [number - 1] : [], kept)
      }
    }
    try last?.wait()
    #expect(try store.read { try $0.heads(of: "main") } == [id(500)])
    #expect(try store.read { try $0.history(of: "main").count } == HistoryRules.standard.newest)
  }

  @Test("a full disk throws `diskFull` and loses nothing that was saved, and saving works again when there is room")
  func fullDisk() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    var random = SeededRandom(seed: 11)
    try store.save(random.bytes(10_000), as: 1)
    let pages = try store.database.pool.writeWithoutTransaction { database -> Int in
      let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
      try database.execute(sql: "PRAGMA max_page_count = \(pages + 2)")
      return pages
    }
    let large = random.bytes(500_000)
    var codes: [StoreError.Code?] = []
    for number in UInt64(2)...4 { codes.append(errorCode { try store.save(large, as: number) }) }
    #expect(codes == [.diskFull, .diskFull, .diskFull])
    #expect(errorCode { try store.write { transaction in _ = try transaction.keepContent(large) } } == .diskFull)
    #expect(try store.read { try $0.heads(of: "main") } == [id(1)])
    try store.database.pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA max_page_count = \(pages + 1_000)") }
    try store.save(large, as: 2)
    #expect(try store.read { try $0.heads(of: "main") } == [id(2)])
    #expect(try store.read { try $0.plainContent(ContentHash(of: large)) } == large)
  }

  @Test("a store that is open can't be opened a second time before it is closed")
  func locks() throws {
    let store = try Store.open(at: folder.store)
    #expect(errorCode { _ = try Store.open(at: folder.store) } == .inUse)
    try store.close()
    try store.close()
    #expect(errorCode { try store.write { _ in } } == .misuse)
    #expect(errorCode { try store.drain() } == .misuse)
    let again = try Store.open(at: folder.store)
    try again.close()
  }

  @Test("a store of a newer release is refused, and not a byte of it is changed")
  func refusesNewer() throws {
    try Store.open(at: folder.store).close()
    let file = folder.store.appendingPathComponent(Store.databaseName)
    let queue = try DatabaseQueue(path: file.path)
    try queue.write { try $0.execute(sql: "PRAGMA user_version = \(Schema.currentVersion + 1)") }
    try queue.close()
    let before = try Data(contentsOf: file)
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.store.path).sorted()
    #expect(errorCode { _ = try Store.open(at: folder.store) } == .newerFormat)
    #expect(try Data(contentsOf: file) == before)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.store.path).sorted() == names)
  }

  @Test("opening another program's database throws `misuse`, an unreadable one `damaged`, and neither is changed")
  func refusesForeign() throws {
    let other = folder.url.appendingPathComponent("other")
    try FileManager.default.createDirectory(at: other, withIntermediateDirectories: true)
    let file = other.appendingPathComponent(Store.databaseName)
    let queue = try DatabaseQueue(path: file.path)
    try queue.write { try $0.execute(sql: "CREATE TABLE mine (x); PRAGMA application_id = 7") }
    try queue.close()
    let theirs = try Data(contentsOf: file)
    #expect(errorCode { _ = try Store.open(at: other) } == .misuse)
    #expect(try Data(contentsOf: file) == theirs)
    let text = Data(
      "hello, this is not a database at all, but long enough to look like one, 100 bytes and a few more on top".utf8
    )
    try text.write(to: file)
    #expect(errorCode { _ = try Store.open(at: other) } == .damaged)
    #expect(try Data(contentsOf: file) == text)
    #expect(errorCode { _ = try Store.open(at: file) } == .misuse)
  }

  @Test(
    "a row that another program changed is detected, in an open store and at the next opening",
    arguments: ["cell", "version", "outbox"])
  func findsDamagedRows(table: String) throws {
    let store = try Store.open(at: folder.store)
    try store.write { transaction throws in
      try transaction.setCell(
        CellUpdate(key: CellKey(collection: "progress", key: "level"), state: CellState(value: .max(.int(6)))))
      try transaction.put(1)
      try transaction.appendToOutbox(OutboxGroup(versions: [id(1)]))
    }
    let change = { () throws in
      let queue = try DatabaseQueue(path: self.folder.store.appendingPathComponent(Store.databaseName).path)
      try queue.write { database in
        let body = try #require(try Data.fetchOne(database, sql: "SELECT body FROM \(table)"))
        var changed = body
        changed[changed.count - 3] ^= 1
        try database.execute(sql: "UPDATE \(table) SET body = ?", arguments: [changed])
      }
      try queue.close()
    }
    let read = { (store: Store) throws in
      try store.read { transaction throws in
        _ = try transaction.cells(in: nil)
        _ = try transaction.version(id(1))
        _ = try transaction.outbox(limit: 9)
      }
    }
    // While the store is open.
    try change()
    #expect(errorCode { try read(store) } == .damaged)
    try store.close()
    // And before it is opened.
    let again = try Store.open(at: folder.store)
    defer { try? again.close() }
    #expect(again.incidents.map(\.kind) == [.recovered])
    try read(again)
  }

  @Test("closing a store from several threads at the same time does nothing after the first, and throws nowhere")
  func closesAtOnce() async throws {
    for _ in 0..<30 {
      let store = try Store.open(at: folder.store)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<4 { group.addTask { try await onThread { try store.close() } } }
        try await group.waitForAll()
      }
    }
  }
}
