#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import Synchronization

/// What a backend is told, kept until it has it, for several servers.
extension PostgreSQLStorage: WebhookStorage {
  var sharesWebhooks: Bool { true }

  /// What says that an event is in the index of those that wait.
  static let isWaiting = "endpoint = $1 AND number IS NOT NULL AND dead IS NULL"
  static let isDead = "endpoint = $1 AND dead IS NOT NULL"

  func webhookEvents(
    of endpoint: String, after number: Int64, limit: Int, refills: [Data: Int64]
  ) async throws -> (found: [WebhookQueue.Pick], next: [Data: Int64?]) {
    if limit > 0 { _ = try await numberWebhooks(of: endpoint, limit: limit) }
    let name = PostgreSQLValue.bytes(Data(endpoint.utf8))
    let lanes = Array(refills)
    // In one transaction, so that all is as of one moment.
    let scan = PostgreSQLStatement(
      "SELECT number, lane FROM webhook_event WHERE \(Self.isWaiting) AND number > $2 ORDER BY number LIMIT $3",
      [name, .int(number), .int(Int64(limit))])
    let answers = try await read(
      [scan]
        + lanes.map { lane, last in
          PostgreSQLStatement(
            "SELECT min(number) FROM webhook_event WHERE \(Self.isWaiting) AND lane = $2 AND number > $3",
            [name, .bytes(lane), .int(last)])
        })
    var next: [Data: Int64?] = [:]
    for (index, lane) in lanes.enumerated() {
      next.updateValue(try answers[index + 1].first?.optionalInt(0), forKey: lane.key)
    }
    return (try answers[0].map { WebhookQueue.Pick(id: try $0.int(0), lane: try $0.bytes(1)) }, next)
  }

  /// Gives numbers to events that have none yet, those of each lane in their order: an event that can be seen has all
  /// earlier ones of its lane beside it, since each commit moves the container's revision. Lanes take turns, so that
  /// many events of some hold up none of the others.
  ///
  /// - Returns: How many there were; less than `limit` if that were all.
  func numberWebhooks(of endpoint: String, limit: Int) async throws -> Int {
    let name = PostgreSQLValue.bytes(Data(endpoint.utf8))
    let turn = webhookTurns.withLock { $0[endpoint] ?? Data() }
    func fresh(_ lanes: String) -> PostgreSQLStatement {
      PostgreSQLStatement(
        """
        SELECT lane, revision, item FROM webhook_event
        WHERE endpoint = $1 AND number IS NULL AND lane \(lanes) $2 ORDER BY lane, revision, item LIMIT $3
        """, [name, .bytes(turn), .int(Int64(limit))])
    }
    for attempt in 0..<PostgreSQLPool.attempts {
      let answers = try await read([
        PostgreSQLStatement("SELECT numbered FROM webhook_endpoint WHERE name = $1", [name]), fresh(">"), fresh("<="),
      ])
      let found = Array((answers[1].map(\.self) + answers[2].map(\.self)).prefix(limit))
      guard !found.isEmpty else { return 0 }
      guard let known = try answers[0].first?.int(0) else {
        try await addEndpoint(endpoint)
        continue
      }
      // Fails with a division by zero if another server has given numbers meanwhile.
      var statements = [
        PostgreSQLStatement(
          """
          WITH moved AS (
            UPDATE webhook_endpoint SET numbered = $2 + $3 WHERE name = $1 AND numbered = $2 RETURNING 1
          ) SELECT 1 / count(*) FROM moved
          """, [name, .int(known), .int(Int64(found.count))])
      ]
      for (index, row) in found.enumerated() {
        statements.append(
          Self.numbering(try Place(row), of: name, known.addingClamped(Int64(index) + 1)))
      }
      do {
        _ = try await run(statements)
      } catch {
        guard (error as? PostgreSQLError)?.state == .divisionByZero else { throw error }
        try await PostgreSQLPool.pause(after: attempt)
        continue
      }
      let last = try found.count < limit ? nil : found.last?.bytes(0)
      webhookTurns.withLock { $0[endpoint] = last }
      return found.count
    }
    throw PostgreSQLPool.crowded
  }

  /// The key of an event, beside the endpoint.
  struct Place: Sendable {
    var lane: Data
    var revision: Int64
    var item: Int64

    /// - Parameter row: With the lane, the revision and the item first.
    init(_ row: PostgreSQLRow) throws {
      (lane, revision, item) = (try row.bytes(0), try row.int(1), try row.int(2))
    }
  }

  static func numbering(
    _ place: Place, of endpoint: PostgreSQLValue, _ number: Int64
  ) -> PostgreSQLStatement {
    PostgreSQLStatement(
      """
      UPDATE webhook_event SET number = $5
      WHERE lane = $2 AND endpoint = $1 AND revision = $3 AND item = $4 AND number IS NULL
      """, [endpoint, .bytes(place.lane), .int(place.revision), .int(place.item), .int(number)])
  }

  static func addingEndpoint(_ name: String, holder: Data = Data(), beat: Int64 = 0) -> PostgreSQLStatement {
    PostgreSQLStatement(
      """
      INSERT INTO webhook_endpoint (name, holder, beat, retries, numbered, dropped) VALUES ($1, $2, $3, 0, 0, 0)
      ON CONFLICT (name) DO NOTHING
      """, [.bytes(Data(name.utf8)), .bytes(holder), .int(beat)])
  }

  private func addEndpoint(_ name: String) async throws { _ = try await run([Self.addingEndpoint(name)]) }

  func webhookRows(_ numbers: [Int64], of endpoint: String) async throws -> [WebhookRow] {
    let statement = PostgreSQLStatement(
      "SELECT \(WebhookRow.names) FROM webhook_event WHERE \(Self.isWaiting) AND number = ANY($2)",
      [.bytes(Data(endpoint.utf8)), .numbers(numbers)])
    return try await read([statement])[0].map { try WebhookRow($0) }
  }

  func settleWebhooks(
    of endpoint: String, delivered: [Int64], dead: [(number: Int64, reason: String)], now: Int64
  ) async throws {
    let name = PostgreSQLValue.bytes(Data(endpoint.utf8))
    // Some may have become dead letters meanwhile.
    let removing = [Self.isWaiting, Self.isDead].map { condition in
      PostgreSQLStatement(
        "DELETE FROM webhook_event WHERE \(condition) AND number = ANY($2)", [name, .numbers(delivered)])
    }
    let burying = dead.map { number, reason in
      PostgreSQLStatement(
        "UPDATE webhook_event SET dead = $2, reason = $3 WHERE \(Self.isWaiting) AND number = $4",
        [name, .int(now), .bytes(Data(reason.utf8)), .int(number)])
    }
    _ = try await run((delivered.isEmpty ? [] : removing) + burying)
  }

  func webhookCounts(of endpoint: String) async throws -> WebhookCounts {
    try WebhookCounts(try await read(Self.counting(endpoint)))
  }

  /// Statements whose answers make a `WebhookCounts`. Each reads an index alone.
  static func counting(_ endpoint: String) -> [PostgreSQLStatement] {
    [
      "SELECT count(*), min(queued) FROM webhook_event WHERE \(isWaiting)",
      "SELECT count(*), min(queued) FROM webhook_event WHERE endpoint = $1 AND number IS NULL",
      "SELECT count(*), min(dead) FROM webhook_event WHERE \(isDead)",
      "SELECT dropped FROM webhook_endpoint WHERE name = $1",
    ].map { PostgreSQLStatement($0, [.bytes(Data(endpoint.utf8))]) }
  }
}

extension WebhookCounts {
  init(_ answers: [PostgreSQLRows]) throws {
    let (numbered, fresh, dead) = (answers[0].first, answers[1].first, answers[2].first)
    self.init(
      waiting: Int(clamping: try (numbered?.int(0) ?? 0) + (fresh?.int(0) ?? 0)),
      oldestMilliseconds: try [numbered?.optionalInt(1), fresh?.optionalInt(1)].compactMap(\.self).min(),
      dead: Int(clamping: try dead?.int(0) ?? 0), oldestDeadMilliseconds: try dead?.optionalInt(1),
      dropped: try answers[3].first?.int(0) ?? 0)
  }
}

extension WebhookRow {
  static let names = "number, id, lane, player, kind, created, data, dead, reason"

  init(_ row: PostgreSQLRow) throws {
    self.init(
      number: try row.int(0), id: try row.identifier(1), lane: try row.bytes(2),
      player: try row.optionalBytes(3).flatMap(PlayerID.init(bytes:)), kind: try row.text(4),
      createdMilliseconds: try row.int(5), data: try row.bytes(6), deadMilliseconds: try row.optionalInt(7),
      reason: try row.optionalBytes(8).map { String(decoding: $0, as: UTF8.self) })
  }
}
#endif
