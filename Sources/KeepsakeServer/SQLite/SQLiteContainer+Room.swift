#if Cloud
import Foundation
import GRDB
import KeepsakeReplication

// How much room a player's data takes, which of it is removed, and which of it is damaged.
extension SQLiteContainer {
  // MARK: Room

  /// The bytes kept for the player, counted again from the rows.
  func recountedBytes() throws -> Int64 {
    var sum =
      try row("SELECT total(size) FROM content WHERE container = ?", [number])?.decode(Int64.self, atIndex: 0) ?? 0
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
      [number, ServerLimits.suspectsAtOnce])
    return try found.map { try contentHash($0.decode(atIndex: 0)) }
  }

  /// Returns the heads that need a content, directly or as a base. Looks at every head, and the bases of its contents.
  func heads(needing hash: ContentHash) throws -> [VersionID] {
    let heads = try rows(
      """
      SELECT seq, id, version.slot, record FROM head JOIN version ON version.number = head.version
      WHERE head.container = ?
      """, [number]
    ).map(sequencedVersion)
    // Whether a content needs it; each is looked at once.
    var needs = [hash: true]
    func needsIt(_ content: ContentHash) throws -> Bool {
      var (path, next): ([ContentHash], ContentHash?) = ([], content)
      while let step = next, needs[step] == nil {
        needs[step] = false
        path.append(step)
        next = try row("SELECT \(Self.base) FROM content WHERE \(Self.isNamed)", [number, step.bytes])?
          .decode(Data?.self, atIndex: 0).map(contentHash)
      }
      guard let end = next, needs[end] == true else { return false }
      for step in path { needs[step] = true }
      return true
    }
    return try heads.filter { try $0.record.contents.contains(where: needsIt) }.map(\.record.id).sorted()
  }
}
#endif
