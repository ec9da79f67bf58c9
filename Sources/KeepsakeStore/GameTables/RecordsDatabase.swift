package import Foundation
package import GRDB
import Synchronization

/// The connections to the game's own tables. They are opened only after the file was checked, and reopened after the
/// disk has failed.
///
/// After a disk error in a write, its outcome is unknown (`StoreDatabase` explains why). So the write fails. Before the
/// next one, all connections are closed, what the failed commit left in the log is cut off, and the file is checked as
/// on any opening. If damage is found while running, further writes are refused until the next opening, which repairs
/// it.
package final class RecordsDatabase: BackupSource {
  /// The database's name in the folder of a game's data.
  package static let fileName = "records.sqlite"

  /// Returns why the tables must not be used, if there is a reason. Called before anything is changed.
  package typealias Objection = (Database) throws -> StoreError?

  private enum Trouble {
    /// The disk failed. Retried before the next write.
    case disk
    /// Only the next opening can repair it.
    case damage
    /// The file was removed or replaced during a commit, which is in it or not.
    case removal(StoreError)
  }
  private struct State {
    var pool: DatabasePool
    var trouble: Trouble?
    var isClosed = false
    /// Closes the connections, once that was requested.
    var closing: LateClosing?
  }
  /// Thrown by a write that waited behind one that failed: the disk has to be checked first.
  private struct Troubled: Error {}
  /// An error of another database in the game's own code, while it was using these tables. Rethrown unchanged.
  private struct ErrorOfAnother: Error { var error: DatabaseError }

  /// How long a statement waits for another program that has locked the file, such as a developer's tool.
  static let busySeconds = 5.0

  let files: RecordsFiles
  let presence: FilePresence
  private let checkpointer: WALCheckpointer
  private let state: Mutex<State>
  private let users = ConnectionUsers()
  private let reporting: @Sendable (StoreIncident) -> Void
  private let checkpoints = DispatchQueue(label: "keepsake.records.checkpoint", qos: .utility)
  let backup: RollingBackup
  private let suspicion: Suspicion
  /// Threads that are reading the tables, and the one that is writing them: nested calls must not wait for themselves.
  private let (readers, writers) = (ThreadMarks(), ThreadMarks())

  init(
    _ files: RecordsFiles, _ presence: FilePresence, pool: DatabasePool, checkpointer: WALCheckpointer,
    _ backups: BackupSchedule, _ report: @escaping @Sendable (StoreIncident) -> Void
  ) {
    (self.files, self.presence, self.checkpointer, self.reporting) = (files, presence, checkpointer, report)
    state = Mutex(State(pool: pool))
    suspicion = Suspicion(at: files.suspicion, presence)
    backup = RollingBackup(files, backups)
  }

  /// Checks everything, however large the file is: no row has a checksum, and both backups would soon be copies of the
  /// damaged file.
  func problem(in copy: Database) throws -> String? { try RecordsAudit.run(on: copy, .structure).damage.first }

  var suspected: Data? { suspicion.text }

  deinit {
    // Anything that still holds the pool must not commit to a log that is no longer checkpointed. Closing the pool
    // loses nothing. The lock, which `presence` holds, is released after them.
    guard !state.withLock({ $0.isClosed }) else { return }
    let pool = pool
    // SQLite removes the log by its path, where another one may be now.
    if !presence.isCertain { try? pool.writeWithoutTransaction { try $0.keepLog() } }
    try? pool.close()
  }

  /// Opens the tables in the folder of a game's data, which the caller has locked, or creates the file. Repairs what is
  /// necessary, and reports it.
  ///
  /// - Parameter store: The open store in the same folder, if there is one.
  /// - Throws: `StoreError`: the error from `objection`, with nothing changed; `diskFull`, `notPermitted`, `io`.
  package static func open(
    in folder: URL, beside store: Store? = nil, objection: Objection = { _ in nil },
    report: @escaping @Sendable (StoreIncident) -> Void
  ) throws -> RecordsDatabase {
    // A folder that isn't the store's any more may be another store's.
    try store?.requirePresence()
    return try open(in: folder, lock: store?.lock, objection: objection, backups: .standard, report: report)
  }

  // MARK: Use

  /// The current connections, for what only GRDB itself offers. Different ones after the disk has failed.
  package var reader: any DatabaseReader { state.withLock { $0.pool } }

  /// The current connections, for what must not open a further one.
  var pool: DatabasePool { state.withLock { $0.pool } }

  /// For backups. Throws SQLite's errors unchanged.
  func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
    users.enter()
    defer { users.leave() }
    let pool = state.withLock { $0.pool }
    // Within a read, use the same snapshot: another connection would show another state.
    if readers.isMarked { return try pool.unsafeReentrantRead(body) }
    return try readers.within { try pool.read(body) }
  }

  /// Runs `body` on the tables as of the last commit, or within another `reading`, on the same snapshot. Doesn't block
  /// writers and isn't blocked by any.
  package func reading<Value>(_ body: (Database) throws -> Value) throws -> Value {
    do {
      return try read { database in try Self.separatingErrors(database, body) }
    } catch let other as ErrorOfAnother {
      throw other.error
    } catch let error as DatabaseError {
      if error.isBrokenFile { suspicion.note(error) }
      if let closed = closed(error) { throw closed }
      // A statement that writes isn't allowed here: the statement is at fault, and SQLite's error states that.
      guard error.resultCode != .SQLITE_READONLY,
        let translated = StoreError(ofFile: error, doing: "reading the records")
      else {
        throw error
      }
      throw translated
    }
  }

  /// Runs the game's own code, and distinguishes errors of this database from those of others that it uses.
  private static func separatingErrors<Value>(_ database: Database, _ body: (Database) throws -> Value) throws -> Value
  {
    do {
      return try body(database)
    } catch let error as DatabaseError where database.lastErrorCode.primaryResultCode != error.resultCode {
      throw ErrorOfAnother(error: error)
    }
  }

  /// Runs `body` in a transaction and returns when it is durable. If it throws, nothing is changed.
  package func write<Value>(_ body: (Database) throws -> Value) throws -> Value {
    try writing("writing the records") { pool in
      try pool.writeWithoutTransaction { database in
        // Checked in the writer's own queue, so that a write that waited for one whose sync failed sees that this was
        // recorded.
        guard state.withLock({ $0.trouble == nil }) else { throw Troubled() }
        do {
          var value: Value?
          try database.inTransaction {
            value = try Self.separatingErrors(database, body)
            try requirePresence()
            return .commit
          }
          try confirmPresence()
          guard let value else { throw StoreError(.io, "a write of the records ended without a result") }
          return value
        } catch let error as DatabaseError {
          note(error)
          try presence.require(after: error, report)
          throw error
        }
      }
    }
  }

  /// Throws `misuse` within a read or write: the operation waits for all of them, and so can't be requested by one.
  func refuseWithin(_ what: String) throws {
    guard !readers.isMarked, !writers.isMarked else {
      throw StoreError(
        .misuse, "the records can't be \(what) within a read or write of them: that would wait for itself")
    }
  }

  /// Replaces everything with another database, which must have been checked: all of it or nothing.
  func replaceAll(by other: DatabaseQueue) throws {
    try writing("restoring the records") { pool in
      try pool.writeWithoutTransaction { database in
        guard state.withLock({ $0.trouble == nil }) else { throw Troubled() }
        do {
          try requirePresence()
          try other.read { try $0.backup(to: database) }
          try confirmPresence()
          // Copying page by page doesn't notify any observers.
          try database.inTransaction {
            try database.notifyChanges(in: .fullDatabase)
            return .commit
          }
        } catch let error as DatabaseError {
          note(error)
          try presence.require(after: error, report)
          throw error
        }
      }
    }
  }

  /// Runs `body` as the only writer, after a disk that failed was checked. `doing` is for errors.
  func writing<Value>(_ doing: String, _ body: (DatabasePool) throws -> Value) throws -> Value {
    guard !writers.isMarked else {
      throw StoreError(
        .misuse,
        "\(doing) was requested within a write of them, which would wait for itself: do it in that write, or after it")
    }
    while true {
      guard !state.withLock({ $0.isClosed }) else { throw StoreError(.misuse, "the records are closed") }
      try heal()
      do {
        users.enter()
        defer { users.leave() }
        let value = try writers.within { try body(state.withLock { $0.pool }) }
        backup.didCommit(in: self)
        checkpointIfDue()
        return value
      } catch is Troubled {
        // Try again: `heal` checks the disk, or throws.
      } catch let other as ErrorOfAnother {
        throw other.error
      } catch let error as DatabaseError {
        guard let translated = closed(error) ?? StoreError(ofFile: error, doing: doing) else { throw error }
        throw translated
      }
    }
  }

  /// Returns the error for closed connections, if GRDB's error is due to that.
  private func closed(_ error: DatabaseError) -> StoreError? {
    guard [.SQLITE_MISUSE, .SQLITE_INTERRUPT].contains(error.resultCode) else { return nil }
    let (isClosed, isInTrouble) = state.withLock { ($0.isClosed, $0.trouble != nil) }
    if isClosed { return StoreError(.misuse, "the records are closed", cause: error) }
    guard isInTrouble else { return nil }
    return StoreError(
      .io, "the disk failed, and the records are closed until a write finds the disk working again", cause: error)
  }

  // MARK: Closing

  /// Closes all connections, after a backup if one is due. The backup stops at the deadline.
  ///
  /// - Throws: `timedOut` if a read or write is still running, including one through `reader`, or if the disk doesn't
  ///   respond. In the last two cases, closing continues in the background, and finishes as soon as that is possible.
  package func close(within limit: Duration? = nil) throws {
    let deadline = limit.map { ContinuousClock.now + $0 }
    let begun = state.withLock { $0.closing }
    if begun == nil {
      guard !state.withLock({ $0.isClosed }) else { return }
      if presence.isCertain, state.withLock({ $0.trouble == nil }) { backup.finish(on: self, until: deadline) }
      guard users.waitUntilIdle(until: deadline) else {
        throw StoreError(.timedOut, "the records are still being read or written")
      }
    }
    let closing = state.withLock { state in
      let closing = state.closing ?? LateClosing { try self.closeConnections() }
      state.closing = closing
      return closing
    }
    guard let outcome = closing.wait(until: deadline) else {
      throw StoreError(
        .timedOut, "the records are still being read through GRDB's own interface, or the disk doesn't respond")
    }
    state.withLock { $0.closing = nil }
    try StoreError.translating("closing the records") { try outcome.get() }
  }

  private func closeConnections() throws {
    checkpoints.sync {}
    if let incident = suspicion.settle() { report(incident) }
    // Not while a write reopens the database, whose new connections would stay open.
    try users.alone {
      guard !state.withLock({ $0.isClosed }) else { return }
      let pool = state.withLock { $0.pool }
      // Closed records are one file. If the checkpoint fails, the log keeps what the database lacks.
      if state.withLock({ $0.trouble == nil }) {
        _ = try? pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
      }
      let presence = Result { try requirePresence() }
      // SQLite removes the log by its path, where another one may be now.
      if case .failure = presence { try? pool.writeWithoutTransaction { try $0.keepLog() } }
      try pool.close()
      state.withLock { $0.isClosed = true }
      try presence.get()
      files.reserve.take()
    }
  }

  // MARK: Trouble

  private func checkpointIfDue() {
    guard checkpointer.isDue else { return }
    // Not on the thread of the write, which already has its result.
    checkpoints.async { [weak self] in
      guard let self, state.withLock({ $0.trouble == nil && !$0.isClosed }) else { return }
      users.enter()
      defer { users.leave() }
      do {
        let pool = state.withLock { $0.pool }
        try pool.writeWithoutTransaction { database in
          guard state.withLock({ $0.trouble == nil }) else { return }
          do {
            try checkpointer.run(on: database)
          } catch let error as DatabaseError {
            note(error)
          }
        }
      } catch {
        // The pool was closed in the meantime.
      }
    }
  }

  func report(_ incident: StoreIncident) { reporting(incident) }

  /// Throws `removed`, and reports it once, if the file was removed, moved or replaced.
  func requirePresence() throws { try presence.require(report) }

  /// Checks after a commit, before it is acknowledged (`FilePresence`).
  func confirmPresence() throws {
    try presence.confirmCommit(report) { error in state.withLock { $0.trouble = .removal(error) } }
  }

  /// Remembers an error of the database that concerns later writes, too.
  func note(_ error: DatabaseError) {
    switch error.resultCode {
    case .SQLITE_IOERR: state.withLock { $0.trouble = $0.trouble ?? .disk }
    case .SQLITE_CORRUPT, .SQLITE_NOTADB:
      state.withLock { $0.trouble = .damage }
      suspicion.note(error)
    default: return
    }
  }

  private func heal() throws {
    guard state.withLock({ $0.trouble != nil && !$0.isClosed }) else { return }
    guard !readers.isMarked else {
      throw StoreError(.io, "the disk failed, and the records can't be reopened within a read: write after it")
    }
    try users.alone {
      // It may have been closed while this waited. What is opened now would stay open.
      guard !state.withLock({ $0.isClosed }) else { return }
      switch state.withLock({ $0.trouble }) {
      case nil: return
      case .damage:
        throw StoreError(
          .damaged, "the records are damaged and can't be written: close and reopen the game's data to repair them")
      case .removal(let error): throw error
      case .disk:
        try requirePresence()
        try StoreError.translating("reopening the records") {
          let index = try FailedCommit.index(of: files.log)
          // The last connection may remove the log.
          presence.willReopen()
          try state.withLock { $0.pool }.close()
          try FailedCommit.trimLog(files.log, to: index)
          let opening = RecordsOpening(files)
          if let damage = try opening.look(.structure).damage.first {
            state.withLock { $0.trouble = .damage }
            let error = StoreError(.damaged, damage)
            suspicion.note(error)
            throw error
          }
          let fresh = try opening.connect(checkpointer, presence)
          do {
            try presence.capture()
          } catch {
            presence.willReopen()
            try? fresh.close()  // The reason to give up is the error that is thrown.
            throw error
          }
          state.withLock { state in
            state.pool = fresh
            state.trouble = nil
          }
        }
        report(StoreIncident(.reopened, "the disk failed while writing the records; they were reopened and are intact"))
      }
    }
  }
}
