#if PostgreSQL
import Dispatch
import Foundation
import KeepsakePlatform
import Synchronization

/// A few connections to a database, each owned by a thread of its own, so that nothing waits on the threads that all
/// tasks share.
///
/// What waits for a connection is sent together, in one round trip, each as a transaction of its own. A connection that
/// broke is made anew when something waits for it; as long as another one can't be made, as where the database takes no
/// more of them, everything is done over those that are there.
package final class PostgreSQLPool: Sendable {
  /// At most this many transactions are sent together, unless the first one alone has more bytes.
  static let together = 64
  static let bytesTogether = 4 << 20

  private struct Job: Sendable {
    var statements: [PostgreSQLStatement]
    var bytes = 0
    /// Since when it waits.
    let since = ContinuousClock.now
    /// It isn't done if more connections than these have been made.
    var connections: Int?
    /// Set for what needs answers before it knows what to send next.
    var session: (@Sendable (PostgreSQLConnection) -> Void)?
    var finish: @Sendable (PostgreSQLConnection.Outcome) -> Void
  }
  private struct State {
    var waiting: [Job] = []
    var isClosed = false
    /// How many threads have a connection, or are making one.
    var connected = 0
  }
  package let settings: PostgreSQLSettings
  private let state = Mutex(State())
  private let made = Atomic(0)
  /// Signalled once for each job, and once for each thread that is to end.
  private let signal = DispatchSemaphore(value: 0)
  /// How many there are at most.
  private let threads: Int
  private let running: Mutex<[LibraryThread]>
  private let waitingLimit: Int

  /// - Parameters:
  ///   - connections: About two for each core of the database are enough.
  ///   - waiting: How many transactions may wait; further ones are refused.
  package init(_ settings: PostgreSQLSettings, connections: Int, waiting: Int = 10_000) {
    (self.settings, threads, waitingLimit) = (settings, max(1, connections), waiting)
    running = Mutex([])
    for _ in 0..<threads {
      guard let thread = LibraryThread("keepsake database", { [self] in work() }) else { break }
      running.withLock { $0.append(thread) }
    }
  }

  /// How many connections have been made so far.
  package var connectionsMade: Int { made.load(ordering: .acquiring) }

  /// How many transactions wait for a connection.
  package var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// Runs a transaction: all of its statements, or none.
  ///
  /// - Parameter connections: It is refused with a conflict if more connections than these have been made.
  /// - Throws: `PostgreSQLError`. After `unknownOutcome` it may have been committed.
  package func run(
    _ statements: [PostgreSQLStatement], ifConnectionsMade connections: Int? = nil
  ) async throws(PostgreSQLError) -> [PostgreSQLRows] {
    let outcome: PostgreSQLConnection.Outcome = await withCheckedContinuation { continuation in
      let bytes = statements.reduce(0) { $0 + $1.byteCount }
      add(
        Job(statements: statements, bytes: bytes, connections: connections) { continuation.resume(returning: $0) })
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
    let running = running.withLock { $0 }
    if isFirst { for _ in running { signal.signal() } }
    for thread in running { thread.join() }
  }

  /// Does the same, on a thread of its own: those that all tasks share mustn't wait for what is still running.
  package func finish() async {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread { [self] in
        close()
        continuation.resume()
      }
    }
  }

  private func add(_ job: Job) {
    let refusal: PostgreSQLError? = state.withLock { state in
      if state.isClosed { return .unreachable("it was closed") }
      if running.withLock(\.isEmpty) { return .unreachable("the system can't have another thread") }
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
    defer { if connection != nil { count(-1) } }
    while true {
      signal.wait()
      let (jobs, isOver) = state.withLock { state in (next(of: &state.waiting), state.isClosed) }
      guard !jobs.isEmpty else {
        if isOver { return }
        // Another thread took it along.
        continue
      }
      do throws(PostgreSQLError) {
        let open = try usable(&connection)
        run(jobs, on: open)
        if !open.isIdle {
          connection = nil
          count(-1)
        }
      } catch {
        giveBack(jobs, error)
      }
      // What was signalled for them may have to wake another round.
      if isOver { signal.signal() }
    }
  }

  private func count(_ change: Int) { state.withLock { $0.connected += change } }

  /// Returns a thread's connection, or another one if the server has ended it. In place of one to a server that takes
  /// no changes any more, one to a server that does, if there is one: reading goes on meanwhile.
  private func usable(_ connection: inout PostgreSQLConnection?) throws(PostgreSQLError) -> PostgreSQLConnection {
    if let known = connection, !known.hasUnexpected {
      guard known.shouldBeReplaced else { return known }
      guard let other = try? PostgreSQLConnection(settings) else {
        known.keepForNow()
        return known
      }
      made.add(1, ordering: .acquiringAndReleasing)
      connection = other
      return other
    }
    if connection == nil { count(1) }
    connection = nil
    do throws(PostgreSQLError) {
      let new = try PostgreSQLConnection(settings)
      made.add(1, ordering: .acquiringAndReleasing)
      connection = new
      return new
    } catch {
      count(-1)
      throw error
    }
  }

  /// Leaves what can't be done without a connection to the threads that have one, or are making one. If there are none,
  /// all that waits fails: it would be the same for each, one time limit after the other.
  private func giveBack(_ jobs: [Job], _ error: PostgreSQLError) {
    let oldest = ContinuousClock.now - .seconds(2 * settings.connectSeconds)
    let (failed, returned) = state.withLock { state in
      guard state.connected > 0 else {
        defer { state.waiting = [] }
        return (jobs + state.waiting, 0)
      }
      // As where the machine is gone to which they are connected, which each of them finds out by itself.
      let young = jobs.filter { $0.since > oldest }
      state.waiting.insert(contentsOf: young, at: 0)
      return (jobs.filter { $0.since <= oldest }, young.count)
    }
    for job in failed { job.finish(.failure(error)) }
    guard returned > 0 else { return }
    for _ in 0..<returned { signal.signal() }
    // The others take them, and this thread doesn't try again at once.
    Thread.sleep(forTimeInterval: Self.secondsBetweenAttempts)
  }

  private static let secondsBetweenAttempts = 1.0

  /// Removes what one connection does next: one session, or its share of the transactions up to the next session.
  private func next(of waiting: inout [Job]) -> [Job] {
    if waiting.first?.session != nil { return [waiting.removeFirst()] }
    let share = min(Self.together, (waiting.count + threads - 1) / threads)
    var (count, bytes) = (0, 0)
    while count < share, waiting[count].session == nil, count == 0 || bytes + waiting[count].bytes <= Self.bytesTogether
    {
      bytes += waiting[count].bytes
      count += 1
    }
    defer { waiting.removeFirst(count) }
    return Array(waiting.prefix(count))
  }

  private func run(_ jobs: [Job], on connection: PostgreSQLConnection) {
    if let session = jobs[0].session { return session(connection) }
    let made = connectionsMade
    let isCurrent = { (job: Job) in job.connections.map { $0 == made } ?? true }
    let current = jobs.filter(isCurrent)
    for job in jobs where !isCurrent(job) {
      job.finish(.failure(.refused(.serializationFailure, message: "another connection has been made")))
    }
    if current.isEmpty { return }
    connection.run(current.map(\.statements)) { index, outcome in current[index].finish(outcome) }
  }
}
#endif
