#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

/// How many events wait, and dead letters.
extension PostgreSQLStorage {
  func boundWebhooks(
    of endpoint: String, _ counts: WebhookCounts, _ limits: WebhookLimits, now: Int64, isAgeing: Bool
  ) async throws -> (buried: Int, dropped: Int, hasMore: Bool) {
    let bounds = Bounds(limits, now: now, isAgeing: isAgeing)
    // Most of the time, nothing has to be written.
    guard bounds.areExceeded(by: counts) else { return (0, 0, false) }
    // Only what has a number has an age among all.
    while try await numberWebhooks(of: endpoint, limit: limits.rowsAtOnce) >= limits.rowsAtOnce {
      try Task.checkCancellation()
    }
    return try await transaction { transaction in
      let name = PostgreSQLValue.bytes(Data(endpoint.utf8))
      // Another server may have moved some meanwhile.
      let counts = try WebhookCounts(try transaction.run(Self.counting(endpoint)))
      let buried = try transaction.bury(name, counts, bounds)
      let dropped = try transaction.drop(name, dead: counts.dead + buried, bounds)
      return (buried, dropped, max(buried, dropped) >= limits.rowsAtOnce)
    }
  }

  fileprivate struct Bounds: Sendable {
    let limits: WebhookLimits
    let now: Int64
    /// What waits since before this is too old, and what is a dead letter since before that.
    let (old, oldDead): (Int64, Int64)

    init(_ limits: WebhookLimits, now: Int64, isAgeing: Bool) {
      (self.limits, self.now) = (limits, now)
      old = isAgeing ? now.addingClamped(-limits.waitingMilliseconds) : .min
      oldDead = isAgeing ? now.addingClamped(-limits.deadMilliseconds) : .min
    }

    func isOld(_ counts: WebhookCounts) -> Bool { counts.oldestMilliseconds.map { $0 < old } ?? false }

    func areExceeded(by counts: WebhookCounts) -> Bool {
      counts.waiting > limits.waiting || isOld(counts) || counts.dead > limits.dead
        || counts.oldestDeadMilliseconds.map { $0 < oldDead } ?? false
    }
  }

  // MARK: Endpoints that aren't configured

  func webhookEndpoints() async throws -> Set<String> {
    var names = Set(try await webhookClaims().keys)
    // Whatever has a number has a row of its endpoint.
    var last: String? = ""
    while let name = last {
      let next = PostgreSQLStatement(
        "SELECT endpoint FROM webhook_event WHERE number IS NULL AND endpoint > $1 ORDER BY endpoint LIMIT 1",
        [.bytes(Data(name.utf8))])
      last = try await read([next])[0].first?.text(0)
      if let last { names.insert(last) }
    }
    return names
  }

  func retireWebhooks(of endpoint: String, _ limits: WebhookLimits, now: Int64) async throws -> Bool {
    while try await numberWebhooks(of: endpoint, limit: limits.rowsAtOnce) >= limits.rowsAtOnce {
      try Task.checkCancellation()
    }
    let statement = PostgreSQLTransaction.burying(
      .bytes(Data(endpoint.utf8)), "no such webhook", limit: limits.rowsAtOnce, now: now)
    return try await run([statement])[0].count >= limits.rowsAtOnce
  }

  // MARK: Dead letters

  func deadWebhooks(of endpoint: String, after number: Int64, limit: Int) async throws -> [WebhookRow] {
    let statement = PostgreSQLStatement(
      """
      SELECT \(WebhookRow.names) FROM webhook_event WHERE \(Self.isDead) AND number > $2 ORDER BY number LIMIT $3
      """, [.bytes(Data(endpoint.utf8)), .int(number), .int(Int64(limit))])
    return try await read([statement])[0].map { try WebhookRow($0) }
  }

  func retryWebhooks(
    of endpoint: String, _ ids: [OperationID]?, limit: Int, auditing entry: AuditEntry?
  ) async throws -> Int {
    let now = clock()
    // What has no number yet waits, too: dead letters come after it.
    while try await numberWebhooks(of: endpoint, limit: limit) >= limit { try Task.checkCancellation() }
    let count = try await transaction { transaction in
      if let entry { try transaction.append(entry) }
      return try transaction.retry(endpoint, ids, limit: limit, now: now)
    }
    outbox?.wake()
    return count
  }
}

extension PostgreSQLTransaction {
  /// Has events become dead letters, the oldest first.
  ///
  /// - Parameters:
  ///   - lane: Whose; nil for all.
  ///   - old: Only those among them that wait since before this.
  static func burying(
    _ endpoint: PostgreSQLValue, _ reason: String, of lane: Data? = nil, limit: Int, before old: Int64 = .max,
    now: Int64
  ) -> PostgreSQLStatement {
    PostgreSQLStatement(
      """
      UPDATE webhook_event SET dead = $2, reason = $3 WHERE \(PostgreSQLStorage.isWaiting) AND number IN (
        SELECT number FROM (
          SELECT number, queued FROM webhook_event
          WHERE \(PostgreSQLStorage.isWaiting)\(lane == nil ? "" : " AND lane = $6") ORDER BY number LIMIT $4
        ) AS oldest WHERE queued < $5
      )
      """,
      [endpoint, .int(now), .bytes(Data(reason.utf8)), .int(Int64(limit)), .int(old)]
        + (lane.map { [.bytes($0)] } ?? []))
  }

  fileprivate func bury(
    _ endpoint: PostgreSQLValue, _ counts: WebhookCounts, _ bounds: PostgreSQLStorage.Bounds
  ) throws -> Int {
    let (limits, now) = (bounds.limits, bounds.now)
    let most = min(max(0, counts.waiting - limits.waiting), limits.rowsAtOnce)
    var buried = 0
    if most > 0 {
      // The lanes with the most events, if that is more than a sixteenth, with by how many.
      let largest = try run(
        """
        SELECT lane, count(*) - $2 FROM webhook_event WHERE \(PostgreSQLStorage.isWaiting)
        GROUP BY lane HAVING count(*) > $2 ORDER BY 2 DESC LIMIT 16
        """, [endpoint, .int(Int64(limits.waiting / 16))])
      for row in largest where buried < most {
        let limit = min(Int(clamping: try row.int(1)), most - buried)
        buried += try run([
          Self.burying(endpoint, "too many wait", of: row.bytes(0), limit: limit, now: now)
        ])[0].count
      }
    }
    if buried < most {
      buried += try run([Self.burying(endpoint, "too many wait", limit: most - buried, now: now)])[0].count
    }
    if bounds.isOld(counts) {
      // Numbers rise with time, so that the old ones are the first ones.
      let old = Self.burying(endpoint, "too old", limit: limits.rowsAtOnce, before: bounds.old, now: now)
      buried += try run([old])[0].count
    }
    return buried
  }

  fileprivate func drop(
    _ endpoint: PostgreSQLValue, dead: Int, _ bounds: PostgreSQLStorage.Bounds
  ) throws -> Int {
    let limit = PostgreSQLValue.int(Int64(bounds.limits.rowsAtOnce))
    let beyond = PostgreSQLValue.int(Int64(min(max(0, dead - bounds.limits.dead), bounds.limits.rowsAtOnce)))
    let isDead = PostgreSQLStorage.isDead
    let dropped = try run([
      PostgreSQLStatement(
        """
        DELETE FROM webhook_event WHERE \(isDead) AND number IN (
          SELECT number FROM webhook_event WHERE \(isDead) ORDER BY number LIMIT $2)
        """, [endpoint, beyond]),
      PostgreSQLStatement(
        """
        DELETE FROM webhook_event WHERE \(isDead) AND number IN (
          SELECT number FROM webhook_event WHERE \(isDead) AND dead < $2 LIMIT $3)
        """, [endpoint, .int(bounds.oldDead), limit]),
    ]).reduce(0) { $0 + $1.count }
    if dropped > 0 {
      try run(
        "UPDATE webhook_endpoint SET dropped = dropped + $2 WHERE name = $1", [endpoint, .int(Int64(dropped))])
    }
    return dropped
  }

  /// Has dead letters wait again, under numbers after all that wait of their players.
  fileprivate func retry(_ endpoint: String, _ ids: [OperationID]?, limit: Int, now: Int64) throws -> Int {
    let name = PostgreSQLValue.bytes(Data(endpoint.utf8))
    let found = try run(
      """
      SELECT number, lane FROM webhook_event
      WHERE \(PostgreSQLStorage.isDead) AND ($2::bytea[] IS NULL OR id = ANY($2)) ORDER BY number LIMIT $3
      """, [name, .list(ids.map { $0.map(\.bytes) }), .int(Int64(limit))])
    let lanes = Set(try found.map { try $0.bytes(1) })
    let fresh = try run(
      """
      SELECT lane, revision, item FROM webhook_event
      WHERE endpoint = $1 AND number IS NULL AND lane = ANY($2) ORDER BY lane, revision, item
      """, [name, .list(Array(lanes))])
    let count = fresh.rows.count + found.rows.count
    // Also if there are none: the holder sends what waits at once.
    let numbered = try run([
      PostgreSQLStorage.addingEndpoint(endpoint),
      PostgreSQLStatement(
        "UPDATE webhook_endpoint SET numbered = numbered + $2, retries = retries + 1 WHERE name = $1 RETURNING numbered",
        [name, .int(Int64(count))]),
    ])[1].first?.int(0)
    guard let numbered else { throw ServerError(.damaged, "The row of the webhook \(endpoint) is missing.") }
    var number = numbered.addingClamped(-Int64(count))
    var statements: [PostgreSQLStatement] = []
    for row in fresh {
      number += 1
      statements.append(PostgreSQLStorage.numbering(try PostgreSQLStorage.Place(row), of: name, number))
    }
    for row in found {
      number += 1
      statements.append(
        PostgreSQLStatement(
          """
          UPDATE webhook_event SET number = $3, dead = NULL, reason = NULL, queued = $4
          WHERE \(PostgreSQLStorage.isDead) AND number = $2
          """, [name, .int(try row.int(0)), .int(number), .int(now)]))
    }
    if !statements.isEmpty { _ = try run(statements) }
    return found.rows.count
  }
}
#endif
