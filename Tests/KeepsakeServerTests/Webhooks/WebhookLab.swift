#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import Logging
import TestSupport
import Testing

// GRDB has a type of this name, too.
import struct KeepsakeReplication.Cursor

@testable import KeepsakeServer

#if PostgreSQL
import KeepsakePostgreSQL
#endif

/// A cloud, players who save, and a backend, all by a clock that only the test moves.
struct WebhookLab {
  /// What the backend does with one request.
  struct Reply {
    /// Nil if it never answers: the request ends after the server's limit.
    var status: Int? = 200
    var milliseconds: Int64 = 20
    /// Whether it has taken the event, whatever it answers.
    var isTaken = true
  }
  /// An event as the backend has got it.
  struct Received {
    var id: String
    var kind: String
    var player: String?
    var data: [String: Any]
    var atMilliseconds: Int64
  }
  typealias Backend = (_ now: Int64, _ event: Received) -> Reply

  private let store: TestStorage
  private let schema: String
  private let folder: URL
  let time: Shared<Int64>
  /// By how much the server's clock is ahead of the time that passes.
  let step = Shared<Int64>(0)
  private(set) var storage: any AdminStorage
  private(set) var courier: WebhookCourier
  let endpoint: WebhookEndpoint
  let limits: WebhookLimits
  let log = RecordedLog()
  private(set) var received: [Received] = []
  private(set) var mostAtOnce = 0
  private var underWay: [(at: Int64, delivery: WebhookDelivery, status: Int?)] = []
  private var saves: [ContainerID: UInt64] = [:]
  /// The saves of each player, in their order.
  private(set) var saved: [String: [String]] = [:]

  static let start: Int64 = 1_735_689_600_000
  static let minute: Int64 = 60_000
  static let hour: Int64 = 3_600_000

  /// Runs `body` with a lab, whose storage it closes. There is no other server, so that what is only for several is
  /// seldom done.
  static func with(
    _ store: TestStorage, kinds: Set<WebhookKind> = Set(WebhookKind.allCases),
    limits: WebhookLimits = WebhookLimits(), _ body: (WebhookLab) async throws -> Void
  ) async throws {
    var limits = limits
    (limits.leaseMilliseconds, limits.claimMilliseconds) = (10 * minute, 3 * minute)
    (limits.lookMilliseconds, limits.handOverMilliseconds) = (hour, .max)
    try await TemporaryFolder.with { [limits] folder in
      let schema = "s\(UUID().uuidString.lowercased().filter { $0 != "-" })"
      try await body(try await WebhookLab(store, schema, in: folder, kinds: kinds, limits: limits))
      #if PostgreSQL
      if store == .postgreSQL { try TestDatabase.drop(schema: schema) }
      #endif
    }
  }

  private init(
    _ store: TestStorage, _ schema: String, in folder: URL, kinds: Set<WebhookKind>, limits: WebhookLimits
  ) async throws {
    (self.store, self.schema, self.folder, self.limits) = (store, schema, folder, limits)
    endpoint = try Self.endpoint("shop", in: folder, kinds: kinds)
    let time = Shared(Self.start)
    self.time = time
    let clock = { @Sendable [step] in time.value + step.value }
    storage = try await store.open(in: folder, schema: schema, clock: clock, logger: log.logger, webhooks: [endpoint])
    courier = try Self.courier(endpoint, storage, limits, time, step, log.logger)
  }

  /// An endpoint with a file of secrets.
  static func endpoint(
    _ name: String, in folder: URL, kinds: Set<WebhookKind> = Set(WebhookKind.allCases),
    url: String = "http://127.0.0.1:9/hook"
  ) throws -> WebhookEndpoint {
    let file = folder.appendingPathComponent("\(name).secrets")
    try PrivateFile.write(Data("correct-horse-battery-staple\n".utf8), to: file)
    return WebhookEndpoint(name: name, url: try #require(URL(string: url)), secrets: file, kinds: kinds)
  }

  private static func courier(
    _ endpoint: WebhookEndpoint, _ storage: any AdminStorage, _ limits: WebhookLimits, _ time: Shared<Int64>,
    _ step: Shared<Int64>, _ logger: Logger
  ) throws -> WebhookCourier {
    try WebhookCourier(
      endpoint, storage: storage, limits: limits, metrics: ServerMetrics(PrometheusRegistry()), logger: logger,
      clock: { time.value + step.value }, steady: { time.value }, random: { 0.5 })
  }

  /// Kills the server, and starts it again: what was on its way is lost, and what only its memory had.
  mutating func restart() async throws {
    underWay = []
    try await storage.close()
    let clock = { @Sendable [time, step] in time.value + step.value }
    storage = try await store.open(in: folder, schema: schema, clock: clock, logger: log.logger, webhooks: [endpoint])
    courier = try Self.courier(endpoint, storage, limits, time, step, log.logger)
    guard storage.sharesWebhooks else { return }
    // Nobody knows that the one before was killed, and not only silent.
    #expect(await courier.pass().isEmpty)
    time.value += limits.leaseMilliseconds
  }

  /// Opens the database as a server does that tells nobody.
  func openQuietly() async throws -> any AdminStorage {
    try await store.open(in: folder, schema: schema, clock: { 0 }, logger: log.logger, webhooks: [])
  }

  // MARK: Players

  static func player(_ number: UInt64) -> DeviceIdentity {
    DeviceIdentity(
      device: DeviceID(high: 1, low: number), player: PlayerID(high: 2, low: number),
      container: ContainerID(high: 3, low: number), app: AppID(ofKey: "app"))
  }

  func register(_ number: UInt64) async throws {
    try await storage.recordDevice(
      DeviceRecord(
        identity: Self.player(number), name: "a phone", createdMilliseconds: time.value,
        seenMilliseconds: time.value))
  }

  /// Saves, in place of these versions; nil for that of the save before.
  @discardableResult
  mutating func save(_ number: UInt64, slot: String = "main", covers: [VersionID]? = nil) async throws -> VersionID {
    let identity = Self.player(number)
    let count = saves[identity.container, default: 0] + 1
    saves[identity.container] = count
    let id = VersionID(high: number, low: count)
    let covers = covers ?? (count > 1 ? [VersionID(high: number, low: count - 1)] : [])
    let record = VersionRecord(
      id: id, slot: slot, covers: covers, contents: [], length: 5, savedAtMilliseconds: time.value,
      writer: WriterID(3), provisional: false)
    try await storage.decide(on: identity.container) { container throws in
      let seq = container.position().seq + 1
      container.advance(to: Cursor(epoch: 1, seq: seq, mark: 10 + seq))
      for covered in covers { container.markCovered(covered) }
      try container.putVersion(SequencedVersion(record: record, seq: seq))
    }
    saved["\(identity.player)", default: []].append("\(id)")
    await courier.notice()
    return id
  }

  // MARK: The backend

  /// Lets the time pass.
  mutating func play(until end: Int64, _ backend: Backend = { _, _ in Reply() }) async throws {
    for _ in 0..<1_000_000 {
      for delivery in await courier.pass() {
        let event = try Self.event(delivery, at: time.value)
        let reply = backend(time.value, event)
        if reply.isTaken { received.append(event) }
        let milliseconds = reply.status == nil ? Int64(limits.answerSeconds) * 1_000 : reply.milliseconds
        underWay.append((time.value + milliseconds, delivery, reply.status))
      }
      mostAtOnce = max(mostAtOnce, underWay.count)
      let players = underWay.map(\.delivery.pick.lane)
      #expect(Set(players).count == players.count, "two events of one player are on their way")
      let next = min(await courier.wakeMilliseconds(), underWay.map(\.at).min() ?? .max)
      guard next < end else {
        time.value = end
        return
      }
      time.value = max(next, time.value)
      let answered = underWay.filter { $0.at <= time.value }
      underWay.removeAll { $0.at <= time.value }
      for (_, delivery, status) in answered {
        if let status {
          await courier.finish(delivery, status: status)
        } else {
          await courier.finish(delivery, .failed("no answer"))
        }
      }
    }
    throw NeverHappened("the end of the time")
  }

  mutating func play(for milliseconds: Int64, _ backend: Backend = { _, _ in Reply() }) async throws {
    try await play(until: time.value + milliseconds, backend)
  }

  private static func event(_ delivery: WebhookDelivery, at now: Int64) throws -> Received {
    let body = try #require(try JSONSerialization.jsonObject(with: delivery.request.body) as? [String: Any])
    let id = try #require(body["id"] as? String)
    #expect(delivery.request.headers["Keepsake-Webhook-Id"] == id)
    return Received(
      id: id, kind: try #require(body["kind"] as? String), player: body["player"] as? String,
      data: try #require(body["data"] as? [String: Any]), atMilliseconds: now)
  }

  /// The versions that the backend has got of each player, without what came again, in their order.
  var versions: [String: [String]] {
    var (versions, seen): ([String: [String]], Set<String>) = ([:], [])
    for event in received where event.kind == "saveArrived" && seen.insert(event.id).inserted {
      versions[event.player ?? "none", default: []].append(event.data["version"] as? String ?? "none")
    }
    return versions
  }

  // MARK: The database

  /// How many transactions have written; nil if nobody counts them.
  var commits: Int? { (storage as? SQLiteCloudStorage)?.committer.groups }

  /// Changes the database as somebody could who has it.
  func execute(sqlite: String, postgreSQL: String) async throws {
    if let storage = storage as? SQLiteCloudStorage { try await storage.pool.write { try $0.execute(sql: sqlite) } }
    #if PostgreSQL
    if let storage = storage as? PostgreSQLStorage { _ = try await storage.run([PostgreSQLStatement(postgreSQL)]) }
    #endif
  }

  func rows(_ condition: String = "true") async throws -> [WebhookRow] { try await rows(condition, in: storage) }

  func rows(_ condition: String = "true", in storage: any AdminStorage) async throws -> [WebhookRow] {
    #if PostgreSQL
    if let storage = storage as? PostgreSQLStorage {
      for name in try await storage.webhookEndpoints() {
        while try await storage.numberWebhooks(of: name, limit: 1_000) == 1_000 {}
      }
      let rows = try await storage.read([
        PostgreSQLStatement("SELECT \(WebhookRow.names) FROM webhook_event WHERE \(condition) ORDER BY number")
      ])
      return try rows[0].map { try WebhookRow($0) }
    }
    #endif
    let storage = try #require(storage as? SQLiteCloudStorage)
    return try await storage.pool.read { db in
      try Row.fetchAll(
        db, sql: "SELECT \(WebhookRow.columns) FROM webhookEvent WHERE \(condition) ORDER BY id"
      ).map { try WebhookRow($0) }
    }
  }
}
#endif
