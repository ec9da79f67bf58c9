import Foundation
import GRDB
import GRDBSQLite
import KeepsakePlatform
import KeepsakeReplication
import Synchronization

/// A database of which copies are kept: the store's, or that of the game's own tables.
protocol BackupSource: AnyObject, Sendable {
  /// Reports that a backup could not be made.
  func report(_ incident: StoreIncident)
  /// Throws `removed` if the database's files aren't the ones in its folder any more.
  func requirePresence() throws
  func read<Value>(_ body: (Database) throws -> Value) throws -> Value
  /// Returns what is wrong with a copy of the database; nil if nothing is.
  func problem(in copy: Database) throws -> String?
  /// What was found to be wrong with the database since it was opened; nil if nothing was.
  var suspected: Data? { get }
}

/// Keeps two complete copies of a database beside it, in case it can't be read some day.
///
/// A copy is made in the background while the game runs, some minutes after the first commit that the newest copy
/// lacks, and on closing if the store is small. It reads a snapshot, a few pages at a time, so that no commit waits for
/// it. The new copy is written beside the others and checked like a store on opening; only then does it replace the
/// older one. So once there was a complete copy, there always is one. The cost is bounded by copying large stores
/// rarely.
final class RollingBackup: Sendable {
  /// A store up to this size is copied on closing too, which takes some hundredths of a second.
  static let maximumBytesAtClosing: Int64 = 16 << 20
  /// 256 KiB per step.
  private static let pagesPerStep: CInt = 64

  private struct State {
    /// Whether there was no commit since the newest copy.
    var isCurrent = true
    var isRunning = false
    var isStopped = false
    /// The earliest time for the next copy in the background.
    var due: ContinuousClock.Instant
    var failure: StoreError?
  }

  private let files: any BackupFiles
  private let schedule: BackupSchedule
  private let state: Mutex<State>
  private let queue = DispatchQueue(label: "keepsake.store.backup", qos: .background)

  init(_ files: any BackupFiles, _ schedule: BackupSchedule) {
    (self.files, self.schedule) = (files, schedule)
    state = Mutex(State(due: schedule.now() + schedule.interval(0)))
  }

  /// Whether a copy is being made in the background.
  var isRunning: Bool { state.withLock { $0.isRunning } }

  /// Whether closing has ended all copies.
  var isStopped: Bool { state.withLock { $0.isStopped } }

  /// Why the last copy failed, if it did. The next one is made when it is due.
  var failure: StoreError? { state.withLock { $0.failure } }

  /// Must be called after each commit. Costs reading the clock.
  func didCommit(in database: any BackupSource) {
    guard !schedule.isOff else { return }
    let starts = state.withLock { state -> Bool in
      state.isCurrent = false
      guard !state.isRunning, !state.isStopped, state.due <= schedule.now() else { return false }
      state.isRunning = true
      return true
    }
    guard starts else { return }
    queue.async { [weak self, weak database] in
      guard let self else { return }
      // The store was released before the copy began.
      guard let database else { return state.withLock { $0.isRunning = false } }
      run(on: database, until: nil)
    }
  }

  /// Stops a copy that is being made in the background after its current step, and starts no more. Doesn't wait.
  func stop() { state.withLock { $0.isStopped = true } }

  /// Stops a copy that is being made in the background, and makes one if it is due and the store is small. Ends early
  /// at `deadline`.
  func finish(on database: any BackupSource, until deadline: ContinuousClock.Instant?) {
    let (isCurrent, isRunning) = state.withLock { state in
      state.isStopped = true
      return (state.isCurrent, state.isRunning)
    }
    // Waits for at most one step of a running copy.
    if isRunning { queue.sync {} }
    guard !isCurrent else { return }
    do {
      let bytes = try bytes()
      guard bytes <= Self.maximumBytesAtClosing, isOld(bytes) else { return }
    } catch {
      return finished(error, in: database)
    }
    state.withLock { $0.isRunning = true }
    run(on: database, until: deadline ?? .distantFuture)
  }

  private func bytes() throws(StoreError) -> Int64 { try Self.size(of: files.database) + Self.size(of: files.log) }

  /// Returns zero if there is no file.
  private static func size(of url: URL) throws(StoreError) -> Int64 {
    if let status = FileStatus(at: url.path) { return status.size }
    guard errno == ENOENT else { throw StoreError(errorNumber: errno, doing: "examining \(url.path)") }
    return 0
  }

  /// Returns whether the newest copy is older than allowed, by the wall clock and not the schedule's, because the copy
  /// may have been made on another day. A copy of unknown date counts as too old: making the next copy then shows what
  /// is wrong with the folder.
  private func isOld(_ bytes: Int64) -> Bool {
    guard let newest = files.presentBackups.first else { return true }
    let age = Date().timeIntervalSince1970 - Double(StoreFiles.modified(newest)) / 1e9
    return abs(age) >= schedule.interval(bytes).interval
  }

  /// With `until` nil, runs in the background and is stopped by closing.
  private func run(on database: any BackupSource, until deadline: ContinuousClock.Instant?) {
    state.withLock { $0.isCurrent = true }
    var failure: StoreError?
    var copied: Int64 = 0
    do {
      copied = try bytes()
      try copy(database) {
        if let deadline { return .now >= deadline }
        self.schedule.pause()
        return self.state.withLock { $0.isStopped }
      }
    } catch let error as StoreError {
      failure = error
    } catch {
      failure = StoreError(.io, "the backup failed", cause: error)
    }
    let next = schedule.now() + schedule.interval(copied)
    state.withLock { state in
      state.isRunning = false
      state.due = next
      if failure != nil { state.isCurrent = false }
    }
    finished(failure, in: database)
  }

  /// Records how a copy ended. A failure is reported once, until another one or a success follows; that closing stopped
  /// a copy is none.
  private func finished(_ failure: StoreError?, in database: any BackupSource) {
    let before = state.withLock { state in
      defer { state.failure = failure }
      return state.failure
    }
    guard let failure, ![.timedOut, .removed].contains(failure.code), failure.code != before?.code else { return }
    database.report(
      StoreIncident(
        .notBackedUp,
        "no backup could be made, and a later one will be tried; nothing else is wrong: \(ErrorReason.text(failure))"))
  }

  /// Makes one copy, which replaces the older one. If it throws, both are unchanged.
  func copy(_ database: any BackupSource, stop: @escaping () -> Bool) throws {
    let partial = files.partialBackup
    try database.requirePresence()
    try StoreFiles.remove(partial)
    do {
      try StoreError.translating("making a backup") {
        try DatabaseCopy.make(of: database, at: partial, pagesPerStep: Self.pagesPerStep) { copy in
          // A damaged copy must not replace an intact one.
          if let problem = try Self.stoppable(copy, stop, database.problem) {
            throw StoreError(.damaged, "the new backup is damaged: \(problem)")
          }
        } progress: { isDone in
          if !isDone, stop() { throw StoreError(.timedOut, "the data was closed during the backup") }
        }
      }
      // The two copies in the folder are another store's by now.
      try database.requirePresence()
      let older = files.backups.first { !StoreFiles.exists($0) } ?? files.presentBackups.last ?? files.backups[0]
      try StoreFiles.moveIfPresent(partial, to: older)
      try AtomicFile.syncFolder(files.folder.path)
    } catch {
      // In another store's folder, what is at the path isn't this copy, and that the files are gone is the reason.
      try database.requirePresence()
      try StoreFiles.remove(partial)
      throw error
    }
  }

  /// The number of steps of SQLite's virtual machine between two calls of `stop`: some hundredths of a second.
  private static let stepsBetweenLooks: CInt = 100_000

  /// Checks a copy, but ends early when it must stop, because closing waits for it.
  private static func stoppable(
    _ copy: Database, _ stop: @escaping () -> Bool, _ problem: (Database) throws -> String?
  ) throws -> String? {
    final class Asker {
      let stop: () -> Bool
      init(_ stop: @escaping () -> Bool) { self.stop = stop }
    }
    let asker = Asker(stop)
    return try withExtendedLifetime(asker) {
      let context = Unmanaged.passUnretained(asker).toOpaque()
      sqlite3_progress_handler(
        copy.sqliteConnection, stepsBetweenLooks,
        { context in context.map { Unmanaged<Asker>.fromOpaque($0).takeUnretainedValue().stop() } == true ? 1 : 0 },
        context)
      defer { sqlite3_progress_handler(copy.sqliteConnection, 0, nil, nil) }
      do {
        return try problem(copy)
      } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT {
        throw StoreError(.timedOut, "the data was closed during the backup")
      }
    }
  }
}

extension ContinuousClock.Instant {
  fileprivate static var distantFuture: Self { .now + .seconds(1 << 30) }
}
