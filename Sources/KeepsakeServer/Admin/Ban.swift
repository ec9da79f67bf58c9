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

  static func all(in db: Database) throws -> [ContainerID: Ban] {
    try Row.fetchAll(db, sql: "SELECT container, reason, at FROM ban").reduce(into: [:]) { bans, row in
      guard let container = try ContainerID(bytes: row.decode(atIndex: 0)) else {
        throw ServerError(.damaged, "A ban's row can't be read.")
      }
      bans[container] = Ban(reason: try row.decode(atIndex: 1), sinceMilliseconds: try row.decode(atIndex: 2))
    }
  }
}

extension SQLiteCloudStorage {
  func ban(of container: ContainerID) -> Ban? { bans.withLock { $0[container] } }

  /// Bans a player, or lifts that with nil. A ban that was made before is replaced.
  ///
  /// - Throws: `APIError.playerUnknown` if everything of the player was deleted meanwhile: nothing of it comes back.
  func setBan(_ ban: Ban?, of container: ContainerID, auditing entry: AuditEntry) async throws {
    let keep: @Sendable () -> Void = { self.bans.withLock { $0[container] = ban } }
    try await committer.write(for: container, committed: keep) { db in
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
