#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging
import Synchronization

/// What the studio's port asks of the database.
extension PostgreSQLStorage: AdminStorage {
  func adminKeys() async throws -> [AdminKey] {
    try await read([PostgreSQLTransaction.adminKeys])[0].map(AdminKey.init)
  }

  func places(_ query: PlayerQuery) async throws -> [AdminPlace] {
    let statement: PostgreSQLStatement
    switch query {
    case .player(let player):
      statement = PostgreSQLStatement(
        """
        SELECT player, container, app FROM device WHERE player = $1
        UNION SELECT player, container, app FROM recovery WHERE player = $1
        UNION SELECT player, container, app FROM identity WHERE player = $1
        """, [.bytes(player.bytes)])
    case .device(let device):
      statement = PostgreSQLStatement(
        """
        SELECT DISTINCT other.player, other.container, other.app FROM device
        JOIN device AS other ON other.container = device.container AND other.player = device.player
        WHERE device.id = $1
        """, [.bytes(device.bytes)])
    }
    return AdminPlace.gathered(
      try await read([statement])[0].map {
        (try $0.identifier(0), try $0.identifier(1), AppID(bytes: try $0.bytes(2)))
      })
  }

  func usedBytes(of container: ContainerID) async throws -> Int64 {
    let statement = PostgreSQLStatement("SELECT used FROM container WHERE id = $1", [.bytes(container.bytes)])
    return try await read([statement], of: container)[0].first?.int(0) ?? 0
  }

  func ban(of container: ContainerID) -> Ban? { state.withLock { $0.bans.players[container] } }

  func sharedParents(of container: ContainerID) async throws -> [SharedParent] {
    let statement = PostgreSQLStatement(
      """
      SELECT DISTINCT shared.parent, device.player, device.app FROM shared
      LEFT JOIN device ON device.container = shared.parent WHERE shared.container = $1 ORDER BY 1, 2, 3
      """, [.bytes(container.bytes)])
    return try await read([statement], of: container)[0].map { row in
      SharedParent(
        container: try row.identifier(0), player: try row.optionalBytes(1).flatMap(PlayerID.init(bytes:)),
        app: try row.optionalBytes(2).map(AppID.init(bytes:)))
    }
  }

  // MARK: Saves

  func slots(of container: ContainerID, after slot: String?, limit: Int) async throws -> [AdminSlot] {
    let statement = PostgreSQLStatement(
      """
      SELECT slot, count(*), sum(head)::bigint FROM version WHERE container = $1 AND slot > $2
      GROUP BY slot ORDER BY slot LIMIT $3
      """, [.bytes(container.bytes), .bytes(Data((slot ?? "").utf8)), .int(Int64(limit))])
    return try await read([statement], of: container)[0].map {
      AdminSlot(slot: try $0.text(0), versions: Int(try $0.int(1)), heads: Int(try $0.int(2)))
    }
  }

  func versions(
    of container: ContainerID, in slot: String, before seq: UInt64, limit: Int, bytes: Int
  ) async throws -> AdminVersionPage {
    // Of those beyond as many bytes only that they are there.
    let statement = PostgreSQLStatement(
      """
      SELECT id, seq, slot, CASE WHEN before <= $5 THEN record END, head, holds FROM (
        SELECT *, sum(octet_length(record)) OVER (ORDER BY seq DESC) - octet_length(record) AS before FROM (
          SELECT id, seq, slot, record, head, holds FROM version WHERE container = $1 AND seq < $2 AND slot = $3
          ORDER BY seq DESC LIMIT $4
        ) AS newest
      ) AS measured ORDER BY seq DESC
      """,
      [.bytes(container.bytes), .signed(seq), .bytes(Data(slot.utf8)), .int(Int64(limit) + 1), .int(Int64(bytes))])
    var page = AdminVersionPage(limit: limit, bytes: bytes)
    for row in try await read([statement], of: container)[0] {
      guard try row.optionalBytes(3) != nil else {
        page.hasMore = true
        break
      }
      guard page.add(try row.adminVersion()) else { break }
    }
    return page
  }

  func version(_ id: VersionID, of container: ContainerID) async throws -> AdminVersion? {
    let statement = PostgreSQLStatement(
      "SELECT id, seq, slot, record, head, holds FROM version WHERE container = $1 AND id = $2",
      [.bytes(container.bytes), .bytes(id.bytes)])
    return try await read([statement], of: container)[0].first?.adminVersion()
  }

  // MARK: Acts

  func append(_ entry: AuditEntry) async throws {
    try await transaction { transaction in
      // Nothing else is read: who has waited for another row goes on from that one, and isn't begun anew.
      try transaction.run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
      try transaction.append(entry)
    }
  }

  func unlink(_ identity: ContentHash, of container: ContainerID, auditing entry: AuditEntry) async throws {
    try await act(on: container, auditing: entry) { transaction in
      let gone = try transaction.run(
        "DELETE FROM identity WHERE id = $1 AND container = $2", [.bytes(identity.bytes), .bytes(container.bytes)])
      guard gone.count > 0 else { throw APIError.identityNotLinked }
    }
  }

  func setBan(_ ban: Ban?, of container: ContainerID, auditing entry: AuditEntry) async throws {
    try await act(on: container, auditing: entry) { transaction in
      guard let ban else {
        try transaction.run("DELETE FROM ban WHERE container = $1", [.bytes(container.bytes)])
        return
      }
      try transaction.run(
        """
        INSERT INTO ban (container, reason, at) VALUES ($1, $2, $3)
        ON CONFLICT (container) DO UPDATE SET reason = excluded.reason, at = excluded.at
        """, [.bytes(container.bytes), .bytes(Data(ban.reason.utf8)), .int(ban.sinceMilliseconds)])
    }
    await refreshAtOnce()
  }

  /// Has the turn of a player's container for an act of the studio, and does it together with its row.
  ///
  /// - Throws: `APIError.playerUnknown` if everything of the player was deleted.
  private func act(
    on container: ContainerID, auditing entry: AuditEntry,
    _ body: @escaping @Sendable (PostgreSQLTransaction) throws -> Void
  ) async throws {
    do {
      try await transaction { transaction in
        try transaction.append(entry)
        try transaction.take(container)
        try body(transaction)
      }
    } catch let error as APIError where error.code == .retired {
      throw APIError.playerUnknown
    }
  }

  /// Learns what was just changed. If that fails, the next time does, a second later: the change is done.
  func refreshAtOnce() async {
    do {
      try await refresh()
    } catch {
      logger.failure("What was changed is known here only in a second", error)
    }
  }

  /// The bytes of deleted rows stay in the database's files until it is vacuumed, and in its log and backups: none of
  /// that is for a server to say.
  func erase() async -> Bool { false }
}

extension PostgreSQLRow {
  /// Reads id, seq, slot and record, and behind them whether it is a head and its bytes are here.
  fileprivate func adminVersion() throws -> AdminVersion {
    AdminVersion(try version(hasAccepted: false), isHead: try int(4) == 1, isHere: try int(5) == 1)
  }
}
#endif
