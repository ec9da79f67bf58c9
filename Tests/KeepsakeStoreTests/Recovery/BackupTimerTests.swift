import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// The backup from which a player's saves can be restored is really made while the game runs, and doesn't block the
/// game.
@Suite struct BackupTimerTests {
  private static let interval = Duration.seconds(300)
  private let folder: TemporaryFolder
  private let clock = Shared(ContinuousClock.now)
  /// Makes a copy that has begun wait between two steps, until it may continue or is stopped.
  private let isHeld = Shared(false)
  private let copying = Shared<RollingBackup?>(nil)
  /// Whether a copy has made its first step. Until then a store that is released isn't copied at all.
  private let hasBegun = Shared(false)
  private var files: StoreFiles { StoreFiles(folder: folder.store) }

  init() throws { folder = try TemporaryFolder() }

  private var schedule: BackupSchedule {
    BackupSchedule(
      interval: { _ in Self.interval }, now: { [clock] in clock.value },
      pause: { [isHeld, copying, hasBegun] in
        hasBegun.value = true
        while isHeld.value, copying.value?.isStopped != true { Thread.sleep(forTimeInterval: 0.001) }
      })
  }

  private func open() throws -> Store {
    let store = try Store.open(at: folder.store, seal: .none, writer: WriterID(1), backups: schedule)
    copying.value = store.database.backup
    return store
  }

  private func pass(_ time: Duration) { clock.value += time }

  private func save(_ number: UInt64, in store: Store) throws {
    try store.save(Data("save \(number)".utf8), as: number)
  }

  /// A store of six saves of which a copy has just begun, which takes some 80 steps and is held after one.
  private func openBeingCopied() throws -> Store {
    isHeld.value = true
    let store = try open()
    for _ in 1...5 {
      try store.write {
        try $0.run("INSERT INTO quarantine (place, outcome, body) VALUES ('nowhere', 'used', randomblob(4000000))", [])
      }
    }
    for number in UInt64(1)...5 { try save(number, in: store) }
    pass(Self.interval)
    try save(6, in: store)
    waitUntilCopying()
    #expect(store.database.backup.isRunning)
    return store
  }

  private func waitUntilCopying() { while !hasBegun.value { Thread.sleep(forTimeInterval: 0.001) } }

  /// How many saves each backup contains, the newest backup first.
  private func versions() throws -> [Int] {
    try files.presentBackups.map { url in
      let queue = try DatabaseQueue(path: url.path)
      defer { try? queue.close() }
      return try queue.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM version") ?? 0 }
    }
  }

  private func finishCopy(of store: Store) async throws {
    isHeld.value = false
    try await until("the copy ends") { !store.database.backup.isRunning }
  }

  @Test("a store is copied when it is closed, and one that was opened to be removed never is")
  func temporary() throws {
    for isTemporary in [true, false] {
      let store = try isTemporary ? Store.openTemporary(at: folder.store) : open()
      try save(isTemporary ? 1 : 2, in: store)
      try store.close()
      #expect(files.presentBackups.isEmpty == isTemporary)
    }
  }

  @Test("only the first commit after the interval starts a backup, and backups are written alternately")
  func copiesInTime() async throws {
    let store = try open()
    try save(1, in: store)
    pass(Self.interval - .seconds(1))
    try save(2, in: store)
    #expect(!store.database.backup.isRunning && files.presentBackups.isEmpty)
    pass(.seconds(1))
    #expect(!store.database.backup.isRunning && files.presentBackups.isEmpty, "nothing was saved since")
    try save(3, in: store)
    try await finishCopy(of: store)
    #expect(try versions() == [3])
    // Until the next interval has passed there is no other one.
    for number in UInt64(4)...8 {
      try save(number, in: store)
      #expect(!store.database.backup.isRunning, "save \(number)")
    }
    pass(Self.interval)
    try save(9, in: store)
    try await finishCopy(of: store)
    #expect(try versions() == [9, 3])
    pass(Self.interval)
    try save(10, in: store)
    try await finishCopy(of: store)
    #expect(try versions() == [10, 9])
    #expect(store.backupFailure == nil)
    try store.close()
  }

  @Test(
    "a commit during a backup neither waits for it nor starts a second one, and the next is due a whole interval later")
  func copiesOnce() async throws {
    let store = try openBeingCopied()
    pass(Self.interval)
    try save(7, in: store)
    #expect(store.database.backup.isRunning, "the commit waited for the copy")
    try await finishCopy(of: store)
    #expect(files.presentBackups.count == 1)
    #expect(try (6...7).contains(versions()[0]))
    try save(8, in: store)
    #expect(!store.database.backup.isRunning, "the next one is due after the whole interval")
    pass(Self.interval)
    try save(9, in: store)
    try await finishCopy(of: store)
    #expect(try versions()[0] == 9)
    try store.close()
  }

  @Test("if the size of the database can't be determined, closing makes no backup and reports why")
  func unknownSize() throws {
    let store = try open()
    defer { try? store.close() }
    try save(1, in: store)
    // A link that leads to itself has no size.
    let other = StoreFiles(folder: folder.url.appendingPathComponent("other"))
    try FileManager.default.createDirectory(at: other.folder, withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(at: other.database, withDestinationURL: other.database)
    let backup = RollingBackup(other, BackupSchedule(interval: { _ in Self.interval }, now: { [clock] in clock.value }))
    // Reported once, however often it fails.
    for _ in 0..<2 {
      backup.didCommit(in: store.database)
      backup.finish(on: store.database, until: nil)
      #expect(backup.failure?.code == .io && backup.failure?.message.contains(other.database.path) == true)
      #expect(store.incidents.map(\.kind) == [.notBackedUp])
    }
    #expect(store.incidents.first?.message.contains(other.database.path) == true)
    #expect(other.presentBackups.isEmpty)
  }

  /// A database whose folder another store takes while it is copied.
  private final class Replaced: BackupSource {
    let base: StoreDatabase
    let isReplaced = Shared(false)
    let replace: @Sendable () throws -> Void

    init(_ base: StoreDatabase, replace: @escaping @Sendable () throws -> Void) {
      (self.base, self.replace) = (base, replace)
    }

    var suspected: Data? { nil }

    func report(_ incident: StoreIncident) {}

    func requirePresence() throws { if isReplaced.value { throw StoreError(.removed, "replaced") } }

    func problem(in copy: Database) throws -> String? { nil }

    func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
      let value = try base.read(body)
      try replace()
      isReplaced.value = true
      return value
    }
  }

  @Test("a backup during which another store took the folder leaves that store's own backup alone")
  func leavesOthersBackup() throws {
    let store = try open()
    defer { try? store.close() }
    try save(1, in: store)
    let partial = files.partialBackup
    let source = Replaced(store.database) {
      try FileManager.default.removeItem(at: partial)
      try Data("another's".utf8).write(to: partial)
    }
    #expect(errorCode { try store.database.backup.copy(source) { false } } == .removed)
    #expect(try Data(contentsOf: partial) == Data("another's".utf8))
    #expect(files.presentBackups.isEmpty)
  }

  @Test("closing stops a backup instead of waiting for it, and leaves no partial one", .hangLimit)
  func closesInTheMiddle() async throws {
    let store = try openBeingCopied()
    try store.close()
    #expect(!store.database.backup.isRunning)
    #expect(files.presentBackups.isEmpty)
    #expect(store.backupFailure?.code == .timedOut)
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.store.path)
    #expect(!names.contains { $0.hasPrefix("backup") }, "\(names)")
    let again = try open()
    defer { try? again.close() }
    #expect(again.incidents.isEmpty)
    #expect(try again.read { try $0.heads(of: "main") } == [id(6)])
  }

  @Test("releasing a store without closing it stops a backup, so that its folder can be opened again", .hangLimit)
  func releasedInTheMiddle() throws {
    do {
      let store = try openBeingCopied()
      try save(7, in: store)
    }
    // Waits until the released store, which the copy keeps, has ended. Nobody lets the copy go on.
    let again = try Store.open(at: folder.store)
    defer { try? again.close() }
    let backup = try #require(copying.value)
    #expect(!backup.isRunning && backup.failure?.code == .timedOut)
    #expect(files.presentBackups.isEmpty)
    #expect(try again.read { try $0.heads(of: "main") } == [id(7)])
  }

  @Test("releasing the game's tables without closing them stops their backup, too", .hangLimit)
  func releasedTables() throws {
    isHeld.value = true
    do {
      let store = try Store.open(at: folder.store)
      let records = try RecordsDatabase.open(in: folder.store, lock: store.lock, backups: schedule) {
        Issue.record("\($0)")
      }
      copying.value = records.backup
      try records.write { database in
        try database.execute(sql: "CREATE TABLE picture (bytes BLOB)")
        for _ in 1...5 { try database.execute(sql: "INSERT INTO picture VALUES (randomblob(4000000))") }
      }
      pass(Self.interval)
      try records.write { try $0.execute(sql: "DELETE FROM picture WHERE rowid = 1") }
      waitUntilCopying()
      #expect(records.backup.isRunning)
      records.willBeReleased()
    }
    let again = try Store.open(at: folder.store)
    defer { try? again.close() }
    let tables = try RecordsDatabase.open(in: folder.store, lock: again.lock, backups: schedule) {
      Issue.record("\($0)")
    }
    #expect(try tables.reading { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM picture") } == 4)
    try tables.close()
  }
}
