#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

/// Slots with several current versions, of which backends are told.
extension PostgreSQLStorage {
  /// Current versions that are looked at together.
  private static let headsAtOnce: Int64 = 10_000

  func noteOpenConflicts(now: Int64) async throws {
    guard outbox?.wants(.conflictOpen) == true else { return }
    var after = (container: Data(), slot: Data())
    var isOver = false
    while !isOver {
      try Task.checkCancellation()
      let values: [PostgreSQLValue] = [.bytes(after.container), .bytes(after.slot)]
      // The page ends with a slot, so that none is cut.
      let last = try await read([
        PostgreSQLStatement(
          """
          SELECT container, slot FROM version WHERE head = 1 AND (container, slot) > ($1, $2)
          ORDER BY container, slot OFFSET $3 LIMIT 1
          """, values + [.int(Self.headsAtOnce - 1)])
      ])[0].first
      let end = try last.map { (container: try $0.bytes(0), slot: try $0.bytes(1)) }
      let found = try await read([
        PostgreSQLStatement(
          """
          SELECT container, slot FROM version WHERE head = 1 AND (container, slot) > ($1, $2)
            AND ($3::bytea IS NULL OR (container, slot) <= ($3, $4))
            AND NOT EXISTS (SELECT 1 FROM webhook_conflict AS known
              WHERE known.container = version.container AND known.slot = version.slot)
          GROUP BY container, slot HAVING count(*) > 1
          """, values + [.bytes(end?.container), .bytes(end?.slot)])
      ])[0]
      for row in found { try await note(try row.identifier(0), try row.bytes(1), now: now) }
      if let end { after = end } else { isOver = true }
    }
  }

  private func note(_ container: ContainerID, _ slot: Data, now: Int64) async throws {
    try await unlessDeleted {
      try await transaction { transaction in
        try transaction.take(container)
        guard try transaction.heads(of: container, slot) > 1 else { return }
        try transaction.run(
          """
          INSERT INTO webhook_conflict (container, slot, since, told) VALUES ($1, $2, $3, 0)
          ON CONFLICT (container, slot) DO NOTHING
          """, [.bytes(container.bytes), .bytes(slot), .int(now)])
      }
    }
  }

  func forgetUnwantedConflicts() async throws {
    guard outbox?.wants(.conflictOpen) != true else { return }
    let some = PostgreSQLStatement(
      """
      DELETE FROM webhook_conflict WHERE (container, slot) IN (SELECT container, slot FROM webhook_conflict LIMIT $1)
      """, [.int(1_000)])
    while try await run([some])[0].count > 0 { try Task.checkCancellation() }
  }

  func tellConflicts(openSince since: Int64, now: Int64, limit: Int) async throws -> Int {
    guard let outbox else { return 0 }
    let due = PostgreSQLStatement(
      "SELECT container, slot FROM webhook_conflict WHERE told = 0 AND since <= $1 ORDER BY since LIMIT $2",
      [.int(since), .int(Int64(limit))])
    var count = 0
    defer { if count > 0 { outbox.wake() } }
    for row in try await read([due])[0] {
      let (container, slot): (ContainerID, Data) = (try row.identifier(0), try row.bytes(1))
      try await unlessDeleted {
        let isTold = try await transaction { try $0.tell(container, slot, now: now, outbox) }
        if isTold { count += 1 }
      }
    }
    return count
  }

  private func unlessDeleted(_ body: () async throws -> Void) async throws {
    do {
      try await body()
    } catch let error as APIError where error.code == .retired {
      // Everything of the player was deleted meanwhile, its conflicts, too.
    }
  }
}

extension PostgreSQLTransaction {
  fileprivate func heads(of container: ContainerID, _ slot: Data) throws -> Int64 {
    try run(
      "SELECT count(*) FROM version WHERE container = $1 AND slot = $2 AND head = 1",
      [.bytes(container.bytes), .bytes(slot)]
    ).first?.int(0) ?? 0
  }

  /// Tells of a conflict, unless another server has, or it is over. Returns whether it was told.
  fileprivate func tell(_ container: ContainerID, _ slot: Data, now: Int64, _ outbox: WebhookOutbox) throws -> Bool {
    let key: [PostgreSQLValue] = [.bytes(container.bytes), .bytes(slot)]
    let open = try run("SELECT since FROM webhook_conflict WHERE container = $1 AND slot = $2 AND told = 0", key).first
    guard let open else { return false }
    // Its versions stay as they are, and the event has its place among the player's.
    try take(container)
    let heads = try heads(of: container, slot)
    guard heads > 1 else {
      try run("DELETE FROM webhook_conflict WHERE container = $1 AND slot = $2", key)
      return false
    }
    try run("UPDATE webhook_conflict SET told = 1 WHERE container = $1 AND slot = $2", key)
    let event = try WebhookEvent.conflictOpen(
      slot: String(decoding: slot, as: UTF8.self), versions: Int(clamping: heads), since: try open.int(0))
    let statement = PostgreSQLOutbox.statement(
      outbox.copies(of: event), event, lane: container.deletedMark, container: container.bytes, at: .int(nil), item: 0,
      player: .bytes(nil), now: now)
    if let statement { try run(statement.sql, statement.values) }
    return true
  }
}
#endif
