#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL

/// Admin keys and the audit log in PostgreSQL, over a connection beside those of the servers.
struct PostgreSQLAdminTables: AdminTables {
  private static let attempts = 40

  private let connection: PostgreSQLConnection

  init(_ settings: PostgreSQLSettings) throws {
    connection = try Self.describing {
      let connection = try PostgreSQLConnection(settings)
      try PostgreSQLSchema.requireCurrent(connection)
      return connection
    }
  }

  func keys() throws -> [AdminKey] {
    try transaction { try $0.run([PostgreSQLTransaction.adminKeys])[0].map(AdminKey.init) }
  }

  func change(_ change: AdminKeyChange, auditing entry: AuditEntry, _ check: ([AdminKey]) throws -> Void) throws {
    try transaction { transaction in
      let name = try transaction.run("SELECT name FROM shard_self WHERE id = 1").first?.text(0)
      guard name == nil || name == ShardBinding.home else {
        throw ServerError(.configuration, "This database is a shard of a cloud: its admin keys are in home.")
      }
      try transaction.append(entry)
      try check(try transaction.run([PostgreSQLTransaction.adminKeys])[0].map(AdminKey.init))
      try transaction.change(change)
    }
  }

  func newestAuditRow() throws -> Int64 { try transaction { try $0.newestAuditRow() } }

  func auditRows(of player: Data?, limit: Int, _ body: (AuditRow) throws -> Void) throws {
    // What was shown can't be shown again.
    try transaction(attempts: 1) { try $0.auditRows(of: player, limit: limit, body) }
  }

  func auditRows(_ body: (AuditRow) throws -> Bool) throws {
    try transaction(attempts: 1) { try $0.auditRows(body) }
  }

  /// Runs `body` as a transaction, again if another one was in its way.
  private func transaction<Result>(
    attempts: Int = attempts, _ body: (PostgreSQLTransaction) throws -> Result
  ) throws -> Result {
    try Self.describing {
      var attempt = 1
      while true {
        do {
          return try PostgreSQLTransaction.run(on: connection, body)
        } catch let error as PostgreSQLError {
          guard attempt < attempts, error.isConflict || error.state == .uniqueViolation else { throw error }
          attempt += 1
          Thread.sleep(forTimeInterval: Double.random(in: 0..<0.1))
        }
      }
    }
  }

  private static func describing<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as PostgreSQLError {
      throw ServerError.unusableDatabase(error)
    }
  }
}

extension ServerError {
  /// How a command fails that uses a database beside its servers.
  static func unusableDatabase(_ error: PostgreSQLError) -> ServerError {
    ServerError(.inputOutput, "The database can't be used.", cause: error)
  }
}
#endif
