#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import Testing

@testable import KeepsakeServer

/// A cloud whose players are spread over the databases `home` and `two`: each a schema of its own.
final class ShardLab {
  let addresses: [String: String]
  private let detailedDecisions: Int64
  private let clock: @Sendable () -> Int64
  private var servers: [ShardedStorage] = []

  private init(
    _ addresses: [String: String], detailedDecisions: Int64, clock: @escaping @Sendable () -> Int64
  ) {
    (self.addresses, self.detailedDecisions, self.clock) = (addresses, detailedDecisions, clock)
  }

  static func with<Result>(
    detailedDecisions: Int64 = ServerLimits.detailedDecisions, clock: @escaping @Sendable () -> Int64 = { 5 },
    _ body: (ShardLab) async throws -> Result
  ) async throws -> Result {
    let name = "s\(UUID().uuidString.lowercased().filter { $0 != "-" })"
    let schemas = ["home": name, "two": name + "b"]
    let lab = ShardLab(
      try schemas.mapValues { try TestDatabase.address(ofSchema: $0) }, detailedDecisions: detailedDecisions,
      clock: clock)
    let result: Result
    do {
      result = try await body(lab)
    } catch {
      try await lab.close()
      throw error
    }
    try await lab.close()
    for schema in schemas.values { try TestDatabase.drop(schema: schema) }
    return result
  }

  private func close() async throws {
    for server in servers { try await server.close() }
    servers = []
  }

  /// Opens the databases as a server does. They are closed with the lab.
  ///
  /// - Parameter requestPause: For how long requests don't move a player again.
  func server(requestPause: Duration = RequestMoves.pause) async throws -> ShardedStorage {
    let server = try await open(["two"], requestPause: requestPause)
    servers.append(server)
    return server
  }

  /// - Parameters:
  ///   - names: Of the shards that the server knows, each at the address of its name.
  ///   - others: Those that are at the address of another name, or at another address.
  func open(
    _ names: [String], at others: [String: String] = [:], requestPause: Duration = RequestMoves.pause
  ) async throws -> ShardedStorage {
    let (detailedDecisions, clock) = (detailedDecisions, clock)
    let known = Set(names + [ShardBinding.home])
    return try await ShardedStorage.open(names, firstWait: .zero, requestPause: requestPause) { name, binding in
      let other = others[name].map { self.addresses[$0] ?? $0 }
      var settings = TestDatabase.settings(try #require(other ?? self.addresses[name]))
      settings.standIn = TestDatabase.standIn
      return try await PostgreSQLStorage(
        settings, connections: 2, detailedDecisions: detailedDecisions, binding: binding, shards: known, clock: clock)
    }
  }

  func connect(_ name: String) throws -> PostgreSQLConnection {
    try PostgreSQLConnection(TestDatabase.settings(#require(addresses[name])))
  }

  @discardableResult
  func run(_ sql: String, _ values: [PostgreSQLValue] = [], in name: String) throws -> PostgreSQLRows {
    try connect(name).run([PostgreSQLStatement(sql, values)])[0]
  }

  /// Makes every move look as if nobody had gone on with it.
  func abandonMoves() throws { try run("UPDATE placement SET since = 0", in: "home") }

  /// Returns the tables with rows that name a container anywhere, by database.
  func traces(of container: ContainerID) throws -> [String: Set<String>] {
    var found: [String: Set<String>] = [:]
    for name in addresses.keys {
      let columns = try run(
        """
        SELECT table_name::text::bytea, column_name::text::bytea FROM information_schema.columns
        WHERE table_schema = current_schema() AND data_type = 'bytea'
        """, in: name)
      for row in columns {
        let (table, column) = (try row.text(0), try row.text(1))
        let rows = try run(
          "SELECT 1::bigint FROM \(table) WHERE \(column) = $1 LIMIT 1", [.bytes(container.bytes)], in: name)
        if rows.first != nil { found[name, default: []].insert(table) }
      }
    }
    return found
  }
}

/// What tests with several databases have in common.
protocol ShardScenes {}

extension ShardScenes {
  static var app: AppID { AppID(ofKey: "a game") }

  func device(_ number: UInt64, _ app: AppID = Self.app) -> DeviceIdentity {
    DeviceIdentity(
      device: DeviceID(high: 2, low: number), player: PlayerID(high: 3, low: number),
      container: ContainerID(high: 7, low: number), app: app)
  }

  /// Records a device of a player.
  ///
  /// - Parameter shard: Where the player lives from then on; nil for anywhere.
  func record(_ device: DeviceIdentity, in storage: ShardedStorage, at shard: String? = nil) async throws {
    try await storage.recordDevice(
      DeviceRecord(identity: device, name: "A", createdMilliseconds: 5, seenMilliseconds: 5))
    if let shard { _ = try await storage.mover.move(familyOf: device.container, to: shard) }
  }

  /// Has a player paid a gem for a receipt.
  ///
  /// - Returns: Whether it was paid.
  func pay(_ number: UInt64, to container: ContainerID, by server: ShardedStorage) async throws -> Bool {
    let receipt = Receipt(
      app: Data("app".utf8), hash: ContentHash(of: Data("\(number)".utf8)),
      operation: OperationID(high: number, low: container.low))
    var reads = ReadSet()
    (reads.bank.receipt, reads.bank.state) = (receipt, true)
    return try await server.decide(on: container, reading: reads) { storage in
      guard try storage.takeReceipt(receipt, for: container) else { return false }
      var bank = try storage.bank()
      bank.pool["gems", default: 0] += 1
      storage.setBank(bank)
      return true
    }
  }

  func identity(_ subject: String, proof: UInt64) -> VerifiedIdentity {
    VerifiedIdentity(
      id: VerifiedIdentity.id(of: subject, at: "", named: "login"), issuer: "login",
      uses: [.init(key: ContentHash(of: Data("proof \(proof)".utf8)), expiresMilliseconds: 1_000)])
  }
}

extension DecidingStorage {
  /// How many gems a container has (`addGem`).
  func gems(of container: ContainerID) async throws -> Int64 {
    try await look(at: container) { try $0.bank().pool["gems"] ?? 0 }
  }
}
#endif
