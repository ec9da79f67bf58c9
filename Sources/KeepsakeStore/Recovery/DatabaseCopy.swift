import Foundation
import GRDB

/// Copies a database as it is at one moment, while it may be written to.
enum DatabaseCopy {
  /// Creates a copy at `url`, where no file may exist, and syncs it. It is a single file, without a log.
  ///
  /// Reads a snapshot, so that no writer waits. If this throws, the caller must remove what was written of the file.
  ///
  /// - Parameters:
  ///   - pagesPerStep: How many pages are copied between two calls of `progress`; all in one step if negative.
  ///   - checking: Checks the copy before it is closed. An error that it throws ends the copying.
  ///   - progress: Called after each step, with whether that was the last one. An error that it throws ends the
  ///     copying.
  static func make(
    of source: any BackupSource, at url: URL, pagesPerStep: CInt = -1, checking: (Database) throws -> Void = { _ in },
    progress: @escaping (_ isDone: Bool) throws -> Void = { _ in }
  ) throws {
    var configuration = Configuration()
    configuration.label = "keepsake.backup"
    // The copy is only used once it is synced as a whole.
    configuration.prepareDatabase { try $0.execute(sql: "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF") }
    let target = try DatabaseQueue(path: url.path, configuration: configuration)
    do {
      try target.writeWithoutTransaction { copy in
        try source.read { try $0.backup(to: copy, pagesPerStep: pagesPerStep) { try progress($0.isCompleted) } }
        // The copy is a single file and has no log.
        try copy.execute(sql: "PRAGMA journal_mode = DELETE")
        try checking(copy)
      }
      try target.close()
    } catch {
      try target.close()
      throw error
    }
    try StoreFiles.sync(url)
  }
}
