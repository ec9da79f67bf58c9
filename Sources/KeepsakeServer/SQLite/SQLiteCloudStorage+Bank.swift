#if Cloud
import Foundation
import GRDB
import KeepsakeReplication

/// What the game's own servers ask of a player's bank.
extension SQLiteCloudStorage {
  func place(of player: PlayerID) async throws -> PlayerPlace? {
    try await reading { db in
      let found = try Row.fetchOne(
        db.cachedStatement(
          // A player who has signed out everywhere may come back.
          sql: """
            SELECT container, app FROM device WHERE player = ?1
            UNION ALL SELECT container, app FROM recovery WHERE player = ?1
            UNION ALL SELECT container, app FROM identity WHERE player = ?1
            LIMIT 1
            """),
        arguments: [player.bytes])
      guard let found else { return nil }
      guard let container = try ContainerID(bytes: found.decode(atIndex: 0)) else {
        throw ServerError(.damaged, "A device's row can't be read.")
      }
      return PlayerPlace(container: container, app: AppID(bytes: try found.decode(atIndex: 1)))
    }
  }
}
#endif
