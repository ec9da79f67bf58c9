#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging

/// What the status of a cloud's banks is read from, in a transaction of PostgreSQL.
struct PostgreSQLBankTables: BankTables {
  let transaction: PostgreSQLTransaction

  func value(of number: CloudNumber) throws -> UInt64 {
    try transaction.run("SELECT value FROM number WHERE name = $1", [.bytes(Data(number.rawValue.utf8))]).first?
      .unsigned(0) ?? 0
  }

  func bankPage(after container: ContainerID?, epoch: UInt64) throws -> BankPage {
    let statement = BankPage.statement(after: container)
    return try BankPage(try transaction.run(statement.sql, statement.values), epoch: epoch)
  }

  func bank(of player: PlayerID) throws -> (container: Data, bank: Data?)? {
    try transaction.run(
      """
      SELECT device.container, container.bank FROM device LEFT JOIN container ON container.id = device.container
      WHERE device.player = $1 LIMIT 1
      """, [.bytes(player.bytes)]
    ).first.map { (try $0.bytes(0), try $0.optionalBytes(1)) }
  }

  func owner(of container: ContainerID) throws -> PlayerID? {
    try transaction.run("SELECT player FROM device WHERE container = $1 LIMIT 1", [.bytes(container.bytes)]).first
      .map { try $0.identifier(0) }
  }

  func device(_ device: DeviceID, of container: ContainerID) throws -> (name: Data?, seen: Int64)? {
    try transaction.run(
      "SELECT name, seen FROM device WHERE container = $1 AND id = $2",
      [.bytes(container.bytes), .bytes(device.bytes)]
    ).first.map { (try $0.optionalBytes(0), try $0.int(1)) }
  }

  func shortfalls(of containers: [ContainerID]) throws -> [(container: ContainerID, order: NumberedOrder)] {
    try transaction.run(
      "SELECT container, number, details FROM bank_order WHERE container = ANY($1) AND kind = $2",
      [.list(containers.map(\.bytes)), .bytes(Data(BankOrder.Kind.shortfall.rawValue.utf8))]
    ).map {
      (try $0.identifier(0), NumberedOrder(number: try $0.unsigned(1), order: try decoded(BankOrder.self, $0.bytes(2))))
    }
  }
}

extension BankPage {
  static func statement(after container: ContainerID?) -> PostgreSQLStatement {
    // Those without a bank, too: where few players have one, a page mustn't read through all others.
    PostgreSQLStatement(
      "SELECT id, CASE WHEN revision >= 0 THEN bank END FROM container WHERE id > $1 ORDER BY id LIMIT $2",
      [.bytes(container?.bytes ?? Data()), .int(Int64(size))])
  }

  init(_ rows: PostgreSQLRows, epoch: UInt64) throws {
    try self.init(rows.map { (try $0.bytes(0), try $0.optionalBytes(1)) }, epoch: epoch)
  }
}

// What an operator does beside the servers, which may be running.
extension CloudDatabase {
  static func bankStatus(_ address: String, player: PlayerID?) throws -> BankStatus {
    do {
      let connection = try PostgreSQLConnection(PostgreSQLSettings(address))
      try PostgreSQLSchema.requireCurrent(connection)
      try refuseShards(connection)
      return try BankStatus(hasGeneration: false, player: player) { body in
        try PostgreSQLTransaction.run(on: connection) { try body(PostgreSQLBankTables(transaction: $0)) }
      }
    } catch let error as PostgreSQLError {
      throw ServerError.unusableDatabase(error)
    }
  }

  /// Refuses what would look at some of the players only.
  private static func refuseShards(_ connection: PostgreSQLConnection) throws {
    guard try connection.run([ShardBinding.spreading])[0].first == nil else {
      throw ServerError(
        .configuration,
        """
        The players of this cloud are spread over several databases, at whose banks this command can't look yet. \
        keepsake bank restored can be used with the cloud's own database.
        """)
    }
  }

  /// Opens the database for what touches no content, and closes it whatever `body` does.
  ///
  /// - Parameters:
  ///   - mayMigrate: Whether tables of an older version are brought to their newest state. Servers that run may be
  ///     unable to go on then.
  ///   - concernsPlayers: Whether `body` looks at players, and not only at what is of the whole cloud.
  static func with<Result: Sendable>(
    _ address: String, mayMigrate: Bool, concernsPlayers: Bool, logger: Logger,
    _ body: (PostgreSQLStorage) async throws -> Result
  ) async throws -> Result {
    do {
      if !mayMigrate {
        let connection = try PostgreSQLConnection(PostgreSQLSettings(address))
        try PostgreSQLSchema.requireCurrent(connection)
        if concernsPlayers { try refuseShards(connection) }
      }
      let storage = try await PostgreSQLStorage(
        PostgreSQLSettings(address), connections: 2, contents: nil, shards: concernsPlayers ? [] : nil,
        clock: ServerConfiguration.systemClock, logger: logger)
      do {
        let result = try await body(storage)
        try await storage.close()
        return result
      } catch {
        try await storage.close()
        throw error
      }
    } catch let error as PostgreSQLError {
      throw ServerError.unusableDatabase(error)
    }
  }
}
#endif
