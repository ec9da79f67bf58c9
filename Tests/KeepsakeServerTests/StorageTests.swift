#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

@Suite("Storage in SQLite")
struct StorageTests {
  static func pretendNewer(_ database: URL) throws {
    try DatabaseQueue(path: database.path).write {
      try $0.execute(sql: "INSERT INTO grdb_migrations (identifier) VALUES ('9 from the future')")
    }
  }

  private func with(_ body: (SQLiteCloudStorage) async throws -> Void) async throws {
    try await TemporaryFolder.with { folder in
      let contents = folder.appendingPathComponent("contents")
      try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
      let storage = try SQLiteCloudStorage(database: folder.appendingPathComponent("cloud.sqlite"), contents: contents)
      try await body(storage)
      try await storage.close()
    }
  }

  private func version(_ number: UInt64, slot: String, covers: [UInt64] = []) -> VersionRecord {
    VersionRecord(
      id: VersionID(high: 1, low: number), slot: slot, covers: covers.map { VersionID(high: 1, low: $0) }, contents: [],
      length: 0, savedAtMilliseconds: 5, writer: WriterID(3), provisional: false)
  }

  @Test("a row whose columns have lost their values is an error of that request, and doesn't end the server")
  func damagedRow() async throws {
    try await TemporaryFolder.with { folder in
      let contents = folder.appendingPathComponent("contents")
      try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
      let database = folder.appendingPathComponent("cloud.sqlite")
      let storage = try SQLiteCloudStorage(database: database, contents: contents)
      let container = ContainerID(high: 1, low: 1)
      try await storage.decide(on: container) { container throws in
        container.advance(to: .init(epoch: 1, seq: 1, mark: 11))
        try container.putVersion(SequencedVersion(record: version(1, slot: "a"), seq: 1))
      }
      // As damage leaves it: the schema forbids it, and isn't checked when a row is read.
      try await DatabaseQueue(path: database.path).writeWithoutTransaction { database in
        try database.execute(
          sql: """
            PRAGMA writable_schema = ON;
            DELETE FROM sqlite_schema WHERE type = 'trigger';
            UPDATE sqlite_schema SET sql = replace(replace(sql, 'NOT NULL', ''), 'STRICT', '') WHERE name = 'version';
            PRAGMA schema_version = 9999;
            PRAGMA writable_schema = OFF;
            """)
      }
      try await DatabaseQueue(path: database.path).write { try $0.execute(sql: "UPDATE version SET record = NULL") }
      await #expect(throws: (any Error).self) {
        try await storage.decide(on: container) { container throws in
          _ = try container.version(VersionID(high: 1, low: 1))
        }
      }
      #expect(try await storage.decide(on: container) { container in container.position().seq } == 1)
      try await storage.close()
    }
  }

  @Test("parts of an offer survive a server restart, are invisible before the last one, and are deleted after a day")
  func offersInParts() async throws {
    try await TemporaryFolder.with { folder in
      let contents = folder.appendingPathComponent("contents")
      try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
      let (first, second) = (ContainerID(high: 1, low: 1), ContainerID(high: 1, low: 2))
      func open(at now: Int64 = 0) throws -> SQLiteCloudStorage {
        try SQLiteCloudStorage(
          database: folder.appendingPathComponent("cloud.sqlite"), contents: contents, clock: { now })
      }
      func send(_ number: Int, last: Bool = false, to container: ContainerID, _ storage: SQLiteCloudStorage)
        async throws
        -> ExchangeOutcome?
      {
        try await storage.decide(on: container) { storage in
          let cell = CellUpdate(
            key: CellKey(collection: "progress", key: "\(number)"), state: CellState(value: .max(.int(5))))
          var random = SystemRandomNumberGenerator()
          let request = ExchangeRequest(
            cursor: .start, cells: [cell], versions: [version(UInt64(number), slot: "a")], limit: 10,
            part: OfferPart(offer: OfferID(high: 7, low: 7), number: number, isLast: last))
          return try CloudAcceptance.exchange(request, now: 5, in: &storage, using: &random).outcome
        }
      }
      var storage = try open()
      #expect(try await send(0, to: first, storage) == .held(parts: 1))
      #expect(try await send(1, to: first, storage) == .held(parts: 2))
      #expect(try await send(0, to: second, storage) == .held(parts: 1))
      #expect(try await storage.position(of: first).seq == 0)
      try await storage.close()
      storage = try open()
      #expect(try await send(2, last: true, to: first, storage) == .accepted(seq: 6))
      let changes = try await storage.decide(on: first) { try $0.changes(after: 0, limit: 10) }
      #expect(changes.count == 6)
      let left = try await storage.decide(on: first) { try $0.heldOffers() }
      #expect(left.isEmpty)
      // Those of the other player are unchanged.
      let held = try await storage.decide(on: second) { try $0.heldOffers() }
      #expect(held.map(\.parts) == [1] && held.allSatisfy { $0.touchedMilliseconds == 5 && $0.bytes > 0 })
      try await storage.close()
      storage = try open(at: 6 + ExchangeRules.offerLifetimeMilliseconds)
      let gone = try await storage.decide(on: second) { try $0.heldOffers() }
      #expect(gone.isEmpty)
      try await storage.close()
    }
  }

  @Test("a transaction that fails is rolled back alone, without those that are committed with it")
  func groupCommit() async throws {
    struct Refused: Error {}
    try await with { storage async throws in
      let outcomes = await withTaskGroup(of: (UInt64, Bool).self) { group in
        for number in (0..<200 as Range<UInt64>) {
          group.addTask {
            do {
              try await storage.transaction(on: ContainerID(high: 7, low: number)) { container throws in
                try container.run(
                  "INSERT INTO container (id, epoch, seq, mark) VALUES (?, 1, 1, ?)", [container.id, Int64(number)])
                if number % 3 == 0 { throw Refused() }
              }
              return (number, true)
            } catch {
              return (number, false)
            }
          }
        }
        return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
      }
      for number in (0..<200 as Range<UInt64>) {
        #expect(outcomes[number] == (number % 3 != 0))
        #expect(try await storage.position(of: ContainerID(high: 7, low: number)).seq == (number % 3 == 0 ? 0 : 1))
      }
    }
  }

  @Test("the database is synced to the disk at each commit, so that whatever a response confirms is durable")
  func synchronous() async throws {
    try await with { storage async throws in
      let mode = try await storage.transaction(on: ContainerID(high: 0, low: 0)) {
        try Int.fetchOne($0.db, sql: "PRAGMA synchronous")
      }
      #expect(mode == 2)
    }
  }
}
#endif
