#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// Several servers with webhooks over one PostgreSQL database, and backends, all by a time that only the test moves.
struct WebhookServers {
  struct Server {
    let storage: PostgreSQLStorage
    let couriers: [WebhookCourier]
  }
  /// What a backend got.
  struct Received {
    var server: Int
    var endpoint: String
    var id: String
    var kind: String
    var player: String
    var version: String?
    var atMilliseconds: Int64
  }
  /// Returns the status; nil for no answer.
  typealias Backend = (_ server: Int, _ endpoint: String) -> Int?

  let address: String
  let endpoints: [WebhookEndpoint]
  let limits: WebhookLimits
  let time = Shared<Int64>(WebhookLab.start)
  let log = RecordedLog()
  private(set) var servers: [Server] = []
  /// Servers that do nothing, as if they were killed or stood still.
  var still: Set<Int> = []
  private(set) var received: [Received] = []
  private var underWay: [(at: Int64, server: Int, endpoint: Int, delivery: WebhookDelivery, status: Int?)] = []
  private var saves: [UInt64: UInt64] = [:]
  /// The versions of each player, in their order.
  private(set) var saved: [String: [String]] = [:]

  static func with(
    _ count: Int = 2, endpoints names: [String] = ["shop"], kinds: Set<WebhookKind> = [.saveArrived],
    limits: WebhookLimits = WebhookLimits(), _ body: (WebhookServers) async throws -> Void
  ) async throws {
    let schema = "s\(UUID().uuidString.lowercased().filter { $0 != "-" })"
    try await TemporaryFolder.with { folder in
      let endpoints = try names.map { try WebhookLab.endpoint($0, in: folder, kinds: kinds) }
      var own = WebhookServers(
        address: try TestDatabase.address(ofSchema: schema), endpoints: endpoints, limits: limits)
      for _ in 0..<count { try await own.start() }
      try await body(own)
      for server in own.servers { try await server.storage.close() }
    }
    try TestDatabase.drop(schema: schema)
  }

  private init(address: String, endpoints: [WebhookEndpoint], limits: WebhookLimits) {
    (self.address, self.endpoints, self.limits) = (address, endpoints, limits)
  }

  private mutating func start() async throws {
    var settings = TestDatabase.settings(address)
    settings.standIn = TestDatabase.standIn
    let clock = { @Sendable [time] in time.value }
    let storage = try await PostgreSQLStorage(
      settings, connections: 2, clock: clock, logger: log.logger, webhooks: endpoints)
    let couriers = try endpoints.map { endpoint in
      try WebhookCourier(
        endpoint, storage: storage, limits: limits, metrics: ServerMetrics(PrometheusRegistry()), logger: log.logger,
        clock: clock, steady: clock, random: { 0.5 })
    }
    servers.append(Server(storage: storage, couriers: couriers))
  }

  // MARK: Players

  @discardableResult
  mutating func save(_ player: UInt64, through server: Int, covers: [VersionID]? = nil) async throws -> VersionID {
    let identity = WebhookLab.player(player)
    let count = saves[player, default: 0] + 1
    saves[player] = count
    let id = VersionID(high: player, low: count)
    try await Self.save(
      id, covers: covers ?? (count > 1 ? [VersionID(high: player, low: count - 1)] : []), of: identity,
      at: time.value, in: servers[server].storage)
    saved["\(identity.player)", default: []].append("\(id)")
    for courier in servers[server].couriers { await courier.notice() }
    return id
  }

  static func save(
    _ id: VersionID, covers: [VersionID], of identity: DeviceIdentity, at now: Int64, in storage: PostgreSQLStorage
  ) async throws {
    try await storage.decide(on: identity.container) { container throws in
      let seq = container.position().seq + 1
      container.advance(to: Cursor(epoch: 1, seq: seq, mark: 10 + seq))
      for covered in covers { container.markCovered(covered) }
      let record = VersionRecord(
        id: id, slot: "main", covers: covers, contents: [], length: 5, savedAtMilliseconds: now, writer: WriterID(3),
        provisional: false)
      try container.putVersion(SequencedVersion(record: record, seq: seq))
    }
  }

  func register(_ player: UInt64) async throws {
    try await servers[0].storage.recordDevice(
      DeviceRecord(
        identity: WebhookLab.player(player), name: "a phone", createdMilliseconds: time.value,
        seenMilliseconds: time.value))
  }

  // MARK: Time

  /// Lets the time pass.
  mutating func play(for milliseconds: Int64, _ backend: Backend = { _, _ in 200 }) async throws {
    let end = time.value + milliseconds
    for _ in 0..<100_000 {
      var next = end
      for (index, server) in servers.enumerated() where !still.contains(index) {
        for (number, courier) in server.couriers.enumerated() {
          for delivery in await courier.pass() { try send(delivery, index, number, backend) }
          next = min(next, await courier.wakeMilliseconds())
        }
      }
      // What a server asked before it stood still has ended meanwhile.
      let onTheirWay = underWay.filter { !still.contains($0.server) && $0.at > time.value }.map {
        "\($0.endpoint) \($0.delivery.pick.lane.base64EncodedString())"
      }
      #expect(Set(onTheirWay).count == onTheirWay.count, "two events of one player are on their way")
      next = min(next, underWay.filter { !still.contains($0.server) }.map(\.at).min() ?? end)
      guard next < end else {
        time.value = end
        return
      }
      time.value = max(time.value, next)
      try await answer()
    }
    throw NeverHappened("the end of the time")
  }

  private mutating func send(
    _ delivery: WebhookDelivery, _ server: Int, _ endpoint: Int, _ backend: Backend
  ) throws {
    let name = endpoints[endpoint].name
    let status = backend(server, name)
    let body = try #require(try JSONSerialization.jsonObject(with: delivery.request.body) as? [String: Any])
    if status == 200 {
      received.append(
        Received(
          server: server, endpoint: name, id: try #require(body["id"] as? String),
          kind: try #require(body["kind"] as? String), player: body["player"] as? String ?? "none",
          version: (body["data"] as? [String: Any])?["version"] as? String, atMilliseconds: time.value))
    }
    let pause = status == nil ? Int64(limits.answerSeconds) * 1_000 : 20
    underWay.append((time.value + pause, server, endpoint, delivery, status))
  }

  private mutating func answer() async throws {
    let due = underWay.filter { $0.at <= time.value && !still.contains($0.server) }
    underWay.removeAll { $0.at <= time.value && !still.contains($0.server) }
    for (_, server, endpoint, delivery, status) in due {
      let courier = servers[server].couriers[endpoint]
      if let status {
        await courier.finish(delivery, status: status)
      } else {
        await courier.finish(delivery, .failed("no answer"))
      }
    }
  }

  /// Stops a server as SIGTERM does. Nothing of it may be on its way.
  mutating func stop(_ server: Int) async throws {
    #expect(!underWay.contains { $0.server == server })
    for courier in servers[server].couriers { try await courier.stop() }
    still.insert(server)
  }

  // MARK: What came

  /// The versions that an endpoint has got of each player, without what came again, in their order.
  func versions(at endpoint: String = "shop") -> [String: [String]] {
    var (versions, seen): ([String: [String]], Set<String>) = ([:], [])
    for event in received where event.endpoint == endpoint && seen.insert(event.id).inserted {
      versions[event.player, default: []].append(event.version ?? "none")
    }
    return versions
  }

  /// Which server has the endpoint; nil for none.
  func holder(of endpoint: Int = 0) async -> Int? {
    for (index, server) in servers.enumerated() where !still.contains(index) {
      if await server.couriers[endpoint].isDelivering { return index }
    }
    return nil
  }

  func count(_ sql: String) async throws -> Int64 {
    try #require(try await servers[0].storage.read([PostgreSQLStatement(sql)])[0].first).int(0)
  }
}
#endif
