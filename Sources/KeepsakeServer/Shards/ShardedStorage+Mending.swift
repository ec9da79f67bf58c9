#if Cloud && PostgreSQL
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging

/// What servers do about all databases now and then: whatever a server or a mover that ended has left half-done, one of
/// them finishes.
extension ShardedStorage {
  private static let mendedAtOnce = 100

  func lookAfter() async throws {
    for container in try await directory.unfinished(limit: Self.mendedAtOnce) {
      do {
        try await mend(container)
      } catch {
        // The others may be mended, also if there are many of these.
        logger.failure("What was left of a move can't be finished now", error)
        try await directory.postpone(container)
      }
    }
  }

  private func mend(_ container: ContainerID) async throws {
    do {
      if try await directory.placement(of: container)?.isDeleting == true {
        return try await mendDeletion(of: container)
      }
      try await mover.settle(container, cleans: true)
    } catch let error as APIError where error.code == ShardMover.busy.code {
      // Somebody else does.
    } catch is ShardMover.Overtaken {
      // Somebody else has done so, or the player lives in two databases, since one was set back to a backup.
      try await directory.postpone(container)
    }
  }

  private func mendDeletion(of container: ContainerID) async throws {
    if try await at(container, { try await $0.isDeleted(container) }) {
      try await finishDeletion(of: container, now: clock())
    } else {
      // Another server may still be at it: nobody is moved in the meantime.
      try await directory.giveUpDeletion(of: container)
    }
  }

  /// Returns which bytes, in a place that all databases share, are needed by players who don't live at home, whatever
  /// home says of where they live.
  func needed(_ keys: [ContentKey]) async throws -> Set<ContentKey> {
    let statement = PostgreSQLStorage.known(keys)
    let needed = try await ask(butNot: home) { storage in
      try await storage.read([statement])[0].map { try ContentKey(try $0.text(1), of: $0.identifier(0)) }
    }.flatMap(\.answer)
    // Who has been moved meanwhile may not have been in either database.
    let moving = PostgreSQLStatement(
      """
      SELECT container FROM placement
      WHERE container = ANY($1) AND (moving_to IS NOT NULL OR since > \(DatabaseClock.now) - 300000)
      """, [.list(Set(keys.map(\.container)).map(\.bytes))])
    let moved = Set(try await home.read([moving])[0].map { try $0.identifier(0) as ContainerID })
    return Set(needed + keys.filter { moved.contains($0.container) })
  }
}
#endif
