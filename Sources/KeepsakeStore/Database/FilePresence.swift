import Foundation
import Synchronization

/// Knows the files that a database has open, and finds out whether they are still the ones in their folder.
///
/// A system lets a program write to a file that was removed or moved away: every commit succeeds, and nobody ever finds
/// it. The database, its log and the lock are compared with what is at their paths now: some microseconds, beside a
/// commit's wait for the disk.
final class FilePresence: Sendable {
  private struct File {
    var path: String
    var identity: FileIdentity
  }
  private struct State {
    var files: [File] = []
    var hasReported = false
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
    for file in state.withLock({ $0.files }) {
      let name = file.path.split(separator: "/").last ?? ""
      guard let found = try FileIdentity(at: file.path) else { throw removed("\(name) is gone") }
      guard found == file.identity else { throw removed("\(name) is another file") }
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
