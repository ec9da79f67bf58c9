#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

// The audit log, and the keys of those who are in it.
extension PostgreSQLTransaction {
  private static let rowCount = PostgreSQLValue.bytes(Data(CloudNumber.auditRows.rawValue.utf8))
  private static let select =
    "SELECT number, at, key, name, act, request, details, result, player, subject, chain FROM audit"
  private static let pageRows: Int64 = 1_000

  /// Appends a row to the audit log. Each is linked to the one before it, so that of two transactions that append at a
  /// time the second waits, and is begun anew when the first is committed: it has to see that one's row.
  ///
  /// Call it first, before anything else is read: a long act would otherwise be begun anew for each short one that was
  /// done meanwhile.
  func append(_ entry: AuditEntry) throws {
    let answers = try run([
      // If the last rows were cut off, the next one doesn't take their place: the gap stays, and is found.
      PostgreSQLStatement(
        """
        INSERT INTO number (name, value) SELECT $1, 1 + coalesce((SELECT max(number) FROM audit), 0)
        ON CONFLICT (name) DO UPDATE SET value = greatest(number.value + 1, excluded.value) RETURNING value
        """, [Self.rowCount]),
      PostgreSQLStatement("SELECT chain FROM audit ORDER BY number DESC LIMIT 1"),
    ])
    guard let number = try answers[0].first?.int(0) else {
      throw ServerError(.damaged, "The audit log's rows can't be counted.")
    }
    let row = try AuditRow(entry, number: number, after: try answers[1].first?.bytes(0) ?? Data())
    let texts = [row.key, row.name, row.act, row.request, row.details, row.result]
    try run(
      """
      INSERT INTO audit (number, at, key, name, act, request, details, result, player, subject, chain)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
      """,
      [.int(row.number), .int(row.atMilliseconds)] + texts.map { .bytes(Data($0.utf8)) }
        + [.bytes(row.player), .bytes(row.subject), .bytes(row.chain)])
  }

  /// Does a commit together with its row of the audit log.
  ///
  /// - Throws: `PostgreSQLCommit.Refusal` if the commit itself was refused: it isn't begun anew then, since it rests on
  ///   what was loaded before.
  func run(_ commit: PostgreSQLCommit, auditing entry: AuditEntry) throws -> [PostgreSQLRows] {
    try append(entry)
    do {
      return try run(commit.statements)
    } catch {
      guard error.state != nil else { throw error }
      throw PostgreSQLCommit.Refusal(error: error)
    }
  }

  // MARK: Reading it

  func newestAuditRow() throws -> Int64 {
    try run("SELECT value FROM number WHERE name = $1", [Self.rowCount]).first?.int(0) ?? 0
  }

  /// Calls `body` with the newest rows, the newest first.
  func auditRows(of player: Data?, limit: Int, _ body: (AuditRow) throws -> Void) throws {
    var (before, left) = (Int64.max, Int64(limit))
    while left > 0 {
      let count = min(left, Self.pageRows)
      let page = try run(
        "\(Self.select) WHERE number < $1\(player == nil ? "" : " AND player = $3") ORDER BY number DESC LIMIT $2",
        [.int(before), .int(count)] + (player.map { [.bytes($0)] } ?? []))
      for row in page {
        before = try row.int(0)
        try body(AuditRow(row))
      }
      left = page.rows.count < count ? 0 : left - count
    }
  }

  /// Calls `body` with all rows, the oldest first, until it returns false.
  func auditRows(_ body: (AuditRow) throws -> Bool) throws {
    var (after, isOver): (Int64?, Bool) = (nil, false)
    while !isOver {
      let page = try run(
        "\(Self.select) WHERE $1::bigint IS NULL OR number > $1::bigint ORDER BY number LIMIT $2",
        [.int(after), .int(Self.pageRows)])
      for row in page {
        after = try row.int(0)
        guard try body(AuditRow(row)) else { return }
      }
      isOver = page.rows.count < Self.pageRows
    }
  }

  // MARK: Keys

  static let adminKeys = PostgreSQLStatement(
    "SELECT id, name, scopes, apps, created, revoked, digest FROM admin_key ORDER BY created, id")

  func change(_ change: AdminKeyChange) throws {
    switch change {
    case .create(let key):
      try run(
        "INSERT INTO admin_key (id, name, digest, scopes, apps, created) VALUES ($1, $2, $3, $4, $5, $6)",
        [
          .bytes(Data(key.id.utf8)), .bytes(Data(key.name.utf8)), .bytes(key.digest), .bytes(Data(key.scopeText.utf8)),
          .bytes(key.appBytes), .int(key.createdMilliseconds),
        ])
    case .revoke(let key, let now):
      try run(
        "UPDATE admin_key SET revoked = $2 WHERE id = $1 AND revoked IS NULL", [.bytes(Data(key.id.utf8)), .int(now)])
    }
  }
}

extension PostgreSQLCommit {
  /// How the database has refused the statements of a commit.
  struct Refusal: Error {
    var error: PostgreSQLError
  }
}

extension AdminKey {
  init(_ row: PostgreSQLRow) throws {
    self.init(
      id: try row.text(0), name: try row.text(1), scopes: try row.text(2), apps: try row.bytes(3),
      created: try row.int(4), revoked: try row.optionalInt(5), digest: try row.bytes(6))
  }
}

extension AuditRow {
  fileprivate init(_ row: PostgreSQLRow) throws {
    self.init(
      number: try row.int(0), atMilliseconds: try row.int(1), key: try row.text(2), name: try row.text(3),
      act: try row.text(4), request: try row.text(5), details: try row.text(6), result: try row.text(7),
      player: try row.optionalBytes(8), subject: try row.optionalBytes(9), chain: try row.bytes(10))
  }
}
#endif
