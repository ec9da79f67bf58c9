import Foundation
import GRDB

/// Copies a database as it is at one moment, while others write to it.
enum DatabaseCopy {
  /// Makes the file at `url`, where there is none, and syncs it. It is one file, without a log.
  ///
  /// It reads a snapshot, so that no writer waits. What is left of the file where this throws is the caller's to remove.
  ///
  /// - Parameters:
  ///   - pagesPerStep: How many pages are copied between two calls of `progress`; all at once if negative.
  ///   - checking: Looks at the copy before it is closed; what it throws ends this.
  ///   - progress: Told whether that was all; what it throws ends this.
  static func make(
    of source: any BackupSource, at url: URL, pagesPerStep: CInt = -1, checking: (Database) throws -> Void = { _ in },
    progress: @escaping (_ isDone: Bool) throws -> Void = { _ in }
  ) throws {
    var configuration = Configuration()
    configuration.label = "keepsake.backup"
    // It counts for nothing before it is synced as a whole.
    configuration.prepareDatabase { try $0.execute(sql: "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF") }
    let target = try DatabaseQueue(path: url.path, configuration: configuration)
    do {
      try target.writeWithoutTransaction { copy in
        try source.read { try $0.backup(to: copy, pagesPerStep: pagesPerStep) { try progress($0.isCompleted) } }
        // Alone it has no log.
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
