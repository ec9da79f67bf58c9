#if PostgreSQL
import Dispatch
import Foundation
import Synchronization

/// A few connections to a database, each owned by a thread of its own, so that nothing waits on the threads that all
/// tasks share.
///
/// What waits for a connection is sent together, in one round trip, each as a transaction of its own. A connection that
/// broke is made anew when something waits for it.
package final class PostgreSQLPool: Sendable {
  /// At most this many transactions are sent together.
  static let together = 64

  private struct Job: Sendable {
    var statements: [PostgreSQLStatement]
    /// Set for what needs answers before it knows what to send next.
    var session: (@Sendable (PostgreSQLConnection) -> Void)?
    var finish: @Sendable (PostgreSQLConnection.Outcome) -> Void
  }
  private struct State {
    var waiting: [Job] = []
    var isClosed = false
  }
  private let settings: PostgreSQLSettings
  private let state = Mutex(State())
  /// Signalled once for each job, and once for each thread that is to end.
  private let signal = DispatchSemaphore(value: 0)
  private let threads: Int
  private let ended = DispatchGroup()
  private let waitingLimit: Int

  /// - Parameters:
  ///   - connections: About two for each core of the database are enough.
  ///   - waiting: How many transactions may wait; further ones are refused.
  package init(_ settings: PostgreSQLSettings, connections: Int, waiting: Int = 10_000) {
    (self.settings, threads, waitingLimit) = (settings, max(1, connections), waiting)
    for number in 0..<threads {
      ended.enter()
      let thread = Thread { [self] in
        work()
        ended.leave()
      }
      thread.name = "keepsake database \(number)"
      thread.start()
    }
  }

  /// Runs a transaction: all of its statements, or none.
  ///
  /// - Throws: `PostgreSQLError`. After `unknownOutcome` it may have been committed.
  package func run(_ statements: [PostgreSQLStatement]) async throws(PostgreSQLError) -> [PostgreSQLRows] {
    let outcome: PostgreSQLConnection.Outcome = await withCheckedContinuation { continuation in
      add(Job(statements: statements, session: nil) { continuation.resume(returning: $0) })
    }
    return try outcome.get()
  }

  /// Runs `body` on a thread with a connection, as a transaction whose statements depend on each other's answers.
  ///
  /// - Throws: What `body` throws, after undoing everything; `PostgreSQLError`.
  package func transaction<Result: Sendable>(
    _ body: @escaping @Sendable (PostgreSQLTransaction) throws -> Result
  ) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      add(
        Job(statements: []) { connection in
          continuation.resume(with: Swift.Result { try PostgreSQLTransaction.run(on: connection, body) })
        } finish: { outcome in
          // Only called if there was no connection.
          if case .failure(let error) = outcome { continuation.resume(throwing: error) }
        })
    }
  }

  /// Finishes what waits, and closes all connections. Blocks.
  package func close() {
    let isFirst = state.withLock { state in
      defer { state.isClosed = true }
      return !state.isClosed
    }
    guard isFirst else { return }
    for _ in 0..<threads { signal.signal() }
    ended.wait()
  }

  private func add(_ job: Job) {
    let refusal: PostgreSQLError? = state.withLock { state in
      if state.isClosed { return .unreachable("it was closed") }
      if state.waiting.count >= waitingLimit { return .unreachable("too many transactions wait for it") }
      state.waiting.append(job)
      return nil
    }
    if let refusal { return job.finish(.failure(refusal)) }
    signal.signal()
  }

  // MARK: Threads

  private func work() {
    var connection: PostgreSQLConnection?
    while true {
      signal.wait()
      let (jobs, isOver) = state.withLock { state in (Self.next(of: &state.waiting), state.isClosed) }
      guard !jobs.isEmpty else {
        if isOver { return }
        // Another thread took it along.
        continue
      }
      do throws(PostgreSQLError) {
        let open: PostgreSQLConnection
        if let connection { open = connection } else { open = try PostgreSQLConnection(settings) }
        run(jobs, on: open)
        connection = open.isBroken ? nil : open
      } catch {
        for job in jobs { job.finish(.failure(error)) }
      }
      // What was signalled for them may have to wake another round.
      if isOver { signal.signal() }
    }
  }

  /// Removes what one connection does next: one session, or the transactions up to the next session.
  private static func next(of waiting: inout [Job]) -> [Job] {
    if waiting.first?.session != nil { return [waiting.removeFirst()] }
    let count = min(together, waiting.firstIndex { $0.session != nil } ?? waiting.count)
    defer { waiting.removeFirst(count) }
    return Array(waiting.prefix(count))
  }

  private func run(_ jobs: [Job], on connection: PostgreSQLConnection) {
    if let session = jobs[0].session { return session(connection) }
    let outcomes = connection.run(jobs.map(\.statements))
    for (job, outcome) in zip(jobs, outcomes) { job.finish(outcome) }
  }
}
#endif
