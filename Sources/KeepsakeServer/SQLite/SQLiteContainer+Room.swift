#if Cloud
import Foundation
import GRDB
import KeepsakeReplication

// How much room a player's data takes, which of it is removed, and which of it is damaged.
extension SQLiteContainer {
  // MARK: Room

  /// The bytes kept for the player, counted again from the rows.
  func recountedBytes() throws -> Int64 {
    var sum = try row("SELECT total(size) FROM content WHERE container = ?", [id])?.decode(Int64.self, atIndex: 0) ?? 0
    try eachChange(after: 0) { change in
      switch change.change.item {
      case .cell(let update): sum += Int64(update.size)
      case .version(let record): sum += Int64(record.size)
      }
      return true
    }
    return sum
  }

  // MARK: Damage

  func suspectContents() throws -> [ContentHash] {
    let found = try rows(
      "SELECT hash FROM content WHERE container = ? AND suspect = 1 ORDER BY hash LIMIT ?",
      [id, ServerLimits.suspectsAtOnce])
    return try found.map { try contentHash($0.decode(atIndex: 0)) }
  }

  func heads(needing hash: ContentHash) throws -> [VersionID] {
    let found = try rows(
      """
      WITH RECURSIVE needing (hash) AS (
        VALUES (?2) UNION SELECT content.hash FROM content JOIN needing ON content.base = needing.hash
        WHERE content.container = ?1
      )
      SELECT DISTINCT holder.version FROM holder JOIN needing ON holder.hash = needing.hash
      WHERE holder.container = ?1 AND NOT EXISTS (SELECT 1 FROM covered WHERE covered.container = ?1
      AND covered.id = holder.version)
      ORDER BY holder.version
      """, [id, hash.bytes])
    return try found.map { try identifier($0.decode(atIndex: 0)) }
  }
}
#endif
