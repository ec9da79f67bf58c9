#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging
import Synchronization

/// Removes the bytes of large contents that nothing needs any more: first the row says so, in a transaction that no
/// commit which names them survives, then the bytes go, and then the row.
extension PostgreSQLStorage {
  /// For how long a content that was sent may wait until a row names it.
  static let unnamedMilliseconds: Int64 = 24 * 3_600_000
  /// After this long, what a server has begun to remove is tried again, by any of them.
  private static let removalMilliseconds: Int64 = 600_000
  private static let removedAtOnce: Int64 = 100
  /// How old bytes are of which the database knows nothing, before they are removed: a database that was set back by
  /// less than this may still be replaced by the newer one.
  static let unknownMilliseconds: Int64 = 30 * 24 * 3_600_000
  private static let listedAtOnce = 1_000

  /// Gives up what no row has named since that time. Those that a row names have the time that never comes
  /// (`PostgreSQLCommit`).
  static func givingUp(before milliseconds: Int64, _ limit: PostgreSQLValue) -> PostgreSQLStatement {
    PostgreSQLStatement(
      """
      UPDATE content_object SET taken = -1 WHERE (container, name) IN (
        SELECT container, name FROM content_object
        WHERE taken BETWEEN 0 AND $1 - 1 AND taken < 9223372036854775807 ORDER BY taken LIMIT $2)
      """, [.int(milliseconds), limit])
  }

  /// Removes what was given up, until nothing is left, or one can't be removed.
  func removeGivenUp(now: Int64) async throws {
    while try await removeSome(of: nil, due: now, now: now) > 0 {}
  }

  /// Removes the large contents of a deleted player. What is left is swept.
  ///
  /// - Returns: Whether nothing is left.
  func removeGivenUp(of container: ContainerID) async throws -> Bool {
    do {
      // Also what another server has begun to remove: it may never finish.
      while try await removeSome(of: container, due: .max, now: clock()) > 0 {}
      let left = PostgreSQLStatement(
        "SELECT 1::bigint FROM content_object WHERE container = $1 LIMIT 1", [.bytes(container.bytes)])
      return try await read([left])[0].first == nil
    } catch {
      logger.failure("Large contents of a deleted player can't be removed now", error)
      return false
    }
  }

  /// Claims some that were given up, of one player or of all, and removes them.
  ///
  /// - Parameter due: Those whose removal isn't to be tried before that are left.
  /// - Returns: How many were removed.
  /// - Throws: Why one of them couldn't be removed, after trying all that were claimed unless the place is down.
  private func removeSome(of container: ContainerID?, due: Int64, now: Int64) async throws -> Int {
    // Other servers leave what this one removes alone, and whatever stops it, one of them removes the rest later.
    let claim = PostgreSQLStatement(
      """
      UPDATE content_object SET taken = $1 WHERE (container, name) IN (
        SELECT container, name FROM content_object
        WHERE taken BETWEEN $2 AND -1 AND taken < 9223372036854775807 AND ($3::bytea IS NULL OR container = $3)
        LIMIT $4 FOR UPDATE SKIP LOCKED)
      RETURNING container, name, place
      """,
      [
        .int(-now.addingClamped(Self.removalMilliseconds)), .int(-due), .bytes(container?.bytes),
        .int(Self.removedAtOnce),
      ])
    let rows = try await run([claim])[0]
    var failure: (any Error)?
    for row in rows {
      do {
        let key = try ContentKey(try row.text(1), of: row.identifier(0))
        try await places.named(try row.text(2)).delete(key)
        _ = try await run([
          PostgreSQLStatement(
            "DELETE FROM content_object WHERE container = $1 AND name = $2 AND taken < 0",
            [.bytes(key.container.bytes), .bytes(Data(key.name.utf8))])
        ])
      } catch {
        failure = error
        // What is down stays so for the rest, each of which would take its time.
        if (error as? ContentStorageError)?.isPassing == true { break }
      }
    }
    if let failure { throw failure }
    return rows.count
  }

  /// Finds the bytes among these that a database knows.
  static func known(_ keys: [ContentKey]) -> PostgreSQLStatement {
    PostgreSQLStatement(
      """
      SELECT container, name FROM content_object
      WHERE (container, name) IN (SELECT * FROM unnest($1::bytea[], $2::bytea[]))
      """, [.list(keys.map(\.container.bytes)), .list(keys.map { Data($0.name.utf8) })])
  }

  /// Removes bytes of which the database knows nothing, as after a restore of the database alone: looks at one page of
  /// the place in which contents are put.
  func removeUnknown(now: Int64) async throws {
    let storage = try places.first
    // Of several databases with one place, the first one looks for all.
    guard storage.name != ContentRows.name, !isShard || isHome else { return }
    let page = try await storage.list("", after: try places.listed.withLock(\.self), limit: Self.listedAtOnce)
    let old = now.addingClamped(-Self.unknownMilliseconds)
    let suspects = page.entries.filter { $0.storedMilliseconds < old }.map(\.key)
    if !suspects.isEmpty {
      var known = Set(
        try await read([Self.known(suspects)])[0].map { try ContentKey(try $0.text(1), of: $0.identifier(0)) })
      if let elsewhere = knownElsewhere.withLock(\.self) {
        known.formUnion(try await elsewhere(suspects.filter { !known.contains($0) }))
      }
      for key in suspects where !known.contains(key) {
        logger.notice("Bytes of which the database knows nothing are removed", metadata: ["name": "\(key.name)"])
        try await storage.delete(key)
      }
    }
    if page.next == nil { try await storage.tidy(before: now.addingClamped(-Self.unnamedMilliseconds)) }
    try places.listed.withLock { $0 = page.next }
  }
}
#endif
