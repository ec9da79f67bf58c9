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

/// What a move back into a folder leaves that ends between two of its steps, and who may use what meanwhile.
@Suite(
  "Moves back that ended between two steps", .hangLimit,
  .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
struct InterruptedReturnTests {
  private static let player = MoveWriters.container(1)

  /// Runs `body` with a cloud in PostgreSQL, and a request to move it into a new folder.
  private static func with(_ body: (MoveLab, CloudMove.Request) async throws -> Void) async throws {
    try await MoveLab.with { lab in
      try await lab.addGem()
      var request = lab.request
      request.data = lab.folder.appendingPathComponent("back")
      try await body(lab, request)
    }
  }

  private static func gems(in data: URL) async throws -> UInt64 {
    let storage = try MoveLab.storage(in: data)
    let seq = try await storage.newestSeq(of: player)
    try await storage.close()
    return seq
  }

  private static func answer(to error: any Error) -> APIError {
    AnswerMiddleware.answer(to: error, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
  }

  // MARK: Who may use what

  @Test("while a cloud is on its way into a folder, no server begins an empty one there, nor is one told to")
  func halfWay() async throws {
    try await Self.with { lab, request in
      try await lab.leave(to: request.data)
      let refused = #expect(throws: ServerError.self) { _ = try DataFolder(at: request.data) }
      #expect(refused?.code == .unusableFile)
      let told = try #require(await lab.refusal())
      #expect(told.code == .unusableFile && told.message.contains("--abandon"))
      #expect(!told.message.contains("keepsake serve"))
      #expect(try await CloudMove.moveBack(request).isFinished)
      try DataFolder(at: request.data).unlock()
      #expect(await lab.refusal()?.message.contains("keepsake serve") == true)
      #expect(try await Self.gems(in: request.data) == 1)
    }
  }

  @Test("what is left of a move back that was given up keeps servers from the folder until it is removed")
  func halfAbandoned() async throws {
    try await Self.with { lab, request in
      try await lab.leave(to: request.data)
      let copied = request.data.appendingPathComponent(DataFolder.movingName)
      try Data([1]).write(to: copied)
      // Killed when the database was told.
      try lab.run("UPDATE cloud_move SET state = $1", [.int(CloudMoveState.Step.finished.rawValue)])
      #expect(throws: ServerError.self) { _ = try DataFolder(at: request.data) }
      try await CloudMove.abandonBack(request)
      #expect(!FileManager.default.fileExists(atPath: copied.path))
      try DataFolder(at: request.data).unlock()
    }
  }

  @Test("a cloud that came from a folder is still known to have come from there after a move back was given up")
  func gaveUpReturn() async throws {
    try await MoveLab.with { lab in
      let storage = try lab.storage()
      let writers = MoveWriters(storage, containers: 3)
      try await writers.fill()
      try #require(try await CloudMove.move(lab.request).isFinished)
      try await storage.close()
      try await lab.leave(to: lab.data)
      try await CloudMove.abandonBack(lab.request)
      #expect(try lab.step() == .finished)
      let given = await #expect(throws: ServerError.self) { try await CloudMove.abandon(lab.request) }
      #expect(given?.code == .unusableFile)
      #expect(try lab.isFenced())
      #expect(try await CloudMove.move(lab.request).copied == 0)
      try await writers.check(lab)
      #expect(try await CloudMove.moveBack(lab.request).isFinished)
    }
  }

  @Test("a folder of the same path on another machine isn't taken for the one into which the cloud goes")
  func otherMachine() async throws {
    try await Self.with { lab, request in
      try await lab.leave(to: request.data)
      let here = request.data.appendingPathExtension("here")
      try FileManager.default.moveItem(at: request.data, to: here)
      await #expect(throws: ServerError.self) { try await CloudMove.moveBack(request) }
      #expect(try lab.step() == .leaving && ReturnMark.read(request.data) == nil)
      try FileManager.default.removeItem(at: request.data)
      try FileManager.default.moveItem(at: here, to: request.data)
      try #require(try await CloudMove.moveBack(request).isFinished)
      try FileManager.default.moveItem(at: request.data, to: here)
      await #expect(throws: ServerError.self) { try await CloudMove.moveBack(request) }
      // One that servers of the database have used.
      try DataFolder(at: request.data).unlock()
      await #expect(throws: ServerError.self) { try await CloudMove.moveBack(request) }
      await #expect(throws: ServerError.self) { try await CloudMove.abandonBack(request) }
      #expect(try lab.step() == .left)
      #expect(try await Self.gems(in: here) == 1)
    }
  }

  @Test("what was copied from one database isn't removed by a command that names another one")
  func otherDatabase() async throws {
    try await Self.with { lab, request in
      try await lab.leave(to: request.data)
      let copied = request.data.appendingPathComponent(DataFolder.movingName)
      try Data([1]).write(to: copied)
      try await MoveLab.with { other in
        try await other.addGem()
        var wrong = request
        wrong.address = other.address
        await #expect(throws: ServerError.self) { try await CloudMove.moveBack(wrong) }
        await #expect(throws: ServerError.self) { try await CloudMove.abandonBack(wrong) }
        // Also if it goes elsewhere.
        try await other.leave(to: other.data)
        await #expect(throws: ServerError.self) { try await CloudMove.moveBack(wrong) }
        await #expect(throws: ServerError.self) { try await CloudMove.abandonBack(wrong) }
        #expect(try other.step() == .leaving)
      }
      #expect(try Data(contentsOf: copied) == Data([1]))
      #expect(try await CloudMove.moveBack(request).isFinished)
    }
  }

  // MARK: The fence

  @Test("a server that stood still while the cloud left acknowledges nothing, and devices are told to try again")
  func paused() async throws {
    try await Self.with { lab, request in
      // It looks at nothing by itself.
      let paused = try await TestDatabase.storage(at: lab.address)
      #expect(try await CloudMove.moveBack(request).isFinished)
      await #expect {
        try await paused.addGem(to: Self.player, mark: 8)
      } throws: { error in
        let answer = Self.answer(to: error)
        return answer.status == .serviceUnavailable && answer.retryAfterSeconds != nil
      }
      await #expect(throws: PostgreSQLError.self) { try await paused.addGem(to: MoveWriters.container(2), mark: 1) }
      try await paused.refresh()
      await #expect {
        try await paused.addGem(to: Self.player, mark: 8)
      } throws: { error in
        Self.answer(to: error).status == .serviceUnavailable
      }
      try await paused.close()
      #expect(try lab.count(ReturnFence.name("container")) == 1)
      #expect(try await Self.gems(in: request.data) == 1)
    }
  }

  /// Changes something once a player is copied.
  private static func changing(_ lab: MoveLab, _ hasChanged: Shared<Bool>) -> CloudMoveProgress.Receiver {
    { progress in
      guard progress.done > 0, !hasChanged.value else { return }
      hasChanged.value = (try? lab.run("UPDATE container SET used = used + 5").count) == 1
    }
  }

  @Test("what changes while it is copied is noticed, also if it moves no revision; another run copies it")
  func changed() async throws {
    try await Self.with { (lab, request) async throws in
      let hasChanged = Shared(false)
      let refused = await #expect(throws: ServerError.self) {
        try await CloudMove.moveBack(request, progress: Self.changing(lab, hasChanged))
      }
      #expect(hasChanged.value)
      #expect(refused?.code == .folderInUse)
      #expect(try lab.step() == .leaving)
      // The fence has been built by then.
      #expect(try lab.count(ReturnFence.name("container")) == 1)
      #expect(try await CloudMove.moveBack(request).isFinished)
      #expect(try await Self.gems(in: request.data) == 1)
    }
  }

  @Test(
    "a move back that ends between the fence and its last step is finished by another run, or given up",
    arguments: [false, true])
  func halfFenced(isAbandoned: Bool) async throws {
    try await Self.with { lab, request in
      try await lab.leave(to: request.data)
      let mark = try #require(try await lab.state()?.mark)
      try await CloudMoveState.fence(TestDatabase.settings(lab.address), mark)
      // Not every database undoes all of it, or nothing.
      try lab.run("ALTER TABLE \(ReturnFence.name("audit")) RENAME TO audit")
      if isAbandoned {
        try await CloudMove.abandonBack(request)
        try await lab.addGem()
        #expect(try lab.run("SELECT seq FROM container").first?.int(0) == 2)
      } else {
        #expect(try await CloudMove.moveBack(request).isFinished)
        #expect(try await Self.gems(in: request.data) == 1)
      }
    }
  }

  @Test("the fence waits for transactions that are open, and gives up if they stay so")
  func openTransaction() async throws {
    try await Self.with { lab, request in
      try await lab.leave(to: request.data)
      let mark = try #require(try await lab.state()?.mark)
      let open = try PostgreSQLConnection(TestDatabase.settings(lab.address))
      _ = try open.run([PostgreSQLStatement("BEGIN")])
      _ = try open.run([PostgreSQLStatement("UPDATE container SET revision = revision + 1")])
      let refused = await #expect(throws: ServerError.self) {
        try await CloudMoveState.fence(TestDatabase.settings(lab.address), mark, waiting: 50, attempts: 2)
      }
      #expect(refused?.code == .folderInUse)
      _ = try open.run([PostgreSQLStatement("COMMIT")])
      try await CloudMoveState.fence(TestDatabase.settings(lab.address), mark)
      // It isn't what was copied.
      let totals = try MovedTotals(
        [PostgreSQLRows](repeating: PostgreSQLRows(), count: MovedTotals.statements().count))
      let pool = PostgreSQLPool(TestDatabase.settings(lab.address), connections: 1)
      await #expect(throws: ServerError.self) { try await CloudMoveState.setLeft(pool, mark, totals) }
      await pool.finish()
      #expect(try lab.step() == .leaving)
      try await CloudMove.abandonBack(request)
      #expect(try lab.run("SELECT revision FROM container").first?.int(0) == 2)
    }
  }

  // MARK: What isn't moved

  @Test("a cloud that came from a folder isn't moved back with events for webhooks, nor by another version")
  func undelivered() async throws {
    try await MoveLab.with { lab in
      let storage = try lab.storage()
      try await MoveWriters(storage, containers: 2).fill()
      try #require(try await CloudMove.move(lab.request).isFinished)
      try await storage.close()
      try lab.run(
        """
        INSERT INTO webhook_event (lane, endpoint, revision, item, id, kind, created, queued, data)
        VALUES ('a', 'b', 1, 1, 'c', 'd', 1, 1, 'e')
        """)
      let refused = await #expect(throws: ServerError.self) { try await CloudMove.moveBack(lab.request) }
      #expect(refused?.code == .configuration)
      #expect(try lab.step() == .finished && ReturnMark.read(lab.data) == nil)
      try lab.run("DELETE FROM webhook_event")
      try await lab.leave(to: lab.data)
      try lab.run("UPDATE schema_number SET number = number - 1")
      let other = await #expect(throws: ServerError.self) { try await CloudMove.moveBack(lab.request) }
      #expect(other?.code == .configuration)
      try lab.run("UPDATE schema_number SET number = number + 1")
      #expect(try await CloudMove.moveBack(lab.request).isFinished)
    }
  }

  @Test("rows of the whole cloud are copied once, however often the end of a transaction isn't heard")
  func repeated() async throws {
    try await Self.with { lab, request in
      try lab.run("INSERT INTO admin_key VALUES ('a', 'a', 'a', '', '', 1, NULL)")
      try lab.run("INSERT INTO audit VALUES (1, 1, 'a', 'a', 'a', 'a', 'a', 'a', NULL, NULL, 'a')")
      try lab.run("INSERT INTO number VALUES ('\(CloudNumber.auditRows.rawValue)', 1)")
      var settings = TestDatabase.settings(lab.address)
      settings.standIn = PostgreSQLStandIn(oneFailsOf: 4)
      let pool = PostgreSQLPool(settings, connections: 1)
      for number in 0..<20 {
        let url = lab.folder.appendingPathComponent("\(number).sqlite")
        let files = ContentFiles(folder: lab.data.appendingPathComponent(DataFolder.contentsName))
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        try Schema.prepare(url, Configuration(), files: files, logger: logger)
        let queue = try DatabaseQueue(path: url.path)
        do {
          try await CloudReturn.copyCloud(pool, queue)
        } catch {
          Issue.record(error)
        }
        #expect(try await queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM audit") } == 1)
        try queue.close()
      }
      await pool.finish()
    }
  }
}
#endif
