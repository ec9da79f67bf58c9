import Foundation
import GRDB
import GRDBSQLite
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#elseif canImport(Darwin)
import Darwin
#endif

/// A database of which copies are kept: the store's, and that of the game's own tables.
protocol BackupSource: AnyObject, Sendable {
  func read<Value>(_ body: (Database) throws -> Value) throws -> Value
}

/// Keeps two whole copies of a database beside it, for the day on which it can't be read.
///
/// A copy is made in the background while the game runs, some minutes after the first commit that the newest copy lacks, and
/// at closing where the store is small. It reads a snapshot, a few pages at a time, so that no commit waits for it. It is
/// written beside the others, checked as a store is at opening, and only then takes the place of the older one: there is
/// always a whole copy once there was one. What it costs is bounded by making copies of large stores seldom.
final class RollingBackup: Sendable {
  /// A store up to this size is copied at closing too: some hundredths of a second.
  static let maximumBytesAtClosing: Int64 = 16 << 20
  /// 256 KiB at a time.
  private static let pagesPerStep: CInt = 64

  private struct State {
    /// Nothing newer than the newest copy: no commit since.
    var isCurrent = true
    var isRunning = false
    var isStopped = false
    /// When the next copy in the background is due, at the earliest.
    var due: ContinuousClock.Instant
    var failure: StoreError?
  }

  private let files: any BackupFiles
  private let schedule: BackupSchedule
  /// What is wrong with a copy; nil if nothing is.
  private let problem: @Sendable (Database) throws -> String?
  private let state: Mutex<State>
  private let queue = DispatchQueue(label: "keepsake.store.backup", qos: .background)

  init(_ files: any BackupFiles, _ schedule: BackupSchedule, problem: @escaping @Sendable (Database) throws -> String?) {
    (self.files, self.schedule, self.problem) = (files, schedule, problem)
    state = Mutex(State(due: schedule.now() + schedule.interval(0)))
  }

  /// Whether a copy is being made in the background.
  var isRunning: Bool { state.withLock { $0.isRunning } }

  /// Whether closing has ended all copies.
  var isStopped: Bool { state.withLock { $0.isStopped } }

  /// Why the last copy failed, if it did; the next one is tried when its time has come.
  var failure: StoreError? { state.withLock { $0.failure } }

  /// To be called after each commit. Costs a look at the clock.
  func didCommit(in database: any BackupSource) {
    let starts = state.withLock { state -> Bool in
      state.isCurrent = false
      guard !state.isRunning, !state.isStopped, state.due <= schedule.now() else { return false }
      state.isRunning = true
      return true
    }
    guard starts else { return }
    queue.async { [weak self, weak database] in
      guard let self, let database else { return }
      run(on: database, until: nil)
    }
  }

  /// Makes a copy if one is due and the store is small, and stops what runs in the background. Ends early at `deadline`.
  func finish(on database: any BackupSource, until deadline: ContinuousClock.Instant?) {
    let (isCurrent, isRunning) = state.withLock { state in
      state.isStopped = true
      return (state.isCurrent, state.isRunning)
    }
    // Waits for at most one step of what runs.
    if isRunning { queue.sync {} }
    guard !isCurrent else { return }
    do {
      let bytes = try bytes()
      guard bytes <= Self.maximumBytesAtClosing, isOld(bytes) else { return }
    } catch {
      return state.withLock { $0.failure = error }
    }
    state.withLock { $0.isRunning = true }
    run(on: database, until: deadline ?? .distantFuture)
  }

  private func bytes() throws(StoreError) -> Int64 { try Self.size(of: files.database) + Self.size(of: files.log) }

  /// Zero if there is no file.
  private static func size(of url: URL) throws(StoreError) -> Int64 {
    var status = stat()
    guard stat(url.path, &status) != 0 else { return Int64(status.st_size) }
    guard errno == ENOENT else { throw StoreError(errorNumber: errno, doing: "looking at \(url.path)") }
    return 0
  }

  /// Whether the newest copy is older than it may be, by the clock on the wall: it may be of another day. One whose date can't be found out is too
  /// old: the next copy says what is wrong with the folder.
  private func isOld(_ bytes: Int64) -> Bool {
    guard let newest = files.presentBackups.first else { return true }
    let age = Date().timeIntervalSince1970 - Double(StoreFiles.modified(newest)) / 1e9
    return abs(age) >= schedule.interval(bytes).interval
  }

  /// `until` nil: in the background, and stopped by closing.
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
      state.failure = failure
      if failure != nil { state.isCurrent = false }
    }
  }

  /// Makes one copy in the place of the older one. Throws with both as they were.
  func copy(_ database: any BackupSource, stop: @escaping () -> Bool) throws {
    let partial = files.partialBackup
    try StoreFiles.remove(partial)
    do {
      try StoreError.translating("making a backup") {
        try DatabaseCopy.make(of: database, at: partial, pagesPerStep: Self.pagesPerStep) { [problem] copy in
          // What is damaged must not take the place of what is whole.
          if let problem = try Self.stoppable(copy, stop, problem) { throw StoreError(.damaged, "the backup isn't sound: \(problem)") }
        } progress: { isDone in
          if !isDone, stop() { throw StoreError(.timedOut, "the data was closed while it was backed up") }
        }
      }
      let older = files.backups.first { !StoreFiles.exists($0) } ?? files.presentBackups.last ?? files.backups[0]
      try StoreFiles.moveIfPresent(partial, to: older)
      try AtomicFile.syncFolder(files.folder.path)
    } catch {
      try StoreFiles.remove(partial)
      throw error
    }
  }

  /// Asks for so many steps of SQLite's machine: some hundredths of a second.
  private static let stepsBetweenLooks: CInt = 100_000

  /// Looks at a copy until it has to stop: closing waits for that.
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
        { context in context.map { Unmanaged<Asker>.fromOpaque($0).takeUnretainedValue().stop() } == true ? 1 : 0 }, context)
      defer { sqlite3_progress_handler(copy.sqliteConnection, 0, nil, nil) }
      do {
        return try problem(copy)
      } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT {
        throw StoreError(.timedOut, "the data was closed while it was backed up")
      }
    }
  }
}

extension ContinuousClock.Instant {
  fileprivate static var distantFuture: Self { .now + .seconds(1 << 30) }
}
