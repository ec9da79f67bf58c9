#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import Logging

/// What the admin API asks of the database.
extension SQLiteCloudStorage: AdminStorage {
  func append(_ entry: AuditEntry) async throws {
    try await committer.write(for: nil) { try entry.append(in: $0) }
  }

  func adminKeys() async throws -> [AdminKey] { try await reading { try AdminKey.all(in: $0) } }

  func places(_ query: PlayerQuery) async throws -> [AdminPlace] {
    try await reading { db in
      let rows: [Row]
      switch query {
      case .player(let player):
        rows = try Row.fetchAll(
          db.cachedStatement(
            sql: """
              SELECT player, container, app FROM device WHERE player = ?1
              UNION SELECT player, container, app FROM recovery WHERE player = ?1
              UNION SELECT player, container, app FROM identity WHERE player = ?1
              """), arguments: [player.bytes])
      case .device(let device):
        rows = try Row.fetchAll(
          db.cachedStatement(
            sql: """
              SELECT DISTINCT other.player, other.container, other.app FROM device
              JOIN device AS other ON other.container = device.container AND other.player = device.player
              WHERE device.id = ?
              """), arguments: [device.bytes])
      }
      return AdminPlace.gathered(
        try rows.map { row in
          guard let player = try PlayerID(bytes: row.decode(atIndex: 0)),
            let container = try ContainerID(bytes: row.decode(atIndex: 1))
          else {
            throw ServerError(.damaged, "A device's row can't be read.")
          }
          return (player, container, AppID(bytes: try row.decode(atIndex: 2)))
        })
    }
  }

  func usedBytes(of container: ContainerID) async throws -> Int64 {
    try await reading { db in
      try Int64.fetchOne(
        db.cachedStatement(sql: "SELECT used FROM container WHERE id = ?"), arguments: [container.bytes]) ?? 0
    }
  }

  // MARK: Saves

  func slots(of container: ContainerID, after slot: String?, limit: Int) async throws -> [AdminSlot] {
    try await read(container) { storage in
      try storage.rows(
        """
        SELECT slot, count(*), (
            SELECT count(*) FROM head WHERE head.container = version.container AND head.slot = version.slot
          ) FROM version WHERE container = ?1 AND slot > ?2 GROUP BY slot ORDER BY slot LIMIT ?3
        """, [storage.number, storage.bytes(slot ?? ""), limit]
      ).map { row in
        AdminSlot(
          slot: String(decoding: try row.decode(Data.self, atIndex: 0), as: UTF8.self),
          versions: try row.decode(atIndex: 1), heads: try row.decode(atIndex: 2))
      }
    }
  }

  func versions(
    of container: ContainerID, in slot: String, before seq: UInt64, limit: Int, bytes: Int
  ) async throws -> AdminVersionPage {
    try await read(container) { storage in
      let rows = try Row.fetchCursor(
        storage.db.cachedStatement(
          sql: """
            SELECT \(SQLiteContainer.versionColumns), holds FROM version
            WHERE container = ? AND seq < ? AND slot = ? ORDER BY seq DESC LIMIT ?
            """),
        arguments: [storage.number, storage.signed(seq), storage.bytes(slot), limit + 1])
      var page = AdminVersionPage(limit: limit, bytes: bytes)
      while let row = try rows.next(), page.add(try AdminVersion(row, in: storage)) {}
      return page
    }
  }

  func version(_ id: VersionID, of container: ContainerID) async throws -> AdminVersion? {
    try await read(container) { storage in
      try storage.row(
        "SELECT \(SQLiteContainer.versionColumns), holds FROM version WHERE container = ? AND id = ?",
        [storage.number, id.bytes]
      ).map { try AdminVersion($0, in: storage) }
    }
  }

  // MARK: Erasing

  func erase() async -> Bool { await erase(vacuumedBytes: ServerLimits.vacuumedBytes) }

  /// Erases what was deleted from the database's files: SQLite overwrites rows where they were, but may have older
  /// copies of them in the unused part of pages that it has split, and in the write-ahead log.
  ///
  /// - Parameter vacuumedBytes: A database larger than this isn't written anew, because nobody can save meanwhile.
  /// - Returns: Whether nothing is left. Otherwise the database is too large, or something reads an older state of it,
  ///   such as a backup that is being made, or the disk has no room for a second one, or fails. Nothing of that is a
  ///   failure of the deletion, which is done.
  func erase(vacuumedBytes: Int64) async -> Bool {
    do {
      return try await pool.writeWithoutTransaction { db in
        let pages = try Int64.fetchOne(db, sql: "PRAGMA page_count") ?? 0
        let isSmall = pages * Int64(Schema.pageBytes) <= vacuumedBytes
        if isSmall { try db.execute(sql: "VACUUM") }
        _ = try db.checkpoint(.truncate)
        return isSmall
      }
    } catch {
      logger.failure("What was deleted can't be erased from the database's files now", error)
      return false
    }
  }
}

extension AdminVersion {
  fileprivate init(_ row: Row, in storage: SQLiteContainer) throws {
    self.init(
      try storage.sequencedVersion(row), isHead: try row.decode(atIndex: 4), isHere: try row.decode(atIndex: 6))
  }
}
#endif
