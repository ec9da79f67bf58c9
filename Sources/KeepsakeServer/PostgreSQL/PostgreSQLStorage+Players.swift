#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import Synchronization

/// Deleted players, and the export of a player's data.
extension PostgreSQLStorage {
  func delete(_ container: ContainerID, now: Int64, auditing entry: AuditEntry?) async throws -> Deletion {
    defer { outbox?.wake() }
    let alone = try await transaction { [outbox] transaction in
      if let entry { try transaction.append(entry) }
      try transaction.take(container)
      let alone = try transaction.takeSharedAlone(of: container)
      for one in alone + [container] { try transaction.erase(one, now: now, outbox) }
      return alone
    }
    if state.withLock({ state in (alone + [container]).contains { state.bans.players[$0] != nil } }) {
      await refreshAtOnce()
    }
    for one in alone + [container] { remembered.end(one) }
    var areFilesGone = true
    for one in alone + [container] where try await !removeGivenUp(of: one) { areFilesGone = false }
    return Deletion(areFilesGone: areFilesGone, shared: alone)
  }

  func exported(_ place: PlayerExport.Position, of container: ContainerID) async throws -> PlayerExport.Page {
    let limit = Int64(PlayerExport.pageLines)
    switch place {
    case .changes(let seq):
      var reads = ReadSet()
      reads.changes = ReadSet.Changes(after: seq, count: PlayerExport.pageChanges, bytes: Int(Int32.max))
      let snapshot = try await load(reads, of: container)
      if snapshot.isDeleted { throw APIError.retired }
      let changes = snapshot.changes?.list ?? []
      let next: PlayerExport.Position =
        changes.count == PlayerExport.pageChanges
        ? .changes(after: changes[changes.count - 1].seq) : .contents(after: nil)
      return PlayerExport.Page(lines: changes.map(PlayerExport.Line.init), next: next)
    case .contents(let hash):
      let rows = try await page(
        of: container,
        """
        SELECT hash, length, base, size FROM content WHERE container = $1 AND hash > $2 ORDER BY hash LIMIT $3
        """, [.bytes(hash?.bytes ?? Data()), .int(limit)])
      let contents = try rows.map {
        PlayerExport.Line.Content(
          hash: try $0.hash(0), length: Int(try $0.int(1)), base: try $0.optionalHash(2),
          frameBytes: Int(try $0.int(3)))
      }
      return PlayerExport.Page(
        lines: contents.map(PlayerExport.Line.init(content:)),
        next: contents.count == Int(limit) ? .contents(after: contents.last?.hash) : .decisions(after: nil))
    case .decisions(let operation):
      let rows = try await page(
        of: container,
        """
        SELECT details, chain, verdict FROM bank_decision
        WHERE container = $1 AND operation > $2 ORDER BY operation LIMIT $3
        """, [.bytes(operation?.bytes ?? Data()), .int(limit)])
      let decisions = try rows.map {
        PlayerExport.Line.Operation(
          operation: try decoded(WalletOperation.self, $0.bytes(0)), chain: try $0.identifier(1),
          verdict: try $0.verdict(2))
      }
      return PlayerExport.Page(
        lines: decisions.map(PlayerExport.Line.init(operation:)),
        next: decisions.count == Int(limit) ? .decisions(after: decisions.last?.operation.id) : .packed(after: nil))
    case .packed(let row): return try await packedPage(of: container, after: row)
    case .claims(let key):
      let rows = try await page(
        of: container, "SELECT key FROM paid_claim WHERE container = $1 AND key > $2 ORDER BY key LIMIT $3",
        [.bytes(Data((key ?? "").utf8)), .int(limit)])
      let keys = try rows.map { try $0.text(0) }
      return PlayerExport.Page(
        lines: keys.map(PlayerExport.Line.init(claim:)),
        next: keys.count == Int(limit) ? .claims(after: keys.last) : .orders(after: 0))
    case .orders(let number):
      let rows = try await page(
        of: container,
        "SELECT number, details FROM bank_order WHERE container = $1 AND number > $2 ORDER BY number LIMIT $3",
        [.signed(number), .int(limit)])
      let orders = try rows.map {
        NumberedOrder(number: try $0.unsigned(0), order: try decoded(BankOrder.self, $0.bytes(1)))
      }
      return PlayerExport.Page(
        lines: orders.map(PlayerExport.Line.init(order:)),
        next: orders.count == Int(limit) ? .orders(after: orders[orders.count - 1].number) : .bank)
    case .bank:
      let rows = try await page(of: container, "SELECT bank FROM container WHERE id = $1", [])
      let state = try rows.first?.optionalBytes(0).map { try decoded(BankState.self, $0) }
      let bank = Bank(state ?? BankState())
      let balances = Dictionary(uniqueKeysWithValues: bank.currencies.map { ($0, bank.balance($0)) })
      return PlayerExport.Page(
        lines: [PlayerExport.Line(balances: balances, owed: bank.state.debts)], next: nil)
    }
  }

  /// Reads a page of the packed decisions, the run of the lowest level first: packing moves decisions to higher levels
  /// only, so that none is missed between two pages.
  private func packedPage(
    of container: ContainerID, after row: PlayerExport.PackedRow?
  ) async throws -> PlayerExport.Page {
    let rows = try await page(
      of: container,
      """
      SELECT level, first, entries FROM packed_decision WHERE container = $1 AND (level, first) > ($2, $3)
      ORDER BY level, first LIMIT $4
      """, [.int(row?.level ?? -1), .bytes(row?.first.bytes ?? Data()), .int(Int64(PlayerExport.pageRows))])
    var page = PlayerExport.Page(lines: [], next: .claims(after: nil))
    for row in rows {
      page.lines += try PackedDecisions.stored(row.bytes(2)).entries.map {
        PlayerExport.Line(decision: WalletDecision(id: $0.operation, verdict: $0.decided.verdict))
      }
      guard rows.rows.count == PlayerExport.pageRows else { continue }
      page.next = .packed(after: PlayerExport.PackedRow(level: try row.int(0), first: try row.identifier(1)))
    }
    return page
  }

  /// Reads a page of an export.
  ///
  /// - Throws: `APIError.retired` if the data were deleted between two pages: the export must not end as if it were
  ///   complete.
  private func page(
    of container: ContainerID, _ sql: String, _ values: [PostgreSQLValue]
  ) async throws -> PostgreSQLRows {
    let answers = try await read(
      [
        PostgreSQLStatement(PostgreSQLTransaction.deleted, [.bytes(container.deletedMark)]),
        PostgreSQLStatement(sql, [.bytes(container.bytes)] + values),
      ], of: container)
    if answers[0].first != nil { throw APIError.retired }
    return answers[1]
  }
}

extension PostgreSQLTransaction {
  /// Tables whose rows of a container are deleted with it.
  private static let tables = [
    "cell", "version", "covered", "content", "mark", "past_position", "offer_part", "bank_decision",
    "packed_decision", "paid_claim", "paid_voucher", "vouched_claim", "bank_order", "good", "closed_chain",
    "device_chain", "reached", "device", "retired", "pairing", "recovery", "identity", "token_use", "ban", "leaving",
    "webhook_conflict",
  ]

  /// Deletes everything of a container, and refuses its devices forever. Its turn must be had.
  ///
  /// - Parameter outbox: Takes that the player is gone.
  fileprivate func erase(_ container: ContainerID, now: Int64, _ outbox: WebhookOutbox?) throws {
    let id: [PostgreSQLValue] = [.bytes(container.bytes)]
    let player = try outbox == nil ? nil : PostgreSQLOutbox.player(of: container, in: self)
    // Of what others have used or signed in to, only which device it was, also one that was removed before.
    let devices = "(SELECT id FROM device WHERE container = $1 UNION SELECT device FROM retired WHERE container = $1)"
    var statements = [
      PostgreSQLStatement("UPDATE identity_use SET device = '' WHERE device IN \(devices)", id),
      PostgreSQLStatement("UPDATE identity SET joiner = NULL, joined = NULL WHERE joiner IN \(devices)", id),
    ]
    // Removed after this (`removeGivenUp`), or swept.
    statements.append(PostgreSQLStatement("UPDATE content_object SET taken = -1 WHERE container = $1", id))
    statements += Self.tables.map { PostgreSQLStatement("DELETE FROM \($0) WHERE container = $1", id) }
    // What it was to a game, or had in shared containers.
    statements += ["shared", "shared_device"].map {
      PostgreSQLStatement("DELETE FROM \($0) WHERE parent = $1 OR container = $1", id)
    }
    statements += [
      // They stay, or they would be paid again; but nothing says any more to whom they were paid.
      PostgreSQLStatement("UPDATE receipt SET container = '', operation = '' WHERE container = $1", id),
      PostgreSQLStatement("DELETE FROM container WHERE id = $1", id),
      // An empty device means all devices: tokens carry their own proof, and have to be refused forever.
      PostgreSQLStatement(
        "INSERT INTO retired (container, device, at) VALUES ($1, '', $2)",
        [.bytes(container.deletedMark), .int(now)]),
      // Of what backends haven't got yet, only that the player is gone, without the id.
      PostgreSQLStatement("DELETE FROM webhook_event WHERE lane = $1", [.bytes(container.deletedMark)]),
    ]
    if let outbox {
      let event = try WebhookEvent.playerDeleted(player)
      // Nothing of the player is left from which the revision or the id could be read.
      let telling = PostgreSQLOutbox.statement(
        outbox.copies(of: event), event, lane: container.deletedMark, container: container.bytes, at: .int(.max),
        item: 0, player: .bytes(nil), now: now)
      if let telling { statements.append(telling) }
    }
    _ = try run(statements)
  }
}
#endif
