#if Cloud && PostgreSQL
import KeepsakePostgreSQL

// What is begun anew when others were in its way.
extension PostgreSQLPool {
  static let attempts = 40
  static let crowded = ServerError(
    .overloaded, "Too many requests of this player at a time; try again in a moment.")

  /// Runs a transaction whose statements don't depend on each other's answers, again if another one was in its way.
  ///
  /// - Throws: `PostgreSQLError`, after whose `unknownOutcome` it may have been done; `ServerError` with `overloaded`.
  func runUntilDone(_ statements: [PostgreSQLStatement]) async throws -> [PostgreSQLRows] {
    try await repeating(\.isConflict) { try await run(statements) }
  }

  /// Reads as `runUntilDone` does, and once more if the connection broke: that changes nothing.
  func read(_ statements: [PostgreSQLStatement]) async throws -> [PostgreSQLRows] {
    do {
      return try await runUntilDone(statements)
    } catch PostgreSQLError.unknownOutcome {
      return try await runUntilDone(statements)
    }
  }

  /// Does `body` again as long as it fails by what was in its way.
  func repeating<Result: Sendable>(
    _ isInTheWay: (PostgreSQLError) -> Bool, _ body: () async throws -> Result
  ) async throws -> Result {
    for attempt in 0..<Self.attempts {
      do {
        return try await body()
      } catch {
        guard let error = error as? PostgreSQLError, isInTheWay(error) else { throw error }
        try await Self.pause(after: attempt)
      }
    }
    throw Self.crowded
  }

  /// Waits before the next attempt, for a random time that grows with each. Holds no connection meanwhile.
  static func pause(after attempt: Int) async throws {
    try await Task.sleep(for: .microseconds(Int64.random(in: 0..<(2_000 << min(attempt, 7)))))
  }
}
#endif
