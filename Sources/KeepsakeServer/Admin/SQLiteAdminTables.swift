#if Cloud
import Foundation
import GRDB

/// Admin keys and the audit log in the database of a data folder, whose server may be running.
struct SQLiteAdminTables: AdminTables {
  let database: URL

  func keys() throws -> [AdminKey] { try reading { try AdminKey.all(in: $0) } }

  func change(_ change: AdminKeyChange, auditing entry: AuditEntry, _ check: ([AdminKey]) throws -> Void) throws {
    var configuration = Configuration()
    configuration.busyMode = .timeout(10)
    do {
      let queue = try DatabaseQueue(path: database.path, configuration: configuration)
      try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
      try queue.write { db in
        try Schema.requireCurrent(db)
        try check(try AdminKey.all(in: db))
        switch change {
        case .create(let key):
          try db.execute(
            sql: "INSERT INTO adminKey (id, name, digest, scopes, apps, created) VALUES (?, ?, ?, ?, ?, ?)",
            arguments: [key.id, key.name, key.digest, key.scopeText, key.appBytes, key.createdMilliseconds])
        case .revoke(let key, let now):
          try db.execute(
            sql: "UPDATE adminKey SET revoked = ? WHERE id = ? AND revoked IS NULL", arguments: [now, key.id])
        }
        try entry.append(in: db)
      }
      try queue.close()
    } catch {
      throw Schema.failure(error, opening: database)
    }
  }

  // MARK: The audit log

  func newestAuditRow() throws -> Int64 {
    try reading { Int64(clamping: try CloudNumber.auditRows.value(in: $0)) }
  }

  func auditRows(of player: Data?, limit: Int, _ body: (AuditRow) throws -> Void) throws {
    try reading { db in
      let rows = try Row.fetchCursor(
        db, sql: "\(Self.select) WHERE ?1 IS NULL OR player = ?1 ORDER BY number DESC LIMIT ?2",
        arguments: [player, limit])
      while let row = try rows.next() { try body(AuditRow(row)) }
    }
  }

  func auditRows(_ body: (AuditRow) throws -> Bool) throws {
    try reading { db in
      let rows = try Row.fetchCursor(db, sql: "\(Self.select) ORDER BY number")
      while let row = try rows.next(), try body(AuditRow(row)) {}
    }
  }

  private static let select =
    "SELECT number, at, key, name, act, request, details, result, player, subject, chain FROM audit"

  private func reading<Result>(_ body: (Database) throws -> Result) throws -> Result {
    var configuration = Configuration()
    configuration.readonly = true
    configuration.busyMode = .timeout(5)
    do {
      return try DatabaseQueue(path: database.path, configuration: configuration).read { db in
        try Schema.requireCurrent(db)
        return try body(db)
      }
    } catch {
      throw Schema.failure(error, opening: database)
    }
  }
}

extension AuditRow {
  fileprivate init(_ row: Row) throws {
    self.init(
      number: try row.decode(atIndex: 0), atMilliseconds: try row.decode(atIndex: 1), key: try row.decode(atIndex: 2),
      name: try row.decode(atIndex: 3), act: try row.decode(atIndex: 4), request: try row.decode(atIndex: 5),
      details: try row.decode(atIndex: 6), result: try row.decode(atIndex: 7), player: try row.decode(atIndex: 8),
      subject: try row.decode(atIndex: 9), chain: try row.decode(atIndex: 10))
  }
}
#endif
