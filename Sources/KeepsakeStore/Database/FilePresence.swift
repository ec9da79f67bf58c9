import Foundation
import GRDB
import Synchronization

/// Knows the files that a database has open, and finds out whether they are still the ones in their folder.
///
/// A system lets a program write to a file that was removed or moved away: every commit succeeds, and nobody ever finds
/// it. The database, its log and the lock are compared with what is at their paths now: some microseconds, beside a
/// commit's wait for the disk.
///
/// Files are compared by their numbers. Some file systems invent these, and may give a file another one while it is
/// open: the lock, whose descriptor is known, shows that. Then only whether there are files at the paths is checked.
final class FilePresence: Sendable {
  private struct File {
    var path: String
    var identity: FileIdentity
    var name: Substring { path.split(separator: "/").last ?? "" }
  }
  private struct State {
    var files: [File] = []
    var hasReported = false
    /// Whether numbers show which file is which on this file system.
    var comparesNumbers = true
  }

  private let folder: URL
  private let database: URL
  private let log: URL
  /// Held as long as the database may be written to.
  private let lock: StoreLock?
  private let state = Mutex(State())

  /// - Parameter lock: The lock of the folder; nil for a database whose folder isn't locked.
  init(_ files: some BackupFiles, lock: StoreLock?) {
    (folder, database, log) = (files.folder, files.database, files.log)
    self.lock = lock
    if lock?.isNumbered == false { state.withLock { $0.comparesNumbers = false } }
  }

  /// Remembers the files that were just opened.
  ///
  /// - Throws: `StoreError` with `removed` if one of them is gone, if another lock is in the folder, or if a file that
  ///   was known is another one.
  func capture() throws {
    try check()
    let files = try [database, log].map { url in
      guard let identity = try FileIdentity(at: url.path) else { throw removed("\(url.lastPathComponent) is gone") }
      return File(path: url.path, identity: identity)
    }
    let known = files + (lock.map { [File(path: $0.path, identity: $0.identity)] } ?? [])
    state.withLock { $0.files = known }
    try check()
  }

  /// Forgets the log: all connections are closed, and the next one may create a new log beside the same database.
  func willReopen() { state.withLock { $0.files.removeAll { $0.path == log.path } } }

  /// Does nothing before `capture`.
  ///
  /// - Throws: `StoreError`: `removed` if a file was removed, moved or replaced; another code if that can't be found
  ///   out.
  func check() throws {
    let (files, comparesNumbers) = state.withLock { ($0.files, $0.comparesNumbers) }
    for file in files {
      guard let found = try FileIdentity(at: file.path) else { throw removed("\(file.name) is gone") }
      guard comparesNumbers, found != file.identity else { continue }
      guard lock?.keepsNumber == false else { throw removed("\(file.name) is another file") }
      state.withLock { $0.comparesNumbers = false }
    }
  }

  /// Checks after a commit, before it is acknowledged. The commit can't be undone: if the files are gone, nothing more
  /// may be written until the database is opened again, even if they come back.
  ///
  /// - Parameter refuse: Records the error with which all later commits are refused.
  /// - Throws: As `check`.
  func confirmCommit(_ report: (StoreIncident) -> Void, refusing refuse: (StoreError) -> Void) throws {
    do {
      try require(report)
    } catch var error as StoreError where error.code == .removed {
      refuse(error)
      error.setMayBeCommitted()
      throw error
    }
  }

  /// Checks after a commit failed, to find out whether that is why.
  ///
  /// - Throws: As `check`.
  func require(after failure: DatabaseError, _ report: (StoreIncident) -> Void) throws {
    do {
      try require(report)
    } catch var error as StoreError where error.code == .removed {
      // What was written before a sync that failed looks committed, wherever the files are now.
      if failure.resultCode == .SQLITE_IOERR { error.setMayBeCommitted() }
      throw error
    }
  }

  /// Checks, and reports the first time that the files are gone.
  ///
  /// - Throws: As `check`.
  func require(_ report: (StoreIncident) -> Void) throws {
    do {
      try check()
    } catch let error as StoreError where error.code == .removed {
      let isFirst = state.withLock { state in
        defer { state.hasReported = true }
        return !state.hasReported
      }
      if isFirst { report(StoreIncident(.removed, error.message)) }
      throw error
    }
  }

  /// Whether the files are known to be the ones in the folder: what is written beside the database belongs to it.
  var isCertain: Bool { (try? check()) != nil }

  private func removed(_ what: String) -> StoreError {
    StoreError(
      .removed,
      """
      the game's files in \(folder.path) were removed, moved or replaced while the game had them open (\(what)): \
      nothing more is saved there; GameData.rescue(to:) saves what is still open in another folder
      """)
  }
}
