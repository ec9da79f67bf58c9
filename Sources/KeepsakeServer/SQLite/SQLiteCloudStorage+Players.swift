#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import Synchronization

/// Removed devices, deleted players, and the export of a player's data.
extension SQLiteCloudStorage {
  func isRetired(_ identity: DeviceIdentity) async throws -> Bool {
    try await reading { try Self.isRetired(identity.device, of: identity.container, in: $0) }
  }

  static func isRetired(_ device: DeviceID, of container: ContainerID, in db: Database) throws -> Bool {
    try Row.fetchOne(
      db.cachedStatement(
        sql: "SELECT 1 FROM retired WHERE (container = ? AND device = ?) OR (container = ? AND device = x'')"),
      arguments: [container.bytes, device.bytes, container.deletedMark]) != nil
  }

  static func isDeleted(_ container: ContainerID, in db: Database) throws -> Bool {
    try Row.fetchOne(
      db.cachedStatement(sql: "SELECT 1 FROM retired WHERE container = ? AND device = x''"),
      arguments: [container.deletedMark]) != nil
  }

  func delete(_ container: ContainerID, now: Int64, auditing entry: AuditEntry?) async throws -> Deletion {
    let shared = Mutex<[ContainerID]>([])
    let forgetBans: @Sendable () -> Void = {
      let gone = shared.withLock { $0 } + [container]
      self.bans.withLock { bans in
        for one in gone { bans.players[one] = nil }
      }
    }
    let (outbox, files) = (outbox, files)
    let areFilesGone = try await erasingTransaction(on: container, committed: forgetBans) { storage in
      let alone = try Self.sharedAlone(of: container, in: storage.db)
      shared.withLock { $0 = alone }
      for one in alone {
        var rows = try SQLiteContainer(one, in: storage.db, files: files, now: now)
        try rows.erase(now: now, outbox)
        storage.removedFiles += rows.removedFiles
      }
      try storage.erase(now: now, outbox)
      try entry?.append(in: storage.db)
    }.areFilesGone
    outbox?.wake()
    let deleted = shared.withLock { $0 }
    for one in deleted + [container] { forgetDeleted(one) }
    return Deletion(areFilesGone: areFilesGone, shared: deleted)
  }

  func exported(_ place: PlayerExport.Position, of container: ContainerID) async throws -> PlayerExport.Page {
    try await read(container) { storage in
      // If the data were deleted between two pages, the export must not end as if it were complete.
      try storage.refuseRetired(nil)
      let limit = PlayerExport.pageLines
      switch place {
      case .changes(let seq):
        let changes = try storage.changes(after: seq, limit: PlayerExport.pageChanges)
        let next: PlayerExport.Position =
          changes.count == PlayerExport.pageChanges
          ? .changes(after: changes[changes.count - 1].seq) : .contents(after: nil)
        return PlayerExport.Page(lines: changes.map(PlayerExport.Line.init), next: next)
      case .contents(let hash):
        let rows = try storage.rows(
          """
          SELECT hash, length, \(SQLiteContainer.base), size FROM content
          WHERE container = ?1 AND substr(hash, 1, 8) >= ifnull(substr(?2, 1, 8), x'') AND hash > ?2
          ORDER BY substr(hash, 1, 8), hash LIMIT ?3
          """, [storage.number, hash?.bytes ?? Data(), limit])
        let contents = try rows.map { row in
          PlayerExport.Line.Content(
            hash: try storage.contentHash(row.decode(atIndex: 0)), length: try row.decode(atIndex: 1),
            base: try row.decode(Data?.self, atIndex: 2).map(storage.contentHash),
            frameBytes: try row.decode(atIndex: 3))
        }
        let next: PlayerExport.Position =
          rows.count == limit ? .contents(after: contents[limit - 1].hash) : .decisions(after: nil)
        return PlayerExport.Page(lines: contents.map(PlayerExport.Line.init(content:)), next: next)
      case .decisions(let operation):
        let decisions = try storage.decisions(after: operation, limit: limit)
        let next: PlayerExport.Position =
          decisions.count == limit ? .decisions(after: decisions[limit - 1].operation.id) : .packed(after: nil)
        return PlayerExport.Page(lines: decisions.map(PlayerExport.Line.init(operation:)), next: next)
      case .packed(let row):
        return try storage.packedPage(after: row)
      case .claims(let key):
        let keys = try storage.paidClaims(after: key, limit: limit)
        return PlayerExport.Page(
          lines: keys.map(PlayerExport.Line.init(claim:)),
          next: keys.count == limit ? .claims(after: keys.last) : .orders(after: 0))
      case .orders(let number):
        let orders = try storage.orders(after: number, limit: limit)
        return PlayerExport.Page(
          lines: orders.map(PlayerExport.Line.init(order:)),
          next: orders.count == limit ? .orders(after: orders[limit - 1].number) : .bank)
      case .bank:
        let bank = Bank(try storage.bank())
        let balances = Dictionary(uniqueKeysWithValues: bank.currencies.map { ($0, bank.balance($0)) })
        return PlayerExport.Page(
          lines: [PlayerExport.Line(balances: balances, owed: bank.state.debts)], next: nil)
      }
    }
  }
}

extension SQLiteContainer {
  /// Tables whose rows of a container are deleted with it: those that name it by its number,
  private static let numbered = [
    "cell", "version", "head", "covered", "content", "mark", "pastPosition", "webhookConflict",
  ]
  /// and those that name it by its id.
  private static let tables = [
    "decision", "packedDecision", "paidClaim", "good",
    "bankOrder", "paidVoucher", "vouchedClaim",
    "closedChain", "deviceChain", "device", "pairing", "recovery", "identity", "offerPart", "tokenUse", "ban",
  ]

  /// Deletes everything of the container, and refuses its devices forever.
  ///
  /// - Parameter outbox: Takes that the player is gone.
  fileprivate mutating func erase(now: Int64, _ outbox: WebhookOutbox?) throws {
    let player = try playerBytes()
    for row in try rows("SELECT file FROM content WHERE container = ? AND file IS NOT NULL", [number]) {
      removedFiles.append(try row.decode(atIndex: 0))
    }
    // Of what others have used or signed in to, only which device it was, also one that was removed before.
    let devices = "(SELECT id FROM device WHERE container = ?1 UNION SELECT device FROM retired WHERE container = ?1)"
    try run("UPDATE identityUse SET device = x'' WHERE device IN \(devices)", [id])
    try run("UPDATE identity SET joiner = NULL, joined = NULL WHERE joiner IN \(devices)", [id])
    for table in Self.numbered { try run("DELETE FROM \(table) WHERE container = ?", [number]) }
    for table in Self.tables { try run("DELETE FROM \(table) WHERE container = ?", [id]) }
    // What it was to a game, or had in shared containers.
    for table in ["shared", "sharedDevice"] {
      try run("DELETE FROM \(table) WHERE parent = ?1 OR container = ?1", [id])
    }
    // They stay, or they would be paid again; but nothing says any more to whom they were paid.
    try run("UPDATE receipt SET container = x'', operation = x'' WHERE container = ?", [id])
    try run("DELETE FROM container WHERE id = ?", [id])
    try run("DELETE FROM retired WHERE container = ?", [id])
    // An empty device means all devices: tokens carry their own proof, and have to be refused forever.
    try run("INSERT INTO retired (container, device, at) VALUES (?, x'', ?)", [deletedMark, now])
    // Of what backends haven't got yet, only that the player is gone, without the id.
    try run("DELETE FROM webhookEvent WHERE lane = ?", [deletedMark])
    if let outbox {
      try outbox.add(
        .playerDeleted(player.flatMap(PlayerID.init(bytes:))), to: deletedMark, player: nil, now: now, in: db)
    }
  }

  /// Throws `APIError.retired` if the player's data were deleted, or the device was removed.
  func refuseRetired(_ device: DeviceID?) throws {
    let found = try row(
      "SELECT 1 FROM retired WHERE (container = ? AND device = ?) OR (container = ? AND device = x'')",
      [id, device?.bytes, deletedMark])
    if found != nil { throw APIError.retired }
  }

  /// Returns what the bank decided, sorted by the operations' ids.
  func decisions(after operation: OperationID?, limit: Int) throws -> [PlayerExport.Line.Operation] {
    try rows(
      "SELECT details, chain, verdict FROM decision WHERE container = ? AND operation > ? ORDER BY operation LIMIT ?",
      [id, operation?.bytes ?? Data(), limit]
    ).map { row in
      return PlayerExport.Line.Operation(
        operation: try decode(WalletOperation.self, row.decode(atIndex: 0)),
        chain: try identifier(row.decode(atIndex: 1)), verdict: try verdict(row.decode(atIndex: 2)))
    }
  }

  /// Returns a page of the packed decisions, the run of the lowest level first: packing moves decisions to higher
  /// levels only, so that none is missed between two pages.
  fileprivate func packedPage(after row: PlayerExport.PackedRow?) throws -> PlayerExport.Page {
    let rows = try rows(
      """
      SELECT level, first, entries FROM packedDecision WHERE container = ?1 AND (level, first) > (?2, ?3)
      ORDER BY level, first LIMIT ?4
      """, [id, row?.level ?? -1, row?.first.bytes ?? Data(), PlayerExport.pageRows])
    let last = try rows.last.map {
      PlayerExport.PackedRow(level: try $0.decode(atIndex: 0), first: try identifier($0.decode(atIndex: 1)))
    }
    let lines = try rows.flatMap { row in
      try PackedDecisions.stored(row.decode(atIndex: 2)).entries.map {
        PlayerExport.Line(decision: WalletDecision(id: $0.operation, verdict: $0.decided.verdict))
      }
    }
    return PlayerExport.Page(
      lines: lines, next: rows.count == PlayerExport.pageRows ? .packed(after: last) : .claims(after: nil))
  }
}
#endif
