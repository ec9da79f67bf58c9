import Foundation
import GRDB
import GRDBSQLite
import KeepsakeReplication
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeStore

/// What a save has to do is independent of how many slots there are and how much waits for the cloud. Counts work, not
/// time.
@Suite struct WorkTests {
  /// Counts how far SQLite's virtual machine gets on a store's writing connection.
  private final class Steps: Sendable {
    private let count = Atomic<Int>(0)

    static func count(in store: Store, _ body: () throws -> Void) throws -> Int {
      let steps = Steps()
      steps.install(on: store, every: 1)
      // The connection doesn't hold the object.
      defer { steps.install(on: store, every: 0) }
      try body()
      return steps.count.load(ordering: .relaxed)
    }

    private func install(on store: Store, every: CInt) {
      let context = Unmanaged.passUnretained(self).toOpaque()
      store.database.pool.writeWithoutTransaction { database in
        sqlite3_progress_handler(
          database.sqliteConnection, every,
          { context in
            if let context {
              Unmanaged<Steps>.fromOpaque(context).takeUnretainedValue().count.add(1, ordering: .relaxed)
            }
            return 0
          }, context)
      }
    }
  }

  /// A store that keeps nothing but the newest save of each slot, so that the second one already prunes the first.
  private final class Slots {
    let folder: TemporaryFolder
    let store: Store
    private var number: UInt64 = 0

    init(_ count: Int, rounds: Int) throws {
      folder = try TemporaryFolder()
      store = try Store.open(
        at: folder.store, history: HistoryRules(newest: 1, hourly: 0, daily: 0, weekly: 0))
      var last: PendingCommit<GameCommit.Outcome>?
      for _ in 0..<rounds {
        for slot in 0..<count { last = try save(in: slot) }
      }
      _ = try last?.wait()
    }

    deinit { try? store.close() }

    func save(in slot: Int) throws -> PendingCommit<GameCommit.Outcome> {
      number += 1
      return try store.submit(GameCommit(number, slot: "slot \(slot)"))
    }
  }

  @Test("a save that prunes the one before it takes as many steps of the database among 600 slots as among 60")
  func scansNoSlots() throws {
    func steps(among count: Int) throws -> Int {
      let slots = try Slots(count, rounds: 2)
      return try Steps.count(in: slots.store) {
        _ = try slots.save(in: 0).wait()
        #expect(try slots.store.read { try $0.history(of: "slot 0").count } == 1)
      }
    }
    let (few, many) = (try steps(among: 60), try steps(among: 600))
    // Not a step more for each further slot: which rows the newest group of the outbox joins varies a little.
    #expect(few > 0 && many < few + 540, "\(few), \(many)")
  }

  @Test("a first save takes as many steps of the database among 600 slots as among 60")
  func insertsAlike() throws {
    func steps(among count: Int) throws -> Int {
      let slots = try Slots(count, rounds: 1)
      return try Steps.count(in: slots.store) { _ = try slots.save(in: count).wait() }
    }
    let (few, many) = (try steps(among: 60), try steps(among: 600))
    // Not a step more for each further slot: which rows the newest group of the outbox joins varies a little.
    #expect(few > 0 && many < few + 540, "\(few), \(many)")
  }

  @Test("a save that prunes one that waits in the outbox reads no group of it but the newest")
  func readsNoOutbox() throws {
    let slots = try Slots(120, rounds: 2)
    let store = slots.store
    // The newest group doesn't have the slot's earlier save. The others are unreadable: reading one of them throws.
    try store.write { transaction throws in
      try transaction.database.execute(sql: "UPDATE outbox SET body = x'00' WHERE id < (SELECT MAX(id) FROM outbox)")
    }
    #expect(throws: StoreError.self) { try store.read { try $0.outbox(limit: 1) } }
    let outcome = try slots.save(in: 0).wait()
    #expect(try store.read { try $0.history(of: "slot 0").map(\.record.id) } == outcome.versions.map(\.record.id))
  }

  @Test("a save passes its slot's pruned records by, without sorting them or reading their rows")
  func skipsPrunedRecords() throws {
    func steps(after count: UInt64) throws -> Int {
      let folder = try TemporaryFolder()
      let store = try Store.open(at: folder.store)
      defer { try? store.close() }
      try store.write { transaction in
        for number in 1...count { try transaction.put(number, covers: number > 1 ? [number - 1] : []) }
      }
      return try Steps.count(in: store) {
        try store.write { try $0.put(count + 1, covers: [count]) }
      }
    }
    let (few, many) = (try steps(after: 100), try steps(after: 1_900))
    // Three steps each in an index, to find the oldest record that may stay.
    #expect(few > 0 && many <= few + 8 * 1_800)
  }

  @Test("a save that prunes one takes as many steps beside an old conflict after 600 saves as after 60")
  func walksNoConflictAgain() throws {
    func steps(after count: UInt64) throws -> Int {
      let slots = try Slots(1, rounds: 2)
      let store = slots.store
      // The sides have nothing but their oldest save in common, so that a walk reaches everything in between.
      try store.write { transaction in
        for number in 10_001...10_000 + count {
          try transaction.put(number, slot: "in conflict", covers: number > 10_001 ? [number - 1] : [])
        }
        try transaction.put(9_999, slot: "in conflict", covers: [10_001])
      }
      // The first one walks.
      _ = try slots.save(in: 0).wait()
      #expect(try store.read { try $0.heads(of: "in conflict").count } == 2)
      return try Steps.count(in: store) { _ = try slots.save(in: 0).wait() }
    }
    let (few, many) = (try steps(after: 60), try steps(after: 600))
    #expect(few > 0 && many < few + 540, "\(few), \(many)")
  }

  @Test(
    "a conflict whose resolution was rolled back, alone or with others, keeps its ancestor's content",
    arguments: [true, false])
  func forgetsRolledBack(isAlone: Bool) throws {
    let folder = try TemporaryFolder()
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let common = Data("common".utf8)
    try store.save(common, as: 1)
    for number in UInt64(2)...60 { try store.save(Data("save \(number)".utf8), as: number) }
    try store.write { transaction in try transaction.put(500, covers: [1]) }
    // By its pruning, the store knows which slots are in conflict.
    for number in UInt64(2001)...2030 { try store.save(Data("third \(number)".utf8), as: number, slot: "third") }
    if isAlone {
      // Its own pruning is refused, after it was noted that the conflict is resolved.
      try store.write {
        try $0.database.execute(
          sql: """
            CREATE TEMP TRIGGER refusing BEFORE UPDATE ON main.version WHEN new.thinned
            BEGIN SELECT RAISE(ABORT, 'refused'); END
            """)
      }
    }
    let gate = Gate()
    let blocker = try store.submit { _, _ in gate.pass() }
    gate.waitForArrival()
    let resolved = try store.submit { transaction, _ in try transaction.put(501, covers: [60, 500]) }
    let next: PendingCommit<Void> = try store.submit { _, _ in
      if !isAlone { throw DatabaseError(resultCode: .SQLITE_FULL) }
    }
    gate.open()
    _ = blocker
    #expect(throws: StoreError.self) { try resolved.wait() }
    if isAlone {
      try next.wait()
      try store.write { try $0.database.execute(sql: "DROP TRIGGER refusing") }
    } else {
      #expect(throws: StoreError.self) { try next.wait() }
    }
    #expect(try store.read { try $0.heads(of: "main") } == [id(60), id(500)])
    try store.save(common, as: 1000, slot: "other")
    for number in UInt64(1001)...1060 { try store.save(Data("other \(number)".utf8), as: number, slot: "other") }
    #expect(try store.read { try !$0.history(of: "other").map(\.record.id.low).contains(1000) })
    #expect(try store.read { try $0.plainContent(ContentHash(of: common)) } == common)
  }
}
