#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

// Events in the transaction of what they report.
extension PostgreSQLCommit {
  /// What backends are told of a commit.
  struct Telling {
    var outbox: WebhookOutbox
    var events: WebhookEvents

    init?(_ writes: WriteSet, by outbox: WebhookOutbox?) throws {
      guard let outbox else { return nil }
      (self.outbox, events) = (outbox, try WebhookEvents(writes, wants: outbox.wants))
    }
  }

  /// Writes what backends are told; before versions are put, the requesting device is recorded, or a device removed.
  ///
  /// - Parameter revision: To which the commit brings the container.
  mutating func report(_ writes: WriteSet, _ telling: Telling, revision: UInt64) {
    let (events, device) = (telling.events, writes.device)
    var found: [(event: WebhookEvent, unless: (sql: String, value: Data)?)] = []
    if let added = events.added, let device {
      found.append((added, ("SELECT 1 FROM device WHERE container = $2 AND id = $11", device.id.bytes)))
    }
    if let setBack = events.setBack { found.append((setBack, nil)) }
    let seqs = writes.versions.mapValues(\.version.seq)
    for (id, event) in events.saves.sorted(by: { seqs[$0.key] ?? 0 < seqs[$1.key] ?? 0 }) {
      found.append((event, ("SELECT 1 FROM version WHERE container = $2 AND id = $11", id.bytes)))
    }
    found += events.purchases.map { ($0, nil) }
    if let removed = events.removed { found.append((removed, nil)) }
    let player = PostgreSQLValue.bytes(device?.visit?.player.bytes)
    for (item, one) in found.enumerated() {
      let condition = one.unless.map { " WHERE NOT EXISTS (\($0.sql))" } ?? ""
      let statement = PostgreSQLOutbox.statement(
        telling.outbox.copies(of: one.event), one.event, lane: deletedMark, container: container, at: .signed(revision),
        item: item, player: player, now: now, condition: condition, one.unless.map { [.bytes($0.value)] } ?? [])
      if let statement { add(event: statement) }
    }
  }

  /// Notes which of the slots that have changed show several versions, since when; after their heads were written.
  mutating func noteConflicts(_ writes: WriteSet) {
    let heads = "(SELECT count(*) FROM version WHERE container = $1 AND slot = $2 AND head = 1)"
    for slot in Set(writes.versions.values.map(\.version.record.slot)).sorted() {
      let slot = PostgreSQLValue.bytes(Data(slot.utf8))
      add("DELETE FROM webhook_conflict WHERE container = $1 AND slot = $2 AND \(heads) < 2", [slot])
      add(
        """
        INSERT INTO webhook_conflict (container, slot, since, told) SELECT $1, $2, $3, 0 WHERE \(heads) > 1
        ON CONFLICT (container, slot) DO NOTHING
        """, [slot, .int(now)])
    }
  }
}

/// Statements that write events.
enum PostgreSQLOutbox {
  /// The id of a container's player; null if no device, recovery code or identity is left.
  private static let player = """
    coalesce((SELECT player FROM device WHERE container = $2 LIMIT 1),
      (SELECT player FROM recovery WHERE container = $2 LIMIT 1),
      (SELECT player FROM identity WHERE container = $2 LIMIT 1))
    """

  static func player(of container: ContainerID, in transaction: PostgreSQLTransaction) throws -> PlayerID? {
    let found = try transaction.run(
      "SELECT \(player) WHERE $1 = 0", [.int(0), .bytes(container.bytes)])
    return try found.first?.optionalBytes(0).flatMap(PlayerID.init(bytes:))
  }

  /// Returns a statement that writes an event for each endpoint that takes it; nil if none does.
  ///
  /// - Parameters:
  ///   - copies: The endpoints, with the ids.
  ///   - container: The player is looked up there if `player` is null.
  ///   - revision: To which the transaction brings the container; null for the one that the container has now.
  ///   - item: The place among the events of the transaction.
  ///   - condition: Whether it is written at all, with the value `$11`.
  static func statement(
    _ copies: [(endpoint: String, id: OperationID)], _ event: WebhookEvent, lane: Data, container: Data,
    at revision: PostgreSQLValue, item: Int, player: PostgreSQLValue, now: Int64, condition: String = "",
    _ values: [PostgreSQLValue] = []
  ) -> PostgreSQLStatement? {
    if copies.isEmpty { return nil }
    return PostgreSQLStatement(
      """
      INSERT INTO webhook_event (lane, endpoint, revision, item, id, player, kind, created, queued, data)
      SELECT $1, given.endpoint, coalesce($3, (SELECT revision FROM container WHERE id = $2)), $4, given.id,
        coalesce($5, \(self.player)), $6, $7, $7, $10
      FROM unnest($8::bytea[], $9::bytea[]) AS given (endpoint, id)\(condition)
      """,
      [
        .bytes(lane), .bytes(container), revision, .int(Int64(item)), player, .bytes(Data(event.kind.rawValue.utf8)),
        .int(now), .list(copies.map { Data($0.endpoint.utf8) }), .list(copies.map(\.id.bytes)),
        .bytes(event.data),
      ] + values)
  }
}
#endif
