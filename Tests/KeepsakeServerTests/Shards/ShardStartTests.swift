#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging
import ServiceLifecycle
import TestSupport
import Testing

@testable import KeepsakeServer

@Suite(
  "The start of a server while a database can't be reached", .enabled(if: TestDatabase.address != nil), .hangLimit)
struct ShardStartTests: ShardScenes {
  /// Opens the databases as `keepsake serve` does, runs `body`, and closes them.
  private func serve<Result>(
    _ lab: ShardLab, _ link: DatabaseLink, as name: String = "two", _ log: RecordedLog,
    _ body: (ShardedStorage) async throws -> Result
  ) async throws -> Result {
    var configuration = ServerConfiguration(data: link.folder, port: 0, appKeys: ["key"])
    configuration.database = lab.addresses[ShardBinding.home]
    configuration.databaseConnections = 2
    configuration.databaseWaitSeconds = 1
    configuration.databaseStandIn = TestDatabase.standIn
    let server = try await CloudDatabase.openSharded(
      ShardAddress.all(["\(name)=\(link.address)"]), configuration, logger: log.logger, firstWait: .zero)
    let result: Result
    do {
      result = try await body(server)
    } catch {
      try await server.close()
      throw error
    }
    try await server.close()
    return result
  }

  /// Runs `body` while a server looks at what others change.
  private func watching(_ server: ShardedStorage, _ events: EventHub, _ body: () async throws -> Void) async throws {
    let watch = try #require(server.watching(events, heartbeatSeconds: 1))
    let watching = Task { try await watch.run() }
    defer { watching.cancel() }
    try await body()
    watching.cancel()
    try await watching.value
  }

  @Test("the server starts, others' players go on, and those who are in the database once it can be reached")
  func opensLater() async throws {
    try await ShardLab.with { lab in
      let link = try DatabaseLink(to: #require(lab.addresses["two"]))
      let (there, away) = (device(1), device(2))
      let other = try await lab.server()
      try await record(there, in: other, at: ShardBinding.home)
      try await record(away, in: other, at: "two")
      try await other.addGem(to: away.container, mark: 1)
      let entry = AuditEntry(atMilliseconds: 5, key: "k", name: "ada", act: "player.ban", request: "r")
      try await other.setBan(Ban(reason: "x", sinceMilliseconds: 1), of: away.container, auditing: entry)
      let log = RecordedLog()
      try await serve(lab, link, log) { server in
        #expect(log.lines.value.count { $0.text.contains("This database can't be reached") } == 1)
        try await server.probe()
        try await server.addGem(to: there.container, mark: 1)
        let error = await #expect(throws: PostgreSQLError.self) {
          try await server.addGem(to: away.container, mark: 2)
        }
        #expect(error?.isPassing == true)
        for number in 10..<30 as Range<UInt64> {
          try await record(device(number), in: server)
          #expect(try await server.directory.shard(of: device(number).container) == ShardBinding.home)
        }
        let events = EventHub()
        let stream = try events.subscribe(away.device, to: away.container)
        try await watching(server, events) {
          try link.connect()
          // Heard by a look at the database: nothing was told while it couldn't be reached.
          for await notice in stream.notices where notice.seq == 1 { break }
          #expect(server.ban(of: away)?.reason == "x")
          try await server.addGem(to: away.container, mark: 3)
          #expect(try await other.gems(of: away.container) == 2)
          for number in 30..<70 as Range<UInt64> { try await record(device(number), in: server) }
        }
        #expect(try await server.devices(of: device(10).container).count == 1)
        var shards: Set<String> = []
        for number in 30..<70 as Range<UInt64> {
          shards.insert(try await server.directory.shard(of: device(number).container))
        }
        #expect(shards == ["home", "two"])
        #expect(log.lines.value.count { $0.text.contains("This database can be reached now") } == 1)
      }
    }
  }

  @Test("a database that turns out to be another one serves nobody, until it is the right one")
  func another() async throws {
    try await ShardLab.with { lab in
      let link = try DatabaseLink(to: #require(lab.addresses["two"]))
      let away = device(2)
      try await record(away, in: lab.server(), at: "two")
      let log = RecordedLog()
      try await serve(lab, link, log) { server in
        try lab.run("UPDATE shard_self SET name = 'three'", in: "two")
        try link.connect()
        try await watching(server, EventHub()) {
          try await until("the server has looked") {
            log.lines.value.contains { $0.text.contains("is the shard three") }
          }
          let error = await #expect(throws: ServerError.self) { try await server.addGem(to: away.container, mark: 1) }
          #expect(error?.code == .configuration)
          try lab.run("UPDATE shard_self SET name = 'two'", in: "two")
          while (try? await server.addGem(to: away.container, mark: 2)) == nil {
            try await Task.sleep(for: .milliseconds(10))
          }
        }
        #expect(try await server.gems(of: away.container) == 1)
      }
    }
  }

  @Test("a database that the cloud doesn't have yet is waited for, and no server starts without it")
  func new() async throws {
    try await ShardLab.with { lab in
      let link = try DatabaseLink(to: #require(lab.addresses["two"]))
      let log = RecordedLog()
      let error = await #expect(throws: ServerError.self) { try await serve(lab, link, log) { _ in } }
      #expect(error?.code == .inputOutput)
      #expect(try lab.run("SELECT name FROM shard", in: "home").map { try $0.text(0) } == [])
    }
  }
}
#endif
