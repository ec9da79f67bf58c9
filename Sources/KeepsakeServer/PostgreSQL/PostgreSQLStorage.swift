#if Cloud && PostgreSQL
import Dispatch
import Foundation
import HTTPTypes
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging
import Synchronization

/// A cloud in a PostgreSQL database: loads what decisions about containers read, and commits what they change, a round
/// trip each, for which nothing is locked in between. Any number of servers may do so at a time.
///
/// Everything is in rows, large contents in parts. The bank's old decisions stay as they are.
final class PostgreSQLStorage: CloudStorage {
  struct State {
    /// The epoch that every bank has to reach.
    var epoch: UInt64 = 0
    /// Players whose devices are refused for now.
    var bans = Ban.All()
  }
  let clock: @Sendable () -> Int64
  let logger: Logger
  let pool: PostgreSQLPool
  let observer = Mutex<CommitObserver?>(nil)
  /// What was known of the whole cloud when it was last looked at (`refresh`).
  let state = Mutex(State())

  /// Opens the database, and makes its tables if they aren't there. One that was set back to a backup begins a new
  /// epoch if that is said in it (`keepsake bank restored`); otherwise when a device shows it.
  init(
    _ settings: PostgreSQLSettings, connections: Int, clock: @escaping @Sendable () -> Int64 = { 0 },
    logger: Logger = Logger(label: "keepsake.server")
  ) async throws {
    (self.clock, self.logger) = (clock, logger)
    pool = PostgreSQLPool(settings, connections: connections)
    do {
      try await PostgreSQLSchema.prepare(pool)
      try await refresh()
    } catch {
      pool.close()
      throw error
    }
  }

  func load(_ reads: ReadSet, of container: ContainerID) async throws -> Snapshot {
    for attempt in 0..<Self.attempts {
      var load = PostgreSQLLoad(container)
      load.add(reads, deletedMark: container.deletedMark)
      var snapshot = Snapshot(revision: 0, position: .start, known: reads)
      try load.read(try await read(load.statements), into: &snapshot)
      var following = PostgreSQLLoad(container)
      following.addFollowing(reads, snapshot)
      guard following.statements.count > 1 else { return snapshot }
      let revision = snapshot.revision
      try following.read(try await read(following.statements), into: &snapshot)
      if snapshot.revision == revision { return snapshot }
      // Somebody has changed the container in between.
      try await pause(after: attempt)
    }
    throw Self.crowded
  }

  /// Reads once more if the connection broke, or something was in its way: that changes nothing.
  func read(_ statements: [PostgreSQLStatement]) async throws -> [PostgreSQLRows] {
    do {
      return try await pool.run(statements)
    } catch {
      if case .unknownOutcome = error {} else if !error.isConflict { throw error }
      return try await pool.run(statements)
    }
  }

  /// Runs `body` as a transaction whose statements depend on each other's answers, again if another one was in its way.
  ///
  /// - Throws: What `body` throws, with nothing changed; `PostgreSQLError`, after whose `unknownOutcome` it may have
  ///   been done.
  @discardableResult
  func transaction<Result: Sendable>(
    _ body: @escaping @Sendable (PostgreSQLTransaction) throws -> Result
  ) async throws -> Result {
    for attempt in 0..<Self.attempts {
      do {
        return try await pool.transaction(body)
      } catch {
        // Two that add the same row at a time are in each other's way, too.
        guard let error = error as? PostgreSQLError, error.isConflict || error.state == .uniqueViolation else {
          throw error
        }
        try await pause(after: attempt)
      }
    }
    throw Self.crowded
  }

  private static let attempts = 40
  private static let crowded = ServerError(
    .overloaded, "Too many requests of this player at a time; try again in a moment.")

  /// Longer each time, and not all at once: whoever waits here holds no connection.
  private func pause(after attempt: Int) async throws {
    try await Task.sleep(for: .microseconds(Int64.random(in: 0..<(2_000 << min(attempt, 7)))))
  }

  func commit(
    _ writes: WriteSet, of container: ContainerID, ifAt revision: UInt64, leaving: DeviceID?
  ) async throws -> Bool {
    let commit = try PostgreSQLCommit(writes, of: container, ifAt: revision, leaving: leaving, now: clock())
    let start = DispatchTime.now().uptimeNanoseconds
    func observe(hasFailed: Bool) {
      observer.withLock(\.self)?(1, Int64(DispatchTime.now().uptimeNanoseconds - start), hasFailed)
    }
    do {
      _ = try await pool.run(commit.statements)
      observe(hasFailed: false)
      return true
    } catch {
      observe(hasFailed: true)
      if error.state == PostgreSQLCommit.sharedLeft { throw SharedLeft() }
      if error.state == PostgreSQLCommit.swept {
        throw APIError(
          .serviceUnavailable, .busy, "This content was sent too long ago; send it again.", retryAfterSeconds: 1)
      }
      let isFirstTaken = revision == 0 && error.state == .uniqueViolation
      guard isFirstTaken || error.state == .divisionByZero || error.isConflict else { throw error }
      return false
    }
  }

  func close() async throws {
    // Not on the threads that all requests share: it waits for what is still running.
    await withCheckedContinuation { continuation in
      Thread.detachNewThread { [pool] in
        pool.close()
        continuation.resume()
      }
    }
  }
}
#endif
