#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import Logging

/// A player as the studio asks for one. To find players by identities, add a case.
enum PlayerQuery: Sendable {
  case player(PlayerID)
  case device(DeviceID)
}

/// Where a player is kept, with the apps of all the player's devices.
struct AdminPlace: Hashable, Sendable {
  var player: PlayerID
  var container: ContainerID
  var apps: Set<AppID>
}

/// What the admin API asks of the database.
extension SQLiteCloudStorage {
  func adminKey(_ text: String) async throws -> AdminKey? {
    try await reading { try AdminKey.accepted(text, in: $0) }
  }

  /// Returns where the players are kept that match; a player without any device, recovery code or identity
  /// isn't found.
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
      var found: [PlayerID: AdminPlace] = [:]
      for row in rows {
        guard let player = try PlayerID(bytes: row.decode(atIndex: 0)),
          let container = try ContainerID(bytes: row.decode(atIndex: 1))
        else {
          throw ServerError(.damaged, "A device's row can't be read.")
        }
        found[player, default: AdminPlace(player: player, container: container, apps: [])].apps
          .insert(AppID(bytes: try row.decode(atIndex: 2)))
      }
      return found.values.sorted { $0.player < $1.player }
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

  /// Returns versions of a slot, the newest first.
  ///
  /// - Parameters:
  ///   - seq: Only those that came before this one.
  ///   - limit: The most versions.
  ///   - bytes: How many bytes of records the page may have after its first version: a device may replace many versions
  ///     with each.
  /// - Returns: The versions, and whether there are more.
  func versions(
    of container: ContainerID, in slot: String, before seq: UInt64, limit: Int, bytes: Int
  ) async throws -> (page: [AdminVersion], hasMore: Bool) {
    try await read(container) { storage in
      let rows = try Row.fetchCursor(
        storage.db.cachedStatement(
          sql: """
            SELECT \(SQLiteContainer.versionColumns), holds FROM version
            WHERE container = ? AND seq < ? AND slot = ? ORDER BY seq DESC LIMIT ?
            """),
        arguments: [storage.number, storage.signed(seq), storage.bytes(slot), limit + 1])
      var (page, size): ([AdminVersion], Int) = ([], 0)
      while let row = try rows.next() {
        let version = try AdminVersion(row, in: storage)
        size += version.recordBytes
        if page.count == limit || (!page.isEmpty && size > bytes) { return (page, true) }
        page.append(version)
      }
      return (page, false)
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

  /// Erases what was deleted from the database's files: SQLite overwrites rows where they were, but may have older
  /// copies of them in the unused part of pages that it has split, and in the write-ahead log.
  ///
  /// - Parameter vacuumedBytes: A database larger than this isn't written anew, because nobody can save meanwhile.
  /// - Returns: Whether nothing is left. Otherwise the database is too large, or something reads an older state of it,
  ///   such as a backup that is being made, or the disk has no room for a second one, or fails. Nothing of that is a
  ///   failure of the deletion, which is done.
  func erase(vacuumedBytes: Int64 = ServerLimits.vacuumedBytes) async -> Bool {
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

/// A slot of a player's saves.
struct AdminSlot: Sendable, Encodable {
  /// The text of its key, as a device sends it.
  var slot: String
  var versions: Int
  /// Versions that nothing has replaced: several are a conflict.
  var heads: Int
}

/// A version of a save.
struct AdminVersion: Sendable, Encodable {
  var version: VersionID
  var slot: String
  /// Its place in the order in which changes came.
  var seq: UInt64
  var savedAtMilliseconds: Int64
  var length: Int
  var isHead: Bool
  var isDelete: Bool
  /// Whether its bytes are still here.
  var isHere: Bool
  /// The versions that it replaces.
  var covers: [VersionID]
  var writer: WriterID
  /// The name of the device that made it, if it was recorded.
  var device: String?
  var title: String?
  var playtime: Double?
  var progress: Double?
  fileprivate(set) var contents: [ContentHash] = []
  fileprivate var recordBytes: Int

  private enum CodingKeys: String, CodingKey {
    case version, slot, seq, savedAtMilliseconds
    case length = "bytes"
    case isHead = "head"
    case isDelete = "tombstone"
    case isHere = "available"
    case covers, writer
    case device = "deviceName"
    case title, playtime, progress
  }

  fileprivate init(_ row: Row, in storage: SQLiteContainer) throws {
    let sequenced = try storage.sequencedVersion(row)
    let record = sequenced.record
    (version, slot, seq) = (record.id, record.slot, sequenced.seq)
    (savedAtMilliseconds, length, isDelete) = (record.savedAtMilliseconds, record.length, record.tombstone)
    isHead = try row.decode(atIndex: 4)
    isHere = try row.decode(atIndex: 6)
    (covers, writer, contents) = (record.covers, record.writer, record.contents)
    recordBytes = record.size
    let metadata = record.metadata
    (device, title, playtime, progress) = (metadata.device, metadata.title, metadata.playtime, metadata.progress)
  }
}
#endif
