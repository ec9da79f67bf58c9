#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging
import TestSupport
import Testing

@testable import KeepsakeServer

/// Webhooks of several servers over one database.
@Suite(
  "Webhooks of several servers over one PostgreSQL database", .hangLimit,
  .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
struct PostgreSQLWebhookTests {
  private static let second: Int64 = 1_000
  private let players = 1...5 as ClosedRange<UInt64>

  @Test("what is saved through any server is told once while all live, by one of them, in each player's order")
  func once() async throws {
    try await WebhookServers.with(3, endpoints: ["shop", "log"]) { servers in
      var servers = servers
      for round in 0..<6 {
        for player in players { try await servers.save(player, through: (Int(player) + round) % 3) }
        try await servers.play(for: 2 * Self.second)
      }
      for name in ["shop", "log"] {
        let received = servers.received.filter { $0.endpoint == name }
        #expect(servers.versions(at: name) == servers.saved)
        #expect(received.count == 30 && Set(received.map(\.server)).count == 1)
      }
      #expect(try await servers.count("SELECT count(*) FROM webhook_event") == 0)
    }
  }

  @Test("after the server that sends is gone, another one does so half a minute later: nothing is lost or out of order")
  func gone() async throws {
    try await WebhookServers.with { servers in
      var servers = servers
      for _ in 0..<3 { for player in players { try await servers.save(player, through: 1) } }
      try await servers.play(for: 30)
      let holder = try #require(await servers.holder())
      // Some were answered and aren't removed, some are on their way, some wait.
      let before = servers.received.count
      #expect(before > 0 && servers.versions() != servers.saved)
      let killed = servers.time.value
      servers.still = [holder]
      for player in players { try await servers.save(player, through: 1 - holder) }
      try await servers.play(for: servers.limits.leaseMilliseconds + 4 * servers.limits.claimMilliseconds)
      let after = servers.received[before...]
      #expect(after.allSatisfy { $0.server == 1 - holder && $0.atMilliseconds >= killed + 20 * Self.second })
      #expect(servers.versions() == servers.saved)
      // What was on its way came again, under the same ids.
      #expect(servers.received.count > 20 && Set(servers.received.map(\.id)).count == 20)
      #expect(try await servers.count("SELECT count(*) FROM webhook_event") == 0)
    }
  }

  @Test("a server that stood still while another took over sends nothing more, and goes on as one that waits")
  func stoodStill() async throws {
    try await WebhookServers.with { servers in
      var servers = servers
      for player in players { try await servers.save(player, through: 0) }
      try await servers.play(for: 10)
      let holder = try #require(await servers.holder())
      for player in players { try await servers.save(player, through: holder) }
      servers.still = [holder]
      try await servers.play(for: 60 * Self.second)
      #expect(await servers.holder() == 1 - holder)
      #expect(servers.versions() == servers.saved)
      let before = servers.received.count
      // It gets its answers, and is as it was.
      servers.still = []
      for player in players { try await servers.save(player, through: holder) }
      try await servers.play(for: 30 * Self.second)
      #expect(servers.received[before...].allSatisfy { $0.server == 1 - holder })
      #expect(servers.received.count == before + players.count)
      #expect(servers.versions() == servers.saved)
      #expect(servers.log.lines.value.contains { $0.text.contains("this one was silent for too long") })
      #expect(try await servers.count("SELECT count(*) FROM webhook_event") == 0)
    }
  }

  @Test("a server that stops leaves its webhooks to another, which sends nothing again")
  func stopped() async throws {
    try await WebhookServers.with { servers in
      var servers = servers
      for player in players { try await servers.save(player, through: 0) }
      try await servers.play(for: Self.second)
      let holder = try #require(await servers.holder())
      try await servers.stop(holder)
      for player in players { try await servers.save(player, through: 1 - holder) }
      try await servers.play(for: 2 * servers.limits.claimMilliseconds)
      #expect(servers.received.count == 2 * players.count && servers.versions() == servers.saved)
    }
  }

  @Test("a webhook that one server can't reach is left to another one, and holds up no other webhook meanwhile")
  func noWay() async throws {
    try await WebhookServers.with(endpoints: ["shop", "log"]) { servers in
      var servers = servers
      try await servers.play(for: 10)
      let deaf = try #require(await servers.holder(of: 0))
      let backend: WebhookServers.Backend = { $0 == deaf && $1 == "shop" ? nil : 200 }
      for _ in 0..<4 {
        for player in players { try await servers.save(player, through: deaf) }
        try await servers.play(for: 2 * Self.second, backend)
        #expect(servers.versions(at: "log") == servers.saved)
      }
      #expect(servers.versions().isEmpty)
      try await servers.play(for: 3 * WebhookLab.minute, backend)
      #expect(await servers.holder(of: 0) == 1 - deaf)
      #expect(servers.versions() == servers.saved)
      #expect(servers.received.filter { $0.endpoint == "shop" }.count == 4 * players.count)
    }
  }

  @Test("a webhook that answers nobody is tried by one request at a time, whichever server does, and all show it so")
  func down() async throws {
    var limits = WebhookLimits()
    limits.lookMilliseconds = 5 * Self.second
    try await WebhookServers.with(limits: limits) { servers in
      var servers = servers
      for player in players { try await servers.save(player, through: 0) }
      var requests: [Int] = []
      let backend: WebhookServers.Backend = { server, _ in
        requests.append(server)
        return 503
      }
      try await servers.play(for: 10 * WebhookLab.minute, backend)
      // As with one server: eight, and then with pauses that double.
      #expect((8...30).contains(requests.count) && Set(requests).count == 2)
      for server in servers.servers {
        let shown = try await server.couriers[0].status()
        #expect(shown.state == .failing && shown.failure == "status 503" && shown.counts.waiting == 5)
      }
      #expect(try await servers.count("SELECT count(*) FROM webhook_event WHERE dead IS NOT NULL") == 0)
      // The studio has it tried at once, through a server that doesn't hold it.
      let holder = await servers.holder() ?? 0
      #expect(
        try await servers.servers[1 - holder].storage.retryWebhooks(of: "shop", nil, limit: 9, auditing: nil) == 0)
      try await servers.play(for: 20 * Self.second)
      #expect(servers.versions() == servers.saved)
    }
  }

  @Test("an event that was committed after later ones were sent is sent, too")
  func late() async throws {
    try await WebhookServers.with { servers in
      var servers = servers
      try await servers.save(1, through: 0)
      // Of another player, whose transaction takes its time.
      let connection = try PostgreSQLConnection(TestDatabase.settings(servers.address))
      _ = try connection.run([PostgreSQLStatement("BEGIN")])
      _ = try connection.run([
        PostgreSQLStatement(
          """
          INSERT INTO webhook_event (lane, endpoint, revision, item, id, player, kind, created, queued, data)
          SELECT '\\x01', endpoint, 1, 0, '\\x000102030405060708090a0b0c0d0e0f', NULL, kind, 1, queued, data
          FROM webhook_event
          """)
      ])
      for _ in 0..<3 {
        try await servers.save(1, through: 1)
        try await servers.play(for: 3 * Self.second)
      }
      #expect(servers.versions() == servers.saved)
      _ = try connection.run([PostgreSQLStatement("COMMIT")])
      try await servers.play(for: 3 * Self.second)
      #expect(servers.received.last?.id == "000102030405060708090a0b0c0d0e0f" && servers.received.count == 5)
    }
  }

  @Test("however many servers number events while players save, none has another's number, and each player's rise")
  func numbers() async throws {
    try await WebhookServers.with(endpoints: ["shop", "log"]) { servers in
      let storages = servers.servers.map(\.storage)
      let isOver = Shared(false)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for storage in storages {
          for name in ["shop", "log"] {
            group.addTask {
              while !isOver.value, !Task.isCancelled { _ = try await storage.numberWebhooks(of: name, limit: 7) }
              while try await storage.numberWebhooks(of: name, limit: 7) > 0 {}
            }
          }
        }
        try await withThrowingTaskGroup(of: Void.self) { saving in
          for player in players {
            saving.addTask {
              for count in 1...12 as ClosedRange<UInt64> {
                let covers = count > 1 ? [VersionID(high: player, low: count - 1)] : []
                try await WebhookServers.save(
                  VersionID(high: player, low: count), covers: covers, of: WebhookLab.player(player), at: 5,
                  in: storages[Int(count) % 2])
              }
            }
          }
          try await saving.waitForAll()
        }
        isOver.value = true
        try await group.waitForAll()
      }
      #expect(try await servers.count("SELECT count(*) FROM webhook_event WHERE number IS NOT NULL") == 120)
      #expect(try await servers.count("SELECT count(DISTINCT (endpoint, number)) FROM webhook_event") == 120)
      #expect(
        try await servers.count(
          """
          SELECT count(*) FROM (
            SELECT number, lag(number) OVER (PARTITION BY endpoint, lane ORDER BY revision, item) AS before
            FROM webhook_event
          ) AS numbered WHERE before >= number
          """) == 0)
    }
  }

  @Test("a conflict is told once by two servers that look at the same time; of a deleted player nothing is left of it")
  func conflicts() async throws {
    try await WebhookServers.with(kinds: [.conflictOpen, .playerDeleted]) { servers in
      var servers = servers
      for player in players {
        try await servers.register(player)
        for _ in 0..<2 { try await servers.save(player, through: Int(player) % 2, covers: []) }
      }
      let deleted = WebhookLab.player(5).container
      try await servers.servers[0].storage.delete(deleted, now: 5)
      #expect(try await servers.count("SELECT count(*) FROM webhook_conflict") == 4)
      let (one, other) = (servers.servers[0].storage, servers.servers[1].storage)
      async let first = one.tellConflicts(openSince: .max, now: 9, limit: 9)
      async let second = other.tellConflicts(openSince: .max, now: 9, limit: 9)
      #expect(try await first + second == 4)
      try await one.noteOpenConflicts(now: 9)
      #expect(try await other.tellConflicts(openSince: .max, now: 9, limit: 9) == 0)
      try await servers.play(for: Self.second)
      #expect(servers.received.map(\.kind).sorted() == Array(repeating: "conflictOpen", count: 4) + ["playerDeleted"])
    }
  }

  @Test("servers of the version before go on until one has webhooks: they would write no events")
  func versions() async throws {
    let schema = "s\(UUID().uuidString.lowercased().filter { $0 != "-" })"
    let address = try TestDatabase.address(ofSchema: schema)
    func oldest() throws -> Int64 {
      let connection = try PostgreSQLConnection(TestDatabase.settings(address))
      return try #require(try connection.run([PostgreSQLSchema.reading])[0].first).int(1)
    }
    let quiet = try await TestDatabase.storage(at: address)
    let before = try #require(PostgreSQLSchema.migrations.firstIndex { $0.statements == PostgreSQLSchema.webhooks })
    #expect(try oldest() <= Int64(before))
    try await TemporaryFolder.with { folder in
      let telling = try await TestStorage.postgreSQL.open(
        in: folder, schema: schema, clock: { 0 }, logger: Logger(label: "test"),
        webhooks: [WebhookLab.endpoint("shop", in: folder)])
      #expect(try oldest() == Int64(before) + 1)
      try await telling.close()
    }
    try await quiet.refresh()
    try await quiet.probe()
    try await quiet.close()
    try TestDatabase.drop(schema: schema)
  }
}
#endif
