#if Cloud
import Dispatch
import GRDB
import KeepsakeReplication
import Synchronization

/// Commits transactions that wait at the same time together, with one wait for the disk for all of them.
///
/// A group has one transaction of each container in turn, until it has enough work: a container that wants much waits
/// for its own transactions, and the others for at most one of them.
///
/// Each runs in a savepoint of its own, so that one that throws undoes only itself.
final class GroupCommitter: Sendable {
  private struct Job: Sendable {
    /// Runs inside the shared transaction. Throws only if the whole transaction is lost.
    var run: @Sendable (Database) throws -> Void
    /// Called once, after the commit, or with the error that made it fail.
    var finish: @Sendable ((any Error)?) -> Void
    /// How many rows it writes, roughly.
    var work: Int
  }
  private struct State {
    /// The containers whose transactions wait, in the order of their turns; nil for those of no container.
    var turns: ArraySlice<ContainerID?> = []
    var waiting: [ContainerID?: [Job]] = [:]
    var count = 0
    var isRunning = false
    var observer: Observer?
    var groups = 0

    mutating func append(_ job: Job, of container: ContainerID?) {
      if waiting[container] == nil { turns.append(container) }
      waiting[container, default: []].append(job)
      count += 1
    }

    /// Removes and returns the next group.
    mutating func next() -> [Job] {
      var (group, work): ([Job], Int) = ([], 0)
      while group.count < ServerLimits.transactionsPerCommit, let container = turns.first,
        let job = waiting[container]?.first, group.isEmpty || work + job.work <= ServerLimits.workPerCommit
      {
        turns.removeFirst()
        waiting[container]?.removeFirst()
        if waiting[container]?.isEmpty == true { waiting[container] = nil } else { turns.append(container) }
        group.append(job)
        work += job.work
      }
      count -= group.count
      return group
    }
  }
  typealias Observer = CommitObserver
  private let pool: DatabasePool
  private let witness: DatabaseWitness?
  private let queue = DispatchQueue(label: "keepsake.cloud.commit")
  private let state = Mutex(State())

  /// - Parameter witness: Whose generation grows with the commits; nil for none.
  init(_ pool: DatabasePool, witness: DatabaseWitness? = nil) { (self.pool, self.witness) = (pool, witness) }

  /// How many transactions wait.
  var waitingCount: Int { state.withLock { $0.count } }
  /// How many groups were committed, with the one that is being committed.
  var groups: Int { state.withLock { $0.groups } }
  func observe(_ observer: @escaping Observer) { state.withLock { $0.observer = observer } }

  /// Runs `body` in a transaction; returns its result once the transaction is durable.
  ///
  /// - Parameters:
  ///   - container: The container that it changes; nil for one that isn't only about one.
  ///   - work: How many rows it writes, roughly.
  ///   - committed: Called once the transaction is durable, in the order of the commits, before anything after it is
  ///     committed: for what is kept in memory, too.
  /// - Throws: What `body` throws; a `ServerError` if too many wait, of this container or in all.
  func write<Result: Sendable>(
    for container: ContainerID?, work: Int = 1, committed: (@Sendable () -> Void)? = nil,
    _ body: @escaping @Sendable (Database) throws -> Result
  ) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      let box = Box(Mutex<Swift.Result<Result, any Error>?>(nil))
      let job = Job(
        run: { db in
          do {
            let result = try Self.savepoint(db) { try body(db) }
            box.value.withLock { $0 = .success(result) }
          } catch {
            box.value.withLock { $0 = .failure(error) }
            // A full disk can end the whole transaction: then no job of the group may be reported as done.
            guard db.isInsideTransaction else { throw error }
          }
        },
        finish: { failure in
          if let failure {
            continuation.resume(throwing: failure)
          } else if let result = box.value.withLock({ $0 }) {
            if case .success = result { committed?() }
            continuation.resume(with: result)
          } else {
            continuation.resume(throwing: ServerError(.inputOutput, "A transaction was not run."))
          }
        }, work: work)
      enqueue(job, of: container)
    }
  }

  private final class Box<Value: ~Copyable & Sendable>: Sendable {
    let value: Value
    init(_ value: consuming Value) { self.value = value }
  }

  private static func savepoint<Result>(_ db: Database, _ body: () throws -> Result) throws -> Result {
    var result: Result?
    try db.inSavepoint {
      result = try body()
      return .commit
    }
    guard let result else { throw ServerError(.inputOutput, "A transaction gave no result.") }
    return result
  }

  private func enqueue(_ job: Job, of container: ContainerID?) {
    enum Action { case start, wait, refuse }
    let action: Action = state.withLock { state in
      guard state.count < ServerLimits.waitingTransactions,
        container == nil || state.waiting[container]?.count ?? 0 < ServerLimits.waitingTransactionsPerPlayer
      else { return .refuse }
      state.append(job, of: container)
      if state.isRunning { return .wait }
      state.isRunning = true
      return .start
    }
    switch action {
    case .start: queue.async { self.drain() }
    case .wait: break
    case .refuse: job.finish(ServerError(.overloaded, "The server is busy; try again in a moment."))
    }
  }

  private func drain() {
    while true {
      let jobs: [Job] = state.withLock { state in
        let jobs = state.next()
        if jobs.isEmpty { state.isRunning = false } else { state.groups += 1 }
        return jobs
      }
      if jobs.isEmpty { return }
      let start = DispatchTime.now().uptimeNanoseconds
      var failure: (any Error)?
      var generation: UInt64?
      do {
        generation = try pool.write { db in
          for job in jobs { try job.run(db) }
          return try witness?.step(in: db)
        }
      } catch {
        failure = error
      }
      for job in jobs { job.finish(failure) }
      state.withLock { $0.observer }?(
        jobs.count, Int64(DispatchTime.now().uptimeNanoseconds - start), failure != nil)
      // Nobody who waits for the commit has to wait for the file.
      if failure == nil, let generation { witness?.committed(generation) }
    }
  }
}
#endif
