#if Cloud
import Foundation
import GRDB
import KeepsakeReplication

extension WebhookRow {
  static let columns = "id, key, lane, player, kind, created, data, dead, reason"

  init(_ row: Row) throws {
    guard let id = try OperationID(bytes: row.decode(atIndex: 1)) else { throw Self.unreadable }
    self.init(
      number: try row.decode(atIndex: 0), id: id, lane: try row.decode(atIndex: 2),
      player: try row.decode(Data?.self, atIndex: 3).flatMap(PlayerID.init(bytes:)), kind: try row.decode(atIndex: 4),
      createdMilliseconds: try row.decode(atIndex: 5), data: try row.decode(atIndex: 6),
      deadMilliseconds: try row.decode(atIndex: 7), reason: try row.decode(atIndex: 8))
  }
}

/// What a backend is told, kept until it has it. Looking up uses the readers, and removing shares players' commits.
extension SQLiteCloudStorage: WebhookStorage {
  var sharesWebhooks: Bool { false }

  func webhookEvents(
    of endpoint: String, after number: Int64, limit: Int, refills: [Data: Int64]
  ) async throws -> (found: [WebhookQueue.Pick], next: [Data: Int64?]) {
    try await reading { db in
      var found: [WebhookQueue.Pick] = []
      if limit > 0 {
        found = try Row.fetchAll(
          db.cachedStatement(sql: WebhookStatement.scan), arguments: [endpoint, number, limit]
        ).map { WebhookQueue.Pick(id: try $0.decode(atIndex: 0), lane: try $0.decode(atIndex: 1)) }
      }
      var next: [Data: Int64?] = [:]
      for (lane, last) in refills {
        let id = try Int64.fetchOne(
          db.cachedStatement(sql: WebhookStatement.refill), arguments: [lane, endpoint, last])
        next.updateValue(id, forKey: lane)
      }
      return (found, next)
    }
  }

  func webhookRows(_ numbers: [Int64], of endpoint: String) async throws -> [WebhookRow] {
    try await reading { db in
      try numbers.compactMap { number in
        try Row.fetchOne(
          db.cachedStatement(sql: "SELECT \(WebhookRow.columns) FROM webhookEvent WHERE id = ? AND dead IS NULL"),
          arguments: [number]
        ).map(WebhookRow.init)
      }
    }
  }

  func settleWebhooks(
    of endpoint: String, delivered: [Int64], dead: [(number: Int64, reason: String)], now: Int64
  ) async throws {
    try await committer.write(for: nil, work: delivered.count + dead.count) { db in
      let remove = try db.cachedStatement(sql: "DELETE FROM webhookEvent WHERE id = ?")
      for number in delivered { try remove.execute(arguments: [number]) }
      let bury = try db.cachedStatement(
        sql: "UPDATE webhookEvent SET dead = ?, reason = ? WHERE id = ? AND dead IS NULL")
      for (number, reason) in dead { try bury.execute(arguments: [now, reason, number]) }
    }
  }

  func webhookCounts(of endpoint: String) async throws -> WebhookCounts {
    try await reading { db in
      let waiting = try Row.fetchOne(
        db.cachedStatement(sql: WebhookStatement.countWaiting), arguments: [endpoint])
      let dead = try Row.fetchOne(
        db.cachedStatement(sql: WebhookStatement.countDead), arguments: [endpoint])
      let dropped = try Int64.fetchOne(
        db.cachedStatement(sql: "SELECT count FROM webhookDropped WHERE endpoint = ?"), arguments: [endpoint])
      return WebhookCounts(
        waiting: try waiting?.decode(atIndex: 0) ?? 0, oldestMilliseconds: try waiting?.decode(atIndex: 1),
        dead: try dead?.decode(atIndex: 0) ?? 0, oldestDeadMilliseconds: try dead?.decode(atIndex: 1),
        dropped: dropped ?? 0)
    }
  }

  // MARK: Bounds

  /// Returns the lanes with the most events that wait, if that is more than so many, with by how many.
  private func largestLanes(of endpoint: String, above share: Int) async throws -> [(lane: Data, excess: Int)] {
    try await reading { db in
      try Row.fetchAll(
        db.cachedStatement(
          sql: """
            SELECT lane, count(*) - ?2 AS excess FROM webhookEvent WHERE endpoint = ?1 AND dead IS NULL
            GROUP BY lane HAVING excess > 0 ORDER BY excess DESC LIMIT 16
            """), arguments: [endpoint, share]
      ).map { (try $0.decode(atIndex: 0), try $0.decode(atIndex: 1)) }
    }
  }

  func boundWebhooks(
    of endpoint: String, _ counts: WebhookCounts, _ limits: WebhookLimits, now: Int64,
    isAgeing: Bool
  ) async throws -> (buried: Int, dropped: Int, hasMore: Bool) {
    let excess = max(0, counts.waiting - limits.waiting)
    let old = isAgeing ? now.addingClamped(-limits.waitingMilliseconds) : .min
    let isOld = counts.oldestMilliseconds.map { $0 < old } ?? false
    let oldDead = isAgeing ? now.addingClamped(-limits.deadMilliseconds) : .min
    let isOldDead = counts.oldestDeadMilliseconds.map { $0 < oldDead } ?? false
    // Most of the time, nothing has to be written.
    if excess == 0, !isOld, !isOldDead, counts.dead <= limits.dead { return (0, 0, false) }
    let largest = excess > 0 ? try await largestLanes(of: endpoint, above: limits.waiting / 16) : []
    return try await committer.write(for: nil, work: limits.rowsAtOnce) { db in
      var buried = 0
      let most = min(excess, limits.rowsAtOnce)
      for (lane, own) in largest where buried < most {
        try db.cachedStatement(sql: WebhookStatement.buryOfLane).execute(
          arguments: [now, lane, endpoint, min(own, most - buried)])
        buried += db.changesCount
      }
      if buried < most {
        try db.cachedStatement(sql: WebhookStatement.bury).execute(arguments: [now, endpoint, most - buried])
        buried += db.changesCount
      }
      if isOld {
        try db.cachedStatement(sql: WebhookStatement.buryOld).execute(
          arguments: [now, endpoint, limits.rowsAtOnce, old])
        buried += db.changesCount
      }
      let beyond = max(0, counts.dead + buried - limits.dead)
      try db.cachedStatement(
        sql: """
          DELETE FROM webhookEvent WHERE id IN (
            SELECT id FROM webhookEvent WHERE endpoint = ?1 AND dead IS NOT NULL ORDER BY id LIMIT ?2
          ) OR id IN (
            SELECT id FROM webhookEvent WHERE endpoint = ?1 AND dead IS NOT NULL AND dead < ?3 LIMIT ?4
          )
          """
      ).execute(arguments: [endpoint, min(beyond, limits.rowsAtOnce), oldDead, limits.rowsAtOnce])
      let dropped = db.changesCount
      if dropped > 0 {
        try db.cachedStatement(
          sql: """
            INSERT INTO webhookDropped (endpoint, count) VALUES (?, ?)
            ON CONFLICT (endpoint) DO UPDATE SET count = count + excluded.count
            """
        ).execute(arguments: [endpoint, dropped])
      }
      return (buried, dropped, max(buried, dropped) >= limits.rowsAtOnce)
    }
  }

  func retireWebhooks(of endpoint: String, _ limits: WebhookLimits, now: Int64) async throws -> Bool {
    try await committer.write(for: nil, work: limits.rowsAtOnce) { db in
      try db.cachedStatement(sql: WebhookStatement.retire).execute(arguments: [now, endpoint, limits.rowsAtOnce])
      return db.changesCount >= limits.rowsAtOnce
    }
  }

  func webhookEndpoints() async throws -> Set<String> {
    try await reading { db in
      var names: Set<String> = []
      for next in [WebhookStatement.nextWaiting, WebhookStatement.nextDead] {
        var last = ""
        while let name = try String.fetchOne(db.cachedStatement(sql: next), arguments: [last]) {
          names.insert(name)
          last = name
        }
      }
      return names
    }
  }

  // MARK: Dead letters

  func deadWebhooks(of endpoint: String, after number: Int64, limit: Int) async throws -> [WebhookRow] {
    try await reading { db in
      try Row.fetchAll(
        db.cachedStatement(
          sql: """
            SELECT \(WebhookRow.columns) FROM webhookEvent WHERE endpoint = ? AND dead IS NOT NULL AND id > ?
            ORDER BY id LIMIT ?
            """), arguments: [endpoint, number, limit]
      ).map(WebhookRow.init)
    }
  }

  func retryWebhooks(
    of endpoint: String, _ ids: [OperationID]?, limit: Int, auditing entry: AuditEntry?
  ) async throws -> Int {
    let now = clock()
    let count = try await committer.write(for: nil, work: limit) { db in
      let found = try Row.fetchAll(
        db.cachedStatement(
          sql: "SELECT id, key FROM webhookEvent WHERE endpoint = ? AND dead IS NOT NULL ORDER BY id"),
        arguments: [endpoint])
      let wanted = ids.map { Set($0.map(\.bytes)) }
      let numbers = try found.compactMap { row -> Int64? in
        guard let wanted else { return try row.decode(atIndex: 0) }
        return wanted.contains(try row.decode(atIndex: 1)) ? try row.decode(atIndex: 0) : nil
      }.prefix(limit)
      let copy = try db.cachedStatement(
        sql: """
          INSERT INTO webhookEvent (endpoint, lane, key, player, kind, created, queued, data)
          SELECT endpoint, lane, key, player, kind, created, ?, data FROM webhookEvent WHERE id = ?
          """)
      let remove = try db.cachedStatement(sql: "DELETE FROM webhookEvent WHERE id = ?")
      for number in numbers {
        try copy.execute(arguments: [now, number])
        try remove.execute(arguments: [number])
      }
      try entry?.append(in: db)
      return numbers.count
    }
    if count > 0 { outbox?.wake() }
    return count
  }

  // MARK: Conflicts

  func noteOpenConflicts(now: Int64) async throws {
    guard outbox?.wants(.conflictOpen) == true else { return }
    let open = try await reading { db in
      try Row.fetchAll(
        db,
        sql: """
          SELECT container, slot FROM head GROUP BY container, slot HAVING count(*) > 1
          EXCEPT SELECT container, slot FROM webhookConflict
          """
      ).map { (container: try $0.decode(Int64.self, atIndex: 0), slot: try $0.decode(Data.self, atIndex: 1)) }
    }
    guard !open.isEmpty else { return }
    try await committer.write(for: nil, work: open.count) { db in
      let note = try db.cachedStatement(
        sql: """
          INSERT OR IGNORE INTO webhookConflict (container, slot, since)
          SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM head WHERE container = ?1 AND slot = ?2)
          """)
      for (container, slot) in open { try note.execute(arguments: [container, slot, now]) }
    }
  }

  func forgetUnwantedConflicts() async throws {
    guard outbox?.wants(.conflictOpen) != true else { return }
    let isAny = try await reading { try Row.fetchOne($0, sql: "SELECT 1 FROM webhookConflict LIMIT 1") != nil }
    guard isAny else { return }
    try await committer.write(for: nil) { try $0.execute(sql: "DELETE FROM webhookConflict") }
  }

  func tellConflicts(openSince since: Int64, now: Int64, limit: Int) async throws -> Int {
    guard let outbox else { return 0 }
    let select = """
      SELECT webhookConflict.container, slot, since, container.id FROM webhookConflict
      JOIN container ON container.number = webhookConflict.container
      WHERE told = 0 AND since <= ? ORDER BY since LIMIT ?
      """
    let isAny = try await reading { try Row.fetchOne($0, sql: select, arguments: [since, 1]) != nil }
    guard isAny else { return 0 }
    let files = files
    let count = try await committer.write(for: nil, work: limit) { db in
      var count = 0
      for row in try Row.fetchAll(db, sql: select, arguments: [since, limit]) {
        guard let id = try ContainerID(bytes: row.decode(atIndex: 3)) else { continue }
        let (number, slot) = (try row.decode(Int64.self, atIndex: 0), try row.decode(Data.self, atIndex: 1))
        let storage = try SQLiteContainer(id, in: db, files: files, now: now)
        let heads =
          try Int.fetchOne(
            db.cachedStatement(sql: "SELECT count(*) FROM head WHERE container = ? AND slot = ?"),
            arguments: [number, slot]) ?? 0
        guard heads > 1 else {
          try storage.run("DELETE FROM webhookConflict WHERE container = ? AND slot = ?", [number, slot])
          continue
        }
        try storage.run("UPDATE webhookConflict SET told = 1 WHERE container = ? AND slot = ?", [number, slot])
        try outbox.add(
          .conflictOpen(
            slot: String(decoding: slot, as: UTF8.self), versions: heads, since: try row.decode(atIndex: 2)),
          to: storage.deletedMark, player: try storage.playerBytes(), now: now, in: db)
        count += 1
      }
      return count
    }
    if count > 0 { outbox.wake() }
    return count
  }

  // MARK: Several servers

  // No other server has the database, so that everything is held from the start.

  func webhookClaims() async throws -> [String: WebhookClaim] { [:] }

  func takeWebhooks(of endpoint: String, by holder: Data, after claim: WebhookClaim?) async throws -> WebhookClaim? {
    WebhookClaim(holder: holder, beat: 0)
  }

  func renewWebhooks(of endpoint: String, by holder: Data, _ report: WebhookReport) async throws -> WebhookClaim? {
    WebhookClaim(holder: holder, beat: 0)
  }

  func releaseWebhooks(of endpoint: String, by holder: Data, _ report: WebhookReport) async throws {}
}
#endif
