import Dispatch
package import Foundation
import GRDB
import KeepsakePlatform
import KeepsakeReplication
import Synchronization

/// A save's bytes, and the slot whose versions they probably resemble.
package typealias SaveBytes = (slot: String, bytes: Data)

/// Accepts commits immediately and makes them durable in order, off the caller's thread. Contents are hashed and
/// compressed first; then everything in the queue goes into one transaction, with a savepoint per commit.
///
/// At most `maximumWaiting` commits wait, and those that wait or are being written hold at most `maximumWaitingBytes`
/// bytes. A further commit blocks its caller until there is room, so that a disk slower than the game can't fill the
/// memory.
final class CommitQueue: Sendable {
  static let maximumWaiting = 64
  /// One content of the maximum size fits, so that no commit waits forever.
  static let maximumWaitingBytes = EncodedContent.maximumContentBytes

  /// One commit in the queue.
  struct Job: Sendable {
    var saves: [SaveBytes]
    /// Runs within the transaction in which the saves are stored. Updates the lineage that the previous job left.
    var apply: @Sendable (inout StoreTransaction, [PreparedSave], inout SaveLineage) throws -> Void
    /// Runs on the queue when the transaction is durable or has failed.
    var finish: @Sendable ((any Error)?) -> Void

    var byteCount: Int { saves.reduce(0) { $0 + $1.bytes.count } }
  }

  private struct Waiting {
    var jobs: [Job] = []
    /// The bytes of these jobs and of those being written.
    var bytes = 0
    var running = false
    var closed = false
    /// While it is running: its number among what the process finishes before it ends.
    var exitWork: UInt64?
  }

  private let database: StoreDatabase
  private let keeper: ContentKeeper
  private let queue = DispatchQueue(label: "keepsake.store.commit", qos: .userInitiated)
  private let waiting = Mutex(Waiting())
  /// Signalled when there is room. Waiters check the locked state above again after each signal.
  private let room = MonotonicCondition()
  /// The lineage that the durable commits left. Only the queue changes it.
  private let lineage = Mutex(SaveLineage())

  init(database: StoreDatabase) {
    self.database = database
    keeper = ContentKeeper(database: database)
  }

  /// Adds a job to the end of the queue. Blocks while the queue is full.
  ///
  /// - Throws: `timedOut`, without having accepted the job, if the queue is still full at the deadline; `tooLarge` for
  ///   more bytes than the queue holds; `misuse` after `close`.
  func submit(_ job: Job, until deadline: ContinuousClock.Instant? = nil) throws {
    let bytes = job.byteCount
    guard bytes <= Self.maximumWaitingBytes else {
      throw StoreError(.tooLarge, "a save of \(bytes) bytes is larger than \(Self.maximumWaitingBytes) bytes")
    }
    room.lock()
    defer { room.unlock() }
    while true {
      let (taken, starts) = try waiting.withLock { waiting -> (Bool, Bool) in
        guard !waiting.closed else { throw StoreError(.misuse, "the store is closed") }
        guard
          waiting.bytes == 0 && waiting.jobs.isEmpty
            || waiting.jobs.count < Self.maximumWaiting && waiting.bytes + bytes <= Self.maximumWaitingBytes
        else { return (false, false) }
        waiting.jobs.append(job)
        waiting.bytes += bytes
        let starts = !waiting.running
        waiting.running = true
        return (true, starts)
      }
      if starts { start() }
      if taken { return }
      guard let deadline else {
        room.wait()
        continue
      }
      guard deadline > .now else {
        throw StoreError(
          .timedOut,
          """
          the disk is too slow: the commit was not accepted in time; those that were accepted before are still being \
          written
          """)
      }
      room.wait(until: deadline)
    }
  }

  /// Stops accepting jobs. Jobs already in the queue still run.
  func close() {
    room.lock()
    waiting.withLock { $0.closed = true }
    room.broadcast()
    room.unlock()
  }

  /// Checkpoints the write-ahead log if that is due, after the jobs submitted so far.
  func checkpointIfDue() {
    guard database.isCheckpointDue else { return }
    queue.async { [database] in database.checkpointIfDue() }
  }

  private func start() {
    let number = ExitWork.begin { deadline in
      self.room.withLock { self.room.wait(until: deadline) { self.waiting.withLock { !$0.running } } }
    }
    waiting.withLock { $0.exitWork = number }
    queue.async { self.run() }
  }

  private func run() {
    while let batch = nextBatch() {
      commit(batch)
      makeRoom(batch.reduce(0) { $0 + $1.byteCount })
      database.checkpointIfDue()
    }
  }

  private func nextBatch() -> [Job]? {
    room.lock()
    defer { room.unlock() }
    let (batch, finished) = waiting.withLock { waiting -> ([Job], UInt64?) in
      let batch = waiting.jobs
      waiting.jobs = []
      guard batch.isEmpty else { return (batch, nil) }
      waiting.running = false
      return ([], waiting.exitWork.take())
    }
    if let finished { ExitWork.end(finished) }
    room.broadcast()
    return batch.isEmpty ? nil : batch
  }

  private func makeRoom(_ bytes: Int) {
    room.lock()
    waiting.withLock { $0.bytes -= bytes }
    room.broadcast()
    room.unlock()
  }

  private func commit(_ jobs: [Job]) {
    var failures: [Int: any Error] = [:]
    var batch = ContentKeeper.Batch()
    let prepared = keeper.prepare(jobs.map(\.saves), in: &batch)
    for (index, commit) in prepared.enumerated() {
      // Its own commit hasn't begun.
      if var error = commit.failure as? StoreError {
        error.setMayBeCommitted(false)
        failures[index] = error
      } else {
        failures[index] = commit.failure
      }
    }
    do {
      let after = try StoreError.translating("saving") {
        try database.write { database in
          var lineage = self.lineage.withLock { $0 }
          for (index, job) in jobs.enumerated() where failures[index] == nil {
            if let failure = try apply(job, prepared[index].saves, &lineage, in: database) { failures[index] = failure }
          }
          return lineage
        }
      }
      lineage.withLock { $0 = after }
      keeper.committed(batch)
    } catch {
      for index in jobs.indices where failures[index] == nil { failures[index] = error }
    }
    for save in prepared.flatMap(\.saves) { keeper.release(save) }
    if !failures.isEmpty { keeper.failed(failures.keys.flatMap { prepared[$0].saves }) }
    for (index, job) in jobs.enumerated() { job.finish(failures[index]) }
  }

  /// Applies one job in its own savepoint, so that its failure doesn't affect the other jobs. Returns the job's own
  /// error; throws an error that ends the whole transaction.
  private func apply(
    _ job: Job, _ saves: [PreparedSave], _ lineage: inout SaveLineage, in database: Database
  ) throws -> (any Error)? {
    // A job that fails leaves no lineage.
    var after = lineage
    do {
      try database.inSavepoint {
        var transaction = StoreTransaction(database, in: self.database.context)
        for content in saves.flatMap(\.contents) { try transaction.contents.keep(content) }
        try job.apply(&transaction, saves, &after)
        try History.prune(transaction)
        return .commit
      }
      lineage = after
      return nil
    } catch let error as DatabaseError where error.endsTransaction {
      throw error
    } catch {
      // If the job had replaced something damaged, that was rolled back too, and the next job must not rely on it.
      self.database.memory.forgetProven()
      self.database.context.commits.forget()
      return (error as? DatabaseError).map { StoreError($0, doing: "saving") } ?? error
    }
  }
}

extension DatabaseError {
  /// Whether SQLite may have rolled back the whole transaction by itself, so that nothing more can be done in it.
  fileprivate var endsTransaction: Bool {
    switch resultCode {
    case .SQLITE_FULL, .SQLITE_IOERR, .SQLITE_NOMEM, .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_BUSY, .SQLITE_INTERRUPT,
      .SQLITE_ABORT, .SQLITE_MISUSE, .SQLITE_READONLY:
      true
    default: false
    }
  }
}
