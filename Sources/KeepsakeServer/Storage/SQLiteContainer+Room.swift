#if Cloud
import Foundation
import GRDB
import KeepsakeReplication

// How much room a player's data takes, which of it is removed, and which of it is damaged.
extension SQLiteContainer {
  // MARK: Room

  func usedBytes() throws -> Int64 {
    try row("SELECT used FROM usage WHERE container = ?", [id]).map { try $0.decode(atIndex: 0) } ?? 0
  }

  /// The same, counted again from the rows.
  func recountedBytes() throws -> Int64 {
    let sum = try row(
      """
      SELECT (SELECT total(length(state)) FROM cell WHERE container = ?1) + (SELECT total(length(record)) FROM version
      WHERE container = ?1)
        + (SELECT total(coalesce(length(bytes), size)) FROM content WHERE container = ?1)
      """, [id])
    return Int64(try sum?.decode(Double?.self, atIndex: 0) ?? 0)
  }

  func replacedHolders(in slot: String?) throws -> [SlotVersion] {
    let found = try rows(
      """
      SELECT DISTINCT slot, version FROM holder WHERE container = ?1 AND (?2 IS NULL OR slot = ?2)
        AND EXISTS (SELECT 1 FROM covered WHERE covered.container = ?1 AND covered.id = holder.version)
      ORDER BY slot, version
      """, [id, slot.map(bytes)])
    return try found.map {
      SlotVersion(
        slot: String(decoding: try $0.decode(Data.self, atIndex: 0), as: UTF8.self),
        version: try identifier($0.decode(atIndex: 1)))
    }
  }

  mutating func releaseContents(of version: VersionID) throws {
    guard
      let slot = try row("SELECT slot FROM version WHERE container = ? AND id = ?", [id, version.bytes])?
        .decode(Data?.self, atIndex: 0) ?? nil
    else { return }
    let held = try rows(
      "DELETE FROM holder WHERE container = ? AND slot = ? AND version = ? RETURNING hash", [id, slot, version.bytes])
    for row in held { try removeUnneeded(row.decode(atIndex: 0)) }
  }

  /// Removes a content that no version holds and that is no other content's base, and then its own base likewise.
  private mutating func removeUnneeded(_ hash: Data) throws {
    var next: Data? = hash
    while let hash = next {
      let found = try row(
        """
        DELETE FROM content WHERE container = ?1 AND hash = ?2
          AND NOT EXISTS (SELECT 1 FROM holder WHERE container = ?1 AND hash = ?2)
          AND NOT EXISTS (SELECT 1 FROM content AS leaning WHERE leaning.container = ?1 AND leaning.base = ?2)
        RETURNING base, file
        """, [id, hash])
      if let name = try found?.decode(String?.self, atIndex: 1) ?? nil { removedFiles.append(name) }
      next = try found?.decode(atIndex: 0)
    }
  }

  mutating func removeStrayContents(before milliseconds: Int64) throws {
    let strays = try rows(
      """
      SELECT hash FROM content WHERE container = ?1 AND taken < ?2
        AND NOT EXISTS (SELECT 1 FROM holder WHERE holder.container = ?1 AND holder.hash = content.hash)
        AND NOT EXISTS (SELECT 1 FROM content AS leaning WHERE leaning.container = ?1 AND leaning.base = content.hash)
      ORDER BY hash LIMIT ?3
      """, [id, milliseconds, ServerLimits.straysAtOnce])
    for row in strays { try removeUnneeded(row.decode(atIndex: 0)) }
  }

  // MARK: Damage

  func suspectContents() throws -> [ContentHash] {
    let found = try rows(
      "SELECT hash FROM content WHERE container = ? AND suspect = 1 ORDER BY hash LIMIT ?",
      [id, ServerLimits.suspectsAtOnce])
    return try found.map { try contentHash($0.decode(atIndex: 0)) }
  }

  mutating func suspectContent(_ hash: ContentHash) throws {
    try run("UPDATE content SET suspect = 1 WHERE container = ? AND hash = ? AND suspect = 0", [id, hash.bytes])
  }

  func isSuspect(_ hash: ContentHash) throws -> Bool {
    try row("SELECT 1 FROM content WHERE container = ? AND hash = ? AND suspect = 1", [id, hash.bytes]) != nil
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
