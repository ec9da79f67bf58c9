#if Cloud && PostgreSQL
import Foundation
import GRDB
import HTTPTypes
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging
import TestSupport
import Testing

@testable import KeepsakeServer

/// A cloud that moves from a data folder into PostgreSQL while it is used.
@Suite(
  "Moving a cloud into PostgreSQL", .hangLimit,
  .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
struct CloudMoveTests {
  // MARK: Beside players

  @Test("everything acknowledged is in the new database once, and nothing that was refused")
  func beside() async throws {
    try await MoveLab.with { lab in
      let storage = try lab.storage()
      let writers = MoveWriters(storage, containers: 30)
      try await writers.fill()
      let summary = try await writers.playing { try await CloudMove.move(lab.request) }
      #expect(summary.isFinished && summary.waiting == 0)
      try await storage.close()
      try await writers.check(lab)
      #expect(summary.copied >= 30)
    }
  }

  @Test("a copy without the last step leaves the old server as it is, and a later move copies what has changed since")
  func onlyCopying() async throws {
    try await MoveLab.with { lab in
      let storage = try lab.storage()
      let writers = MoveWriters(storage, containers: 12)
      try await writers.fill()
      var request = lab.request
      request.isOnlyCopying = true
      let first = try await CloudMove.move(request)
      #expect(!first.isFinished && first.waiting == 0 && first.copied >= 12)
      #expect(try lab.count("container") == 12)
      // No server starts with half a cloud, and none that runs goes on.
      await #expect(throws: ServerError.self) { try await TestDatabase.storage(at: lab.address).close() }
      try await writers.write(3)
      let second = try await CloudMove.move(lab.request)
      #expect(second.isFinished && (1...3).contains(second.copied))
      try await storage.close()
      try await writers.check(lab)
      // Again, it is found to be done.
      let third = try await CloudMove.move(lab.request)
      #expect(third.isFinished && third.copied == 0)
    }
  }

  @Test("a code that another player gets after the first one was copied is the other one's, whichever is copied first")
  func passedOn() async throws {
    try await MoveLab.with { lab in
      let storage = try lab.storage()
      let writers = MoveWriters(storage, containers: 4)
      try await writers.fill()
      func pair(_ holder: UInt64) async throws {
        try await AdminDatabase.run(
          lab.data, "INSERT OR REPLACE INTO pairing (app, code, container, player, expires) VALUES (?, ?, ?, ?, 9)",
          [Data([1]), Data([2]), MoveWriters.container(holder).bytes, Data([3])])
      }
      var request = lab.request
      request.isOnlyCopying = true
      for holder: UInt64 in [2, 0, 3, 1] {
        try await pair(holder)
        _ = try await CloudMove.move(request)
        let rows = try PostgreSQLConnection(TestDatabase.settings(lab.address)).run([
          PostgreSQLStatement("SELECT container FROM pairing")
        ])
        #expect(try rows[0].map { try $0.bytes(0) } == [MoveWriters.container(holder).bytes])
      }
      try await storage.close()
    }
  }

  // MARK: The fence

  @Test("from the fence on, a storage that is open is refused each write, and nobody opens another one")
  func fence() async throws {
    try await MoveLab.with { lab in
      let storage = try lab.storage()
      let writers = MoveWriters(storage, containers: 3)
      try await writers.fill()
      _ = try await CloudMove.move(lab.request)
      let before = try MoveLab.dump(lab.data)
      await #expect {
        try await storage.addGem(to: MoveWriters.container(0), mark: 1)
      } throws: { error in
        let answer = AnswerMiddleware.answer(to: error, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        return CloudFence.isRefusal(error) && answer.status == .serviceUnavailable && answer.retryAfterSeconds != nil
      }
      for table in ["number", "audit", "device", "decision", "webhookEvent"] {
        await #expect(throws: DatabaseError.self, "\(table)") {
          try await AdminDatabase.run(lab.data, "INSERT OR IGNORE INTO \(table) DEFAULT VALUES")
        }
      }
      for sql in ["UPDATE container SET seq = seq + 1", "DELETE FROM container", "DELETE FROM number"] {
        await #expect(throws: DatabaseError.self, "\(sql)") { try await AdminDatabase.run(lab.data, sql) }
      }
      #expect(try MoveLab.dump(lab.data) == before)
      try await storage.close()
      #expect {
        _ = try lab.storage()
      } throws: { error in
        (error as? ServerError)?.code == .unusableFile && "\(error)".contains("--database")
      }
      #expect(throws: ServerError.self) {
        _ = try CloudBackup.make(of: lab.data, to: lab.folder.appendingPathComponent("backup"), progress: { _ in })
      }
      #expect(throws: ServerError.self) { try RestoredCloud.mark(data: lab.data) }
    }
  }

  @Test("what was copied before the folder's database was set back is copied again")
  func setBack() async throws {
    try await MoveLab.with { lab in
      var storage = try lab.storage()
      let old = MoveWriters(storage, containers: 8)
      try await old.fill()
      var request = lab.request
      request.isOnlyCopying = true
      _ = try await CloudMove.move(request)
      try await storage.close()
      let saved = lab.folder.appendingPathComponent("saved")
      let database = lab.data.appendingPathComponent(DataFolder.databaseName)
      try FileManager.default.copyItem(at: database, to: saved)
      storage = try lab.storage()
      try await storage.addGem(to: MoveWriters.container(2), mark: 99)
      _ = try await CloudMove.move(request)
      try await storage.close()
      try FileManager.default.removeItem(at: database)
      try FileManager.default.copyItem(at: saved, to: database)
      // Only a server notices, and begins a new epoch.
      await #expect(throws: ServerError.self) { try await CloudMove.move(request) }
      storage = try lab.storage()
      let epoch = storage.bankEpoch
      #expect(epoch > 0)
      _ = try await CloudMove.move(lab.request)
      try await storage.close()
      try await old.check(lab)
      let moved = try await TestDatabase.storage(at: lab.address)
      #expect(moved.bankEpoch == epoch)
      try await moved.close()
    }
  }

  // MARK: Giving up

  @Test("a move that is given up leaves nothing in the database, and the folder as it was", arguments: [false, true])
  func abandon(isFenced: Bool) async throws {
    try await MoveLab.with { lab in
      let storage = try lab.storage()
      let writers = MoveWriters(storage, containers: 6)
      try await writers.fill()
      var request = lab.request
      request.isOnlyCopying = true
      _ = try await CloudMove.move(request)
      if isFenced {
        try await lab.fence()
        await #expect(throws: DatabaseError.self) { try await storage.addGem(to: MoveWriters.container(0), mark: 1) }
        await #expect(throws: ServerError.self) { try await CloudMove.move(request) }
      }
      try await CloudMove.abandon(request)
      for table in MovedTable.ofPlayer + MovedTable.ofCloud { #expect(try lab.count(table.name) == 0, "\(table.name)") }
      for table in ["content_object", "content_part", "cloud_move"] { #expect(try lab.count(table) == 0, "\(table)") }
      #expect(try lab.count("schema_number WHERE oldest <= number") == 1)
      let names = try await storage.reading { db in
        try String.fetchAll(db, sql: "SELECT name FROM sqlite_master WHERE name GLOB 'move*'")
      }
      #expect(names == [])
      try await writers.write(5)
      // Once more changes nothing, and it can be begun anew.
      try await CloudMove.abandon(request)
      #expect(try await CloudMove.move(lab.request).isFinished)
      try await storage.close()
      try await writers.check(lab)
      await #expect(throws: ServerError.self) { try await CloudMove.abandon(request) }
    }
  }

  @Test("a database that has anything else's rows is refused, and so is one to which another cloud goes")
  func otherCloud() async throws {
    try await MoveLab.with { lab in
      let storage = try lab.storage()
      try await MoveWriters(storage, containers: 2).fill()
      let other = try await TestDatabase.storage(at: lab.address)
      try await other.addGem(to: MoveWriters.container(9), mark: 1)
      try await other.close()
      await #expect(throws: ServerError.self) { try await CloudMove.move(lab.request) }
      #expect(try lab.count("container") == 1)
      try await storage.close()
    }
    try await MoveLab.with { lab in
      let (storage, url) = (try lab.storage(), lab.folder.appendingPathComponent("other"))
      try await MoveWriters(storage, containers: 2).fill()
      try FileManager.default.createDirectory(
        at: url.appendingPathComponent(DataFolder.contentsName), withIntermediateDirectories: true)
      let second = try MoveLab.storage(in: url)
      try await MoveWriters(second, containers: 3).fill()
      var request = lab.request
      request.isOnlyCopying = true
      _ = try await CloudMove.move(request)
      request.data = url
      await #expect(throws: ServerError.self) { try await CloudMove.move(request) }
      #expect(try lab.count("container") == 2)
      try await storage.close()
      try await second.close()
    }
  }

  // MARK: Back

  @Test("back in its own folder, a cloud goes on, and no server uses the database any more")
  func back() async throws {
    try await MoveLab.with { lab in
      let storage = try lab.storage()
      let writers = MoveWriters(storage, containers: 5)
      try await writers.fill()
      // A cloud that isn't elsewhere is never replaced.
      await #expect(throws: ServerError.self) { try await CloudMove.moveBack(lab.request) }
      _ = try await CloudMove.move(lab.request)
      try await storage.close()
      let there = try await TestDatabase.storage(at: lab.address)
      try await there.addGem(to: MoveWriters.container(1), mark: 7)
      try await there.close()
      let summary = try await CloudMove.moveBack(lab.request)
      #expect(summary.isFinished && summary.copied >= 5)
      #expect(try await CloudMove.moveBack(lab.request).isFinished)
      // As if the command had been killed before its last step.
      let database = lab.data.appendingPathComponent(DataFolder.databaseName)
      let moved = lab.data.appendingPathComponent(CloudReturn.temporaryName)
      try FileManager.default.moveItem(at: database, to: moved)
      let mark = ReturnMark(id: try #require(try await lab.state()?.mark), origin: "there")
      try mark.write(lab.data)
      #expect(throws: ServerError.self) { _ = try DataFolder(at: lab.data) }
      await #expect(throws: ServerError.self) { try await CloudMove.abandonBack(lab.request) }
      #expect(try await CloudMove.moveBack(lab.request).isFinished)
      #expect(!FileManager.default.fileExists(atPath: moved.path))
      #expect(try ReturnMark.read(lab.data) == nil)
      await #expect(throws: ServerError.self) {
        try await CloudMoveState.awaitFinished(TestDatabase.settings(lab.address), logger: Logger(label: "test"))
      }
      await #expect(throws: ServerError.self) { try await TestDatabase.storage(at: lab.address).close() }
      let again = try lab.storage()
      // Its witness is of the database that was here before: nothing was set back.
      #expect(again.bankEpoch == 0)
      for number: UInt64 in 0..<5 {
        let seq = try await again.newestSeq(of: MoveWriters.container(number))
        #expect(seq == writers.acknowledged(number) + (number == 1 ? 1 : 0))
      }
      try await again.addGem(to: MoveWriters.container(1), mark: 8)
      try await again.close()
    }
  }

  @Test("a move back that is given up leaves the cloud in the database")
  func stays() async throws {
    try await MoveLab.with { lab in
      let there = try await TestDatabase.storage(at: lab.address)
      try await there.addGem(to: MoveWriters.container(1), mark: 7)
      try await there.close()
      var request = lab.request
      request.data = lab.folder.appendingPathComponent("back")
      try await lab.leave(to: request.data)
      await #expect(throws: ServerError.self) { try await TestDatabase.storage(at: lab.address).close() }
      try await CloudMove.abandonBack(request)
      let again = try await TestDatabase.storage(at: lab.address)
      #expect(try await again.newestSeq(of: MoveWriters.container(1)) == 1)
      try await again.close()
    }
  }

  @Test("the name of a database has no user and no password in it")
  func names() {
    let names = [
      "postgres://keepsake:s@cr/et@db.example.com:5432/games?sslmode=require": "s@cr",
      "postgresql://u:p@one:1,two:2/games": "p@", "postgres:///games?host=/run/postgresql&password=geheim": "geheim",
      "postgres://keepsake@/games?host=db&user=x": "keepsake",
    ]
    for (address, secret) in names {
      let name = CloudMove.name(of: address)
      #expect(!name.contains(secret) && name.hasPrefix("the PostgreSQL database"), "\(name)")
    }
    #expect(CloudMove.name(of: "postgres://u:p@db:5432/games") == "the PostgreSQL database games on db:5432")
  }
}
#endif
