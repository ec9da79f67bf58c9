import Foundation
import GRDB
import KeepsakeReplication

/// Removes contents that only other contents need.
///
/// After history is pruned, its contents stay as long as newer ones have them as their base. When there are enough of
/// them in a row, the content above is encoded again, against the one below that is still needed, and the row can be
/// removed. So a store grows with the versions that it keeps, not with those that it has seen, at the cost of one more
/// compression in thirty-two saves.
struct ContentCompaction {
  /// How many contents in a row may wait to be removed.
  static let longestRow = 32

  let transaction: StoreTransaction

  /// Shortens the chain below each of `hashes`, contents that no version needs any more.
  ///
  /// `collecting` deletes contents that are no longer needed, and their bases likewise.
  func shorten(_ hashes: [ContentHash], collecting: ([ContentHash]) throws -> Void) throws {
    for hash in hashes {
      let row = try row(below: hash)
      guard row.count > Self.longestRow, let end = row.last, let dependent = try onlyDependent(of: hash),
        !row.contains(where: transaction.contents.memory.isHeld)
      else { continue }
      try encodeAnew(dependent, against: end)
      try collecting([hash])
    }
  }

  /// Returns the contents from `hash` down that exist only as the base of one other, followed by the one that all of
  /// them build on. That is the first one that has another use or, if there is none, the full frame: it may serve for a
  /// long time before another one has to be written.
  private func row(below hash: ContentHash) throws -> [ContentHash] {
    let isMereBase = """
      NOT EXISTS (SELECT 1 FROM content_use WHERE content_use.hash = content.hash)
      AND (SELECT COUNT(*) FROM (SELECT 1 FROM content AS other WHERE other.base = content.hash LIMIT 2)) = 1
      """
    let statement = try transaction.statement(
      """
      WITH RECURSIVE line (hash, base, depth) AS (
        SELECT hash, base, 0 FROM content WHERE hash = ?1 AND \(isMereBase)
        UNION ALL
        SELECT content.hash, content.base, depth + 1 FROM line JOIN content ON content.hash = line.base
        WHERE \(isMereBase) AND depth <= \(DecodingCost.maximumDepth))
      SELECT hash, base FROM line ORDER BY depth
      """)
    let rows = try Row.fetchAll(statement, arguments: [hash.bytes])
    var row = try rows.map { try Self.name($0.checked(at: 0, "hash")) }
    if let last = rows.last, let base: Data = try last.checkedOptional(at: 1, "base") {
      row.append(try Self.name(base))
    }
    return row
  }

  private static func name(_ bytes: Data) throws -> ContentHash {
    guard let hash = ContentHash(bytes: bytes) else {
      throw StoreError(.damaged, "a content of the store has an invalid hash")
    }
    return hash
  }

  private func encodeAnew(_ hash: ContentHash, against base: ContentHash) throws {
    let contents = transaction.contents
    do {
      let plain = try contents.plain(hash)
      var base = try contents.base(from: base, for: plain.count, of: plain.count)
      base?.isNearest = false
      try contents.insert(.encoding(plain, as: hash, against: base))
    } catch let error as StoreError where error.code == .damaged {
      // What can't be read stays as it is, in case it can still be repaired.
      return
    }
  }

  /// Returns the single content that has `hash` as its base. A base of several is worth keeping.
  private func onlyDependent(of hash: ContentHash) throws -> ContentHash? {
    let statement = try transaction.statement("SELECT hash FROM content WHERE base = ? LIMIT 2")
    let dependents = try Data.fetchAll(statement, arguments: [hash.bytes])
    return dependents.count == 1 ? ContentHash(bytes: dependents[0]) : nil
  }
}
