#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeServer

@Suite(
  "The start of a server while a database can't be reached", .enabled(if: TestDatabase.address != nil), .hangLimit)
struct ShardStartTests: ShardScenes {
  /// Opens the databases as `keepsake serve` does, runs `body`, and closes them.
  private func serve<Result>(
    _ lab: ShardLab, _ link: DatabaseLink, database: String = "postgres", options: String = "",
    _ log: RecordedLog, _ body: (ShardedStorage) async throws -> Result
  ) async throws -> Result {
    var configuration = ServerConfiguration(data: link.folder, port: 0, appKeys: ["key"])
    configuration.database = lab.addresses[ShardBinding.home]
    configuration.databaseConnections = 2
    configuration.databaseWaitSeconds = 1
    configuration.databaseStandIn = TestDatabase.standIn
    let address = link.address.replacingOccurrences(of: "/postgres?", with: "/\(database)?")
      .replacingOccurrences(of: "options=", with: "options=\(options)")
    let server = try await CloudDatabase.openSharded(
      ShardAddress.all(["two=\(address)"]), configuration, logger: log.logger, firstWait: .zero)
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
      let log = RecordedLog()
      try await serve(lab, link, log) { server in
        #expect(log.lines.value.count { $0.text.contains("This database can't be reached") } == 1)
        try await server.probe()
        try await server.addGem(to: there.container, mark: 1)
        let error = await #expect(throws: PostgreSQLError.self) {
          try await server.addGem(to: away.container, mark: 2)
        }
        #expect(error?.isPassing == true)
        let events = EventHub()
        try await watching(server, events) {
          // While it looks four times, twice of them for what only streams have to know.
          for number in 10..<30 as Range<UInt64> {
            try await record(device(number), in: server)
            #expect(try await server.directory.shard(of: device(number).container) == ShardBinding.home)
            try await Task.sleep(for: PostgreSQLWatch.lookInterval / 5)
          }
          let stream = try events.subscribe(away.device, to: away.container)
          try link.connect()
          // Heard by a look at the database: nothing was told while it couldn't be reached.
          for await notice in stream.notices where notice.seq == 1 { break }
          try await server.addGem(to: away.container, mark: 3)
          #expect(try await other.gems(of: away.container) == 2)
          while server.shards["two"]?.isAnswering.load(ordering: .relaxed) != true {
            try await Task.sleep(for: .milliseconds(10))
          }
          var shards: Set<String> = []
          for number in 30..<70 as Range<UInt64> {
            try await record(device(number), in: server)
            shards.insert(try await server.directory.shard(of: device(number).container))
          }
          #expect(shards == ["home", "two"])
        }
        #expect(log.lines.value.count { $0.text.contains("This database can be reached now") } == 1)
      }
    }
  }

  @Test("whoever was banned meanwhile is known before anybody of the database is served")
  func bans() async throws {
    try await ShardLab.with { lab in
      let link = try DatabaseLink(to: #require(lab.addresses["two"]))
      let away = device(2)
      let other = try await lab.server()
      try await record(away, in: other, at: "two")
      let log = RecordedLog()
      try await serve(lab, link, log) { server in
        let entry = AuditEntry(atMilliseconds: 5, key: "k", name: "ada", act: "player.ban", request: "r")
        try await other.setBan(Ban(reason: "x", sinceMilliseconds: 1), of: away.container, auditing: entry)
        let two = try #require(server.shards["two"])
        await #expect(throws: PostgreSQLError.self) { try await two.openIfNeeded() }
        try link.connect()
        try await two.openIfNeeded()
        #expect(server.ban(of: away)?.reason == "x")
        #expect(try await server.gems(of: away.container) == 0)
      }
    }
  }

  @Test("a database of the cloud that answers and refuses lets no server start")
  func refuses() async throws {
    try await ShardLab.with { lab in
      let link = try DatabaseLink(to: #require(lab.addresses["two"]))
      try link.connect()
      let other = try await lab.server()
      #expect(other.directory.open == ["home", "two"])
      let log = RecordedLog()
      let error = await #expect(throws: ServerError.self) {
        try await serve(lab, link, database: "none", log) { _ in }
      }
      #expect(error?.code == .inputOutput && log.lines.value.isEmpty)
      try await serve(lab, link, log) { try await $0.probe() }
    }
  }

  @Test("one that takes no changes now, as before a standby takes over, keeps no server from starting")
  func onlyReads() async throws {
    try await ShardLab.with { lab in
      let link = try DatabaseLink(to: #require(lab.addresses["two"]))
      try link.connect()
      #expect(try await lab.server().directory.open == ["home", "two"])
      let log = RecordedLog()
      try await serve(lab, link, options: "-cdefault_transaction_read_only%3Don%20", log) { server in
        #expect(log.lines.value.count { $0.text.contains("This database can't be reached") } == 1)
        let error = await #expect(throws: PostgreSQLError.self) { try await server.shards["two"]?.openIfNeeded() }
        #expect(error?.isPassing == true)
        try await server.probe()
      }
    }
  }

  @Test("in an empty database at the address of one that is down, no tables are made")
  func empty() async throws {
    try await ShardLab.with { lab in
      let link = try DatabaseLink(to: #require(lab.addresses["two"]))
      #expect(try await lab.server().directory.open == ["home", "two"])
      let log = RecordedLog()
      try await serve(lab, link, log) { server in
        let two = try #require(server.shards["two"])
        let schema = try #require(lab.run("SELECT current_schema()::text::bytea", in: "two").first).text(0)
        try lab.run("ALTER SCHEMA \(schema) RENAME TO \(schema)_away", in: "home")
        try lab.run("CREATE SCHEMA \(schema)", in: "home")
        try link.connect()
        let error = await #expect(throws: ServerError.self) { try await two.openIfNeeded() }
        #expect(error?.code == .configuration)
        let tables = "SELECT tablename::text::bytea FROM pg_tables WHERE schemaname = current_schema()"
        #expect(try lab.run(tables, in: "two").count == 0)
        try lab.run("DROP SCHEMA \(schema)", in: "home")
        try lab.run("ALTER SCHEMA \(schema)_away RENAME TO \(schema)", in: "home")
        try await two.openIfNeeded()
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
          let error = await #expect(throws: PostgreSQLError.self) {
            try await server.addGem(to: away.container, mark: 1)
          }
          // Devices try again, whatever the reason is.
          #expect(error?.isPassing == true)
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
