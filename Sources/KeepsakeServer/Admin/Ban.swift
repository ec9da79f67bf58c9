#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import Synchronization

/// Why the devices of a player are refused for now, and since when.
struct Ban: Hashable, Sendable, Encodable {
  /// A word or a sentence for the game to show: 1 to 200 bytes.
  var reason: String
  var sinceMilliseconds: Int64

  static let reasonBytes = 1...200

  /// All bans: of players, and of devices in shared containers whose player is banned in the game itself.
  struct All: Sendable {
    var players: [ContainerID: Ban] = [:]
    var shared: [DeviceID: Ban] = [:]
  }

  static func all(in db: Database) throws -> All {
    let players = try players(in: db)
    return All(
      players: players,
      shared: try players.reduce(into: [:]) { shared, banned in
        for one in try SQLiteCloudStorage.sharedDevices(of: banned.key, nil, in: db) {
          shared[one.device] = banned.value
        }
      })
  }

  static func row(of container: ContainerID, in db: Database) throws -> Ban? {
    try Row.fetchOne(
      db.cachedStatement(sql: "SELECT reason, at FROM ban WHERE container = ?"), arguments: [container.bytes]
    ).map { Ban(reason: try $0.decode(atIndex: 0), sinceMilliseconds: try $0.decode(atIndex: 1)) }
  }

  private static func players(in db: Database) throws -> [ContainerID: Ban] {
    try Row.fetchAll(db, sql: "SELECT container, reason, at FROM ban").reduce(into: [:]) { bans, row in
      guard let container = try ContainerID(bytes: row.decode(atIndex: 0)) else {
        throw ServerError(.damaged, "A ban's row can't be read.")
      }
      bans[container] = Ban(reason: try row.decode(atIndex: 1), sinceMilliseconds: try row.decode(atIndex: 2))
    }
  }
}

extension SQLiteCloudStorage {
  func ban(of container: ContainerID) -> Ban? { bans.withLock { $0.players[container] } }

  func ban(of identity: DeviceIdentity) -> Ban? {
    bans.withLock { $0.players[identity.container] ?? $0.shared[identity.device] }
  }

  func setBan(_ ban: Ban?, of container: ContainerID, auditing entry: AuditEntry) async throws {
    // Those that it has at this moment: a banned player gets no further ones.
    let shared = Mutex<[DeviceID]>([])
    let keep: @Sendable () -> Void = {
      let shared = shared.withLock { $0 }
      self.bans.withLock { bans in
        bans.players[container] = ban
        for device in shared { bans.shared[device] = ban }
      }
    }
    try await committer.write(for: container, committed: keep) { db in
      let devices = try Self.sharedDevices(of: container, nil, in: db).map(\.device)
      shared.withLock { $0 = devices }
      if let ban {
        guard try !Self.isDeleted(container, in: db) else { throw APIError.playerUnknown }
        try db.execute(
          sql: "INSERT OR REPLACE INTO ban (container, reason, at) VALUES (?, ?, ?)",
          arguments: [container.bytes, ban.reason, ban.sinceMilliseconds])
      } else {
        try db.execute(sql: "DELETE FROM ban WHERE container = ?", arguments: [container.bytes])
      }
      try entry.append(in: db)
    }
  }
}
#endif
