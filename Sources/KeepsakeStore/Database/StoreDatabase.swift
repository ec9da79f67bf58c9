import Foundation
import GRDB
import KeepsakeReplication
import Synchronization

/// The connections to a store's database. They are opened only after the files were checked, and reopened after the
/// disk has failed.
///
/// After a disk error in a write, its outcome is unknown: a failed sync may have dropped what was written before, and a
/// second one that succeeds proves nothing. So the write fails. Before the next one, all connections are closed, what
/// the failed commit left in the write-ahead log is cut off, and the database is checked as on any opening. Damage
/// found while running isn't repaired then: values may have to return to an older state, from which a writer that is
/// counting must not continue. Writes are refused until the store is opened again.
final class StoreDatabase: BackupSource {
  private enum Trouble {
    /// The disk failed. Retried before the next write.
    case disk
    /// Only the next opening can repair it.
    case damage
    /// The files were removed or replaced during a commit, which is in the database or not: no later commit may build
    /// on either.
    case removal(StoreError)
  }
  private struct State {
    var pool: DatabasePool
    var trouble: Trouble?
    var isClosed = false
    /// What the next write must do first, in its transaction.
    var duty: (@Sendable (Database) throws -> Void)?
  }

  /// Not a tuple: a function in a tuple inside a generic type would be wrapped once more on every access.
  private struct Log {
    var incidents: [StoreIncident] = []
    var observer: @Sendable (StoreIncident) -> Void = { _ in }
  }

  private let files: StoreFiles
  private let presence: FilePresence
  let context: StoreContext
  var memory: ContentMemory { context.memory }
  private let checkpointer: WALCheckpointer
  private let state: Mutex<State>
  private let writing = NSLock()
  private let log = Mutex(Log())
  private let users: ConnectionUsers
  let backup: RollingBackup
  private let suspicion: Suspicion

  init(
    _ files: StoreFiles, _ presence: FilePresence, pool: DatabasePool, context: StoreContext,
    checkpointer: WALCheckpointer, _ backups: BackupSchedule
  ) {
    self.files = files
    self.presence = presence
    self.checkpointer = checkpointer
    self.context = context
    state = Mutex(State(pool: pool))
    users = ConnectionUsers()
    suspicion = Suspicion(at: files.suspicion, presence)
    backup = RollingBackup(files, backups)
  }

  func problem(in copy: Database) throws -> String? {
    try StoreAudit.run(on: StoreTransaction(copy, in: StoreContext(seal: context.seal))).all.first
  }

  var suspected: Data? { suspicion.text }

  deinit {
    // Released without being closed. The connections are closed first, and the lock, which `presence` holds, after
    // them. What the log has is in the store at its next opening.
    guard !state.withLock({ $0.isClosed }) else { return }
    if let incident = suspicion.settle() { report(incident) }
    let pool = pool
    if !presence.isCertain { try? pool.writeWithoutTransaction { try $0.keepLog() } }
    try? pool.close()
  }

  // MARK: Use

  /// The current connections, for what only SQLite itself offers.
  var pool: DatabasePool { state.withLock { $0.pool } }

  func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
    users.enter()
    defer { users.leave() }
    defer { suspectLostPage() }
    var value: Value?
    do {
      return try pool.read { database in
        let read = try body(database)
        value = read
        return read
      }
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CANTOPEN {
      // A connection more was needed, and there is nothing at the path.
      try requirePresence()
      throw error
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
      suspicion.note(error)
      // What was read around a lost page is valid, although SQLite then ends the transaction with an error.
      guard let value else { throw error }
      return value
    }
  }

  func write<Value>(_ body: (Database) throws -> Value) throws -> Value {
    // One write at a time, from checking for trouble to recording it: a write that waited for one that failed must
    // check the disk first.
    try writing.withLock {
      try heal()
      users.enter()
      defer { users.leave() }
      defer { suspectLostPage() }
      var isCommitted = false
      defer { if !isCommitted { context.commits.forget() } }
      do {
        let value = try pool.write { database in
          try doDuty(database)
          let value = try body(database)
          try requirePresence()
          return value
        }
        isCommitted = true
        try confirmPresence()
        backup.didCommit(in: self)
        return value
      } catch let error as DatabaseError {
        note(error)
        try presence.require(after: error, report)
        throw error
      }
    }
  }

  /// Throws `removed`, and reports it once, if the files were removed, moved or replaced.
  func requirePresence() throws { try presence.require(report) }

  private func confirmPresence() throws {
    try presence.confirmCommit(report) { error in state.withLock { $0.trouble = .removal(error) } }
  }

  private func suspectLostPage() {
    if memory.takeLostPage() { suspicion.note(StoreError(.damaged, "a page with data of a save could not be read")) }
  }

  /// Makes the next successful write run `duty` first, in its transaction.
  func beforeNextWrite(_ duty: @escaping @Sendable (Database) throws -> Void) { state.withLock { $0.duty = duty } }

  private func doDuty(_ database: Database) throws {
    guard let duty = state.withLock({ $0.duty }) else { return }
    try duty(database)
    // Cleared within this write, so that the next one doesn't find it.
    database.afterNextTransaction(onCommit: { _ in self.state.withLock { $0.duty = nil } })
  }

  var isCheckpointDue: Bool { checkpointer.isDue }

  /// Checkpoints the write-ahead log if that is due.
  ///
  /// A failure is not an error of any commit: the log stays, with everything that was committed, and the next write
  /// checks the disk first.
  func checkpointIfDue() {
    guard checkpointer.isDue else { return }
    // Not during a write: a failed sync must be known before the next commit builds on it.
    writing.withLock {
      guard state.withLock({ $0.trouble == nil && !$0.isClosed }) else { return }
      users.enter()
      defer { users.leave() }
      do {
        try checkpointer.run(on: pool)
      } catch let error as DatabaseError {
        note(error)
      } catch {
        // The pool was closed in the meantime.
      }
    }
  }

  /// Closes all connections, after a backup if one is due. The backup stops at `deadline`.
  func close(until deadline: ContinuousClock.Instant? = nil) throws {
    if presence.isCertain, state.withLock({ $0.trouble == nil && !$0.isClosed }) {
      backup.finish(on: self, until: deadline)
    }
    if let incident = suspicion.settle() { report(incident) }
    // Not while a write reopens the database, whose new connections would stay open.
    try writing.withLock {
      // A closed store is one file. If the checkpoint fails, for lack of space or because the store is being read, the
      // log keeps what the database lacks, and the next opening continues with both.
      if state.withLock({ $0.trouble == nil && !$0.isClosed }) {
        _ = try? pool.writeWithoutTransaction { database in try database.checkpoint(.truncate) }
      }
      // SQLite removes the log by its path, where another store's may be now.
      let isPresent = presence.isCertain
      if !isPresent { try? pool.writeWithoutTransaction { try $0.keepLog() } }
      try pool.close()
      state.withLock { $0.isClosed = true }
      if isPresent { StoreReserve(files).take() }
    }
  }

  /// Records what a write's error means for later writes.
  private func note(_ error: DatabaseError) {
    switch error.resultCode {
    case .SQLITE_IOERR: state.withLock { $0.trouble = $0.trouble ?? .disk }
    case .SQLITE_CORRUPT, .SQLITE_NOTADB:
      state.withLock { $0.trouble = .damage }
      suspicion.note(error)
    default: return
    }
  }

  /// Reopens the database after the disk has failed. Throws if the disk still fails, if the database is damaged, or if
  /// the files are gone.
  private func heal() throws {
    guard state.withLock({ $0.trouble != nil && !$0.isClosed }) else { return }
    try users.alone {
      switch state.withLock({ $0.trouble }) {
      case nil: return
      case .damage:
        throw StoreError(
          .damaged, "the store's database is damaged and can't store this save: close and reopen it to repair it")
      case .removal(let error): throw error
      case .disk:
        try requirePresence()
        let index = try FailedCommit.index(of: files.log)
        // The last connection may remove the log.
        presence.willReopen()
        try pool.close()
        try FailedCommit.trimLog(files.log, to: index)
        var incidents: [StoreIncident] = []
        do {
          if let damage = try files.damageAtFirstSight() { throw StoreError(.damaged, damage) }
          let fresh = try Self.reopen(files, presence, context.seal, checkpointer, &incidents)
          memory.forgetPlain()
          // The audit may have rebuilt the heads.
          context.commits.forget()
          state.withLock { state in
            state.pool = fresh
            state.trouble = nil
          }
        } catch let error as StoreError where error.code == .damaged {
          state.withLock { $0.trouble = .damage }
          suspicion.note(error)
          throw error
        }
        report(StoreIncident(.reopened, "the disk failed while saving; the database was reopened and is intact"))
        for incident in incidents { report(incident) }
      }
    }
  }

  // MARK: Incidents

  var incidents: [StoreIncident] { log.withLock { $0.incidents } }

  func onIncident(_ observer: @escaping @Sendable (StoreIncident) -> Void) { log.withLock { $0.observer = observer } }

  func report(_ incident: StoreIncident) {
    let observer = log.withLock { log in
      log.incidents.append(incident)
      if log.incidents.count > Self.maximumIncidents { log.incidents.removeFirst() }
      return log.observer
    }
    observer(incident)
  }

  private static let maximumIncidents = 100
}
