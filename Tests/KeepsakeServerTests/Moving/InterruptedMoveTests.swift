#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// What a move leaves that ends between two of its steps, and what is done then: by the same command, by one with
/// other arguments, by a server.
@Suite(
  "Moves that ended between two steps", .hangLimit,
  .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
struct InterruptedMoveTests {
  // MARK: Into PostgreSQL

  @Test("a finished move isn't given up by another address, nor by a database of the same name that knows nothing")
  func finished() async throws {
    try await MoveLab.with { lab in
      let storage = try lab.storage()
      let writers = MoveWriters(storage, containers: 3)
      try await writers.fill()
      try #require(try await CloudMove.move(lab.request).isFinished)
      try await storage.close()
      var request = lab.request
      request.address = "postgres://127.0.0.1:1/other"
      let other = await #expect(throws: ServerError.self) { try await CloudMove.abandon(request) }
      #expect(other?.code == .configuration)
      try await MoveLab.with { same in
        try #require(CloudMove.name(of: same.address) == CloudMove.name(of: lab.address))
        request.address = same.address
        let given = await #expect(throws: ServerError.self) { try await CloudMove.abandon(request) }
        #expect(given?.code == .unusableFile)
        // What is in the folder is old by now.
        let again = await #expect(throws: ServerError.self) { try await CloudMove.move(request) }
        #expect(again?.code == .unusableFile)
        #expect(try same.run("SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()").first == nil)
      }
      #expect(try lab.isFenced())
      try await writers.check(lab)
    }
  }

  @Test("a fenced cloud whose database is lost goes on to another one of that name, and to the lost one no more")
  func lost() async throws {
    try await MoveLab.with { lab in
      let storage = try lab.storage()
      let writers = MoveWriters(storage, containers: 4)
      try await writers.fill()
      var request = lab.request
      request.isOnlyCopying = true
      _ = try await CloudMove.move(request)
      try await lab.fence()
      try await MoveLab.with { other in
        request.address = other.address
        let given = await #expect(throws: ServerError.self) { try await CloudMove.abandon(request) }
        #expect(given?.code == .unusableFile)
        #expect(try lab.isFenced())
        request.isOnlyCopying = false
        #expect(try await CloudMove.move(request).isFinished)
        try await writers.check(other)
        let found = await #expect(throws: ServerError.self) { try await CloudMove.move(lab.request) }
        #expect(found?.code == .unusableFile)
        #expect(try lab.step() == .copying)
      }
      try await storage.close()
    }
  }

  @Test("a move that is killed after the fence was built is finished by the next run")
  func fenced() async throws {
    try await MoveLab.with { lab in
      let storage = try lab.storage()
      let writers = MoveWriters(storage, containers: 5)
      try await writers.fill()
      var request = lab.request
      request.isOnlyCopying = true
      _ = try await CloudMove.move(request)
      try await writers.write(4)
      try await lab.fence()
      let summary = try await CloudMove.move(lab.request)
      #expect(summary.isFinished && (1...4).contains(summary.copied) && summary.stoppedMilliseconds != nil)
      try await storage.close()
      try await writers.check(lab)
    }
  }

  @Test(
    "what the database has forgotten since it was copied is copied again",
    arguments: ["revision", "seq", "container", "recovery", "identity", "ban", "retired", "token_use"])
  func forgotten(what: String) async throws {
    try await MoveLab.with { lab in
      let storage = try lab.storage()
      let writers = MoveWriters(storage, containers: 5)
      try await writers.fill()
      try await fillBeside(storage)
      var request = lab.request
      request.isOnlyCopying = true
      _ = try await CloudMove.move(request)
      // As after a failover to a replica that was behind, whose rows are those of an earlier copy, or none.
      let one: [PostgreSQLValue] = [.bytes(MoveWriters.container(3).bytes)]
      switch what {
      case "container":
        for table in MovedTable.ofPlayer { try lab.run("DELETE FROM \(table.name) WHERE \(table.owner) = $1", one) }
      case "revision", "seq":
        try lab.run("DELETE FROM cell WHERE container = $1", one)
        try lab.run("UPDATE container SET \(what) = \(what) - 1, bank = NULL WHERE id = $1", one)
      default:
        #expect(try lab.count(what) == 1)
        try lab.run("DELETE FROM \(what)")
      }
      let summary = try await CloudMove.move(lab.request)
      for (table, _) in MovedTotals.dated { #expect(try lab.count(table) == 1, "\(table)") }
      #expect(summary.isFinished && summary.copied >= 5)
      try await storage.close()
      try await writers.check(lab)
    }
  }

  /// Something of what changes without the container's revision.
  private func fillBeside(_ storage: SQLiteCloudStorage) async throws {
    let device = DeviceIdentity(
      device: DeviceID(high: 12, low: 3), player: PlayerID(high: 13, low: 3), container: MoveWriters.container(3),
      app: AppID(ofKey: "a game"))
    var removed = device
    removed.device = DeviceID(high: 12, low: 99)
    try await storage.recordDevice(
      DeviceRecord(identity: removed, name: "B", createdMilliseconds: 5, seenMilliseconds: 5))
    _ = try await storage.retire(removed.device, of: removed.container, now: 6)
    try await storage.putRecovery(ContentHash(of: Data([1])), by: device, scope: device.app, now: 6)
    let identity = VerifiedIdentity(
      id: VerifiedIdentity.id(of: "ada", at: "", named: "login"), issuer: "login",
      uses: [.init(key: ContentHash(of: Data([2])), expiresMilliseconds: .max)])
    _ = try await storage.link(identity, to: device, now: 6)
    let entry = AuditEntry(atMilliseconds: 6, key: "k", name: "ada", act: "player.ban", request: "r")
    try await storage.setBan(Ban(reason: "x", sinceMilliseconds: 6), of: device.container, auditing: entry)
    try await storage.recordToken(issuedMilliseconds: 6, of: device)
  }

  @Test("giving up goes on where it was killed, and nobody else's is gone on with")
  func halfAbandoned() async throws {
    try await MoveLab.with { lab in
      let storage = try lab.storage()
      let writers = MoveWriters(storage, containers: 3)
      try await writers.fill()
      var request = lab.request
      request.isOnlyCopying = true
      _ = try await CloudMove.move(request)
      try await lab.fence()
      try lab.run("UPDATE cloud_move SET state = $1", [.int(CloudMoveState.Step.abandoned.rawValue)])
      var other = lab.request
      other.data = lab.folder.appendingPathComponent("other")
      try FileManager.default.createDirectory(
        at: other.data.appendingPathComponent(DataFolder.contentsName), withIntermediateDirectories: true)
      let stranger = try MoveLab.storage(in: other.data)
      try await stranger.addGem(to: MoveWriters.container(9), mark: 1)
      await #expect(throws: ServerError.self) { try await CloudMove.abandon(other) }
      await #expect(throws: ServerError.self) { try await CloudMove.move(lab.request) }
      #expect(try lab.count("container") == 3 && lab.step() == .abandoned)
      try await CloudMove.abandon(lab.request)
      #expect(try lab.step() == nil && lab.count("container") == 0)
      try await writers.write(2)
      #expect(try await CloudMove.move(lab.request).isFinished)
      try await storage.close()
      try await stranger.close()
      try await writers.check(lab)
    }
  }

  // MARK: Copies of a folder

  @Test("another copy of the folder isn't taken for the one that has moved, and a backup has nothing of a move")
  func copies() async throws {
    try await MoveLab.with { lab in
      let storage = try lab.storage()
      let writers = MoveWriters(storage, containers: 3)
      try await writers.fill()
      var request = lab.request
      request.isOnlyCopying = true
      _ = try await CloudMove.move(request)
      _ = try ServerSecrets(data: lab.data).prepare(now: 5)
      let backup = lab.folder.appendingPathComponent("backup.tar")
      _ = try CloudBackup.make(of: lab.data, to: backup, progress: { _ in })
      try await storage.close()
      request.data = lab.folder.appendingPathComponent("copy")
      try FileManager.default.copyItem(at: lab.data, to: request.data)
      request.isOnlyCopying = false
      try #require(try await CloudMove.move(lab.request).isFinished)
      let moved = await #expect(throws: ServerError.self) { try await CloudMove.move(request) }
      #expect(moved?.code == .unusableFile)
      await #expect(throws: ServerError.self) { try await CloudMove.abandon(request) }
      request.data = lab.folder.appendingPathComponent("restored")
      _ = try BackupRestore.restore(backup, to: request.data)
      let names = try MoveLab.names(in: request.data)
      #expect(names.contains("container") && !names.contains { $0.hasPrefix("move") })
      try await MoveLab.storage(in: request.data).close()
      await #expect(throws: ServerError.self) { try await CloudMove.move(request) }
      try await writers.check(lab)
    }
  }

  @Test("a cloud doesn't go back into the folder of another one that has moved elsewhere")
  func otherFolder() async throws {
    try await MoveLab.with { lab in
      let storage = try lab.storage()
      try await MoveWriters(storage, containers: 2).fill()
      try #require(try await CloudMove.move(lab.request).isFinished)
      try await storage.close()
      try await MoveLab.with { other in
        try await other.addGem()
        var request = other.request
        request.data = lab.data
        let before = try MoveLab.dump(lab.data)
        let refused = await #expect(throws: ServerError.self) { try await CloudMove.moveBack(request) }
        #expect(refused?.code == .unusableFile)
        #expect(try MoveLab.dump(lab.data) == before)
        #expect(try other.step() == nil && ReturnMark.read(lab.data) == nil)
      }
    }
  }
}
#endif
