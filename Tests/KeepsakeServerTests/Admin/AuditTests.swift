#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// The audit log: nothing is done without a row, and no row is changed or removed unnoticed.
@Suite("The studio's audit log", .hangLimit) struct AuditTests {
  private static let device = DeviceIdentity(
    device: DeviceID(high: 1, low: 1), player: PlayerID(high: 1, low: 2), container: ContainerID(high: 1, low: 3),
    app: AppID(ofKey: "an app key"))

  private func entry(_ act: String = "player.ban") -> AuditEntry {
    AuditEntry(atMilliseconds: 5, key: "k", name: "ada", act: act, request: "r")
  }

  /// A closed database whose log has `count` rows.
  private func with(_ count: Int, _ body: (URL, DatabaseQueue) async throws -> Void) async throws {
    try await TemporaryFolder.with { folder in
      let database = folder.appendingPathComponent(DataFolder.databaseName)
      let storage = try AdminStage.storage(in: folder)
      for index in 0..<count {
        var entry = entry()
        entry.details = ["reason": "\(index)"]
        try await storage.append(entry)
      }
      try await storage.close()
      let queue = try DatabaseQueue(path: database.path)
      try await body(folder, queue)
      try queue.close()
    }
  }

  @Test("rows can't be changed or removed")
  func appendOnly() async throws {
    try await with(3) { data, queue in
      for sql in [
        "UPDATE audit SET name = 'eve'", "UPDATE audit SET at = 0 WHERE number = 2", "DELETE FROM audit",
        "DELETE FROM audit WHERE number = 3",
      ] {
        await #expect(throws: DatabaseError.self, "\(sql)") { try await queue.write { try $0.execute(sql: sql) } }
      }
      let found = try AuditReader(data: data).verify()
      #expect(found.problem == nil && found.rows == 3 && found.last != nil)
    }
  }

  @Test(
    "who gets past that by changing the database is noticed",
    arguments: [
      "UPDATE audit SET name = 'eve' WHERE number = 2", "UPDATE audit SET result = 'done', at = 6 WHERE number = 1",
      "UPDATE audit SET player = x'00' WHERE number = 3", "UPDATE audit SET details = '{}' WHERE number = 3",
      "DELETE FROM audit WHERE number = 1", "DELETE FROM audit WHERE number = 2", "DELETE FROM audit WHERE number = 3",
      "DELETE FROM audit WHERE number = 2; UPDATE audit SET number = 2 WHERE number = 3", "DELETE FROM audit",
    ])
  func tampering(_ sql: String) async throws {
    try await with(3) { data, queue in
      try await queue.write { db in
        try db.execute(sql: "DROP TRIGGER auditUpdate; DROP TRIGGER auditDelete")
        try db.execute(sql: sql)
      }
      #expect(try AuditReader(data: data).verify().problem != nil)
    }
  }

  @Test("rows that were cut off are missed also after the next ones were written", arguments: [1, 3])
  func cutOff(_ left: Int64) async throws {
    try await with(3) { data, queue in
      try await queue.write { db in
        try db.execute(sql: "DROP TRIGGER auditDelete")
        try db.execute(sql: "DELETE FROM audit WHERE number >= ?", arguments: [left])
        for _ in 0..<4 { try entry().append(in: db) }
      }
      let found = try AuditReader(data: data).verify()
      #expect(found.problem == "row \(left) is missing", "\(found)")
    }
  }

  @Test("a row that was changed together with its own hash doesn't fit the row after it")
  func forgedRow() async throws {
    try await with(3) { data, queue in
      try await queue.write { db in
        try db.execute(sql: "DROP TRIGGER auditUpdate")
        let first = try Data.fetchOne(db, sql: "SELECT chain FROM audit WHERE number = 1") ?? Data()
        let forged = AuditLink(
          number: 2, atMilliseconds: 5, texts: ["k", "eve", "player.ban", "r", "{}", AuditEntry.done],
          hashes: [nil, nil])
        try db.execute(
          sql: "UPDATE audit SET name = 'eve', details = '{}', chain = ? WHERE number = 2",
          arguments: [forged.hash(after: first)])
      }
      #expect(try AuditReader(data: data).verify().problem == "row 3 was changed, or one before it removed")
    }
  }

  @Test("a log that was made anew as a whole doesn't have the hash that was noted")
  func noted() async throws {
    var hash: ContentHash?
    try await with(2) { data, _ in
      hash = try AuditReader(data: data).verify().last
      #expect(try AuditReader(data: data).verify(noted: hash).problem == nil)
    }
    try await with(3) { data, _ in
      let found = try AuditReader(data: data).verify(noted: hash)
      #expect(found.problem == nil && found.hasNoted == true, "it has grown since")
    }
    try await with(1) { data, _ in
      let found = try AuditReader(data: data).verify(noted: hash)
      #expect(found.problem != nil && found.hasNoted == false)
    }
  }

  @Test("an act and its row are committed together: if the row can't be written, nothing was done")
  func together() async throws {
    try await TemporaryFolder.with { folder in
      let storage = try AdminStage.storage(in: folder)
      let (identity, container) = (Self.device, Self.device.container)
      try await storage.recordDevice(
        DeviceRecord(identity: identity, name: "phone", createdMilliseconds: 1, seenMilliseconds: 1))
      try await storage.pool.write { db in
        try db.execute(
          sql: "CREATE TRIGGER noRow BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no row'); END")
      }
      let acts: [(String, @Sendable () async throws -> Void)] = [
        ("ban", { try await storage.setBan(Ban(reason: "x", sinceMilliseconds: 1), of: container, auditing: entry()) }),
        (
          "remove",
          {
            _ = try await AuditedStorage(storage, entry()).retire(identity.device, of: container, now: 1)
          }
        ),
        ("delete", { _ = try await storage.delete(container, now: 1, auditing: entry()) }),
      ]
      for (name, act) in acts { await #expect(throws: (any Error).self, "\(name)") { try await act() } }
      #expect(storage.ban(of: container) == nil)
      #expect(try await storage.devices(of: container).count == 1)
      #expect(try await !storage.isRetired(identity))
      try await storage.pool.write { try $0.execute(sql: "DROP TRIGGER noRow") }
      for (_, act) in acts { try await act() }
      try await storage.close()
      #expect(try AuditReader(data: folder).verify().rows == 3)
    }
  }

  @Test("a database of the version before has no deleted player's id any more")
  func migrating() async throws {
    try await TemporaryFolder.with { folder in
      let database = folder.appendingPathComponent(DataFolder.databaseName)
      let files = ContentFiles(folder: folder.appendingPathComponent("contents"))
      let queue = try DatabaseQueue(path: database.path)
      try Schema.migrator(files: files).migrate(queue, upTo: "12 recovery codes")
      let (deleted, left) = (ContainerID(high: 9, low: 9), ContainerID(high: 8, low: 8))
      try await queue.write { db in
        try db.execute(sql: "INSERT INTO retired VALUES (?, x'', 1)", arguments: [deleted.bytes])
        try db.execute(
          sql: "INSERT INTO retired VALUES (?, ?, 1)", arguments: [left.bytes, Self.device.device.bytes])
      }
      try queue.close()
      let storage = try AdminStage.storage(in: folder)
      var identity = Self.device
      identity.container = deleted
      #expect(try await storage.isRetired(identity))
      identity.container = left
      #expect(try await storage.isRetired(identity))
      identity.device = DeviceID(high: 1, low: 7)
      #expect(try await !storage.isRetired(identity))
      try await storage.close()
    }
  }
}
#endif
