#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

/// Loads what decisions about containers read from PostgreSQL, and commits what they change there: a round trip each,
/// for which nothing is locked in between. Any number of servers may do so at a time.
///
/// Not a whole cloud yet: it has no shared containers, no codes and no identities; contents are in rows alone, and the
/// bank's old decisions aren't packed.
final class PostgreSQLStorage: DecidingStorage {
  let clock: @Sendable () -> Int64
  let pool: PostgreSQLPool

  /// Opens the database, and makes its tables if they aren't there.
  init(
    _ settings: PostgreSQLSettings, connections: Int, clock: @escaping @Sendable () -> Int64 = { 0 }
  ) async throws {
    self.clock = clock
    pool = PostgreSQLPool(settings, connections: connections)
    do {
      try await PostgreSQLSchema.prepare(pool)
    } catch {
      pool.close()
      throw error
    }
  }

  func load(_ reads: ReadSet, of container: ContainerID) async throws -> Snapshot {
    while true {
      var load = PostgreSQLLoad(container)
      load.add(reads, deletedMark: container.deletedMark)
      var snapshot = Snapshot(revision: 0, position: .start, known: reads)
      try load.read(try await read(load), into: &snapshot)
      var following = PostgreSQLLoad(container)
      following.addFollowing(reads, snapshot)
      guard following.statements.count > 1 else { return snapshot }
      let revision = snapshot.revision
      try following.read(try await read(following), into: &snapshot)
      if snapshot.revision == revision { return snapshot }
      // Somebody has changed the container in between.
    }
  }

  /// Reads once more if the connection broke, or something was in its way: that changes nothing.
  private func read(_ load: PostgreSQLLoad) async throws -> [PostgreSQLRows] {
    do {
      return try await pool.run(load.statements)
    } catch {
      if case .unknownOutcome = error {} else if !error.isConflict { throw error }
      return try await pool.run(load.statements)
    }
  }

  func commit(
    _ writes: WriteSet, of container: ContainerID, ifAt revision: UInt64, leaving: DeviceID?
  ) async throws -> Bool {
    guard leaving == nil else { throw ServerError(.missing, "Shared containers aren't kept in PostgreSQL yet.") }
    let commit = try PostgreSQLCommit(writes, of: container, ifAt: revision, now: clock())
    do {
      _ = try await pool.run(commit.statements)
      return true
    } catch {
      guard error.state == .divisionByZero || error.isConflict else { throw error }
      return false
    }
  }

  /// Records a device, or that it was here. One that was removed before stays removed.
  func recordDevice(_ device: DeviceRecord) async throws {
    let identity = device.identity
    let statement = PostgreSQLStatement(
      """
      INSERT INTO device (container, id, player, app, name, created, seen)
      SELECT $1, $2, $3, $4, $5, $6, $7 WHERE NOT EXISTS (
        SELECT 1 FROM retired WHERE (container = $1 AND device = $2) OR (container = $8 AND device = '')
      ) ON CONFLICT (container, id) DO UPDATE SET seen = excluded.seen
      """,
      [
        .bytes(identity.container.bytes), .bytes(identity.device.bytes), .bytes(identity.player.bytes),
        .bytes(identity.app.bytes), .bytes(device.name.map { Data($0.utf8) }), .int(device.createdMilliseconds),
        .int(device.seenMilliseconds), .bytes(identity.container.deletedMark),
      ])
    // Its other requests may say the same at this moment.
    for _ in 1..<ServerLimits.decisionConflicts {
      do {
        _ = try await pool.run([statement])
        return
      } catch {
        guard error.isConflict else { throw error }
      }
    }
    _ = try await pool.run([statement])
  }

  func close() { pool.close() }
}
#endif
