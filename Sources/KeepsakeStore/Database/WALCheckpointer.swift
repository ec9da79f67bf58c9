import GRDB
import GRDBSQLite
import Synchronization

/// Moves the contents of the write-ahead log into the database, after commits were acknowledged and not within one.
///
/// SQLite itself does this within the commit that makes the log too long, which then waits for the disk three times
/// instead of once.
final class WALCheckpointer: Sendable {
  /// 8 MiB of log: quick to read after a crash, and rare enough not to be noticed.
  static let duePages = 2_000
  /// The log file is truncated to this size after it was longer.
  private static let keptBytes = 8 << 20

  /// Pages in the log after the last commit.
  private let pages = Atomic<Int>(0)
  /// The page count at which the next checkpoint is due. Raised by every checkpoint, so that one held up by a reader's
  /// old pages isn't retried at each commit.
  private let due = Atomic<Int>(duePages)

  /// Takes over from SQLite on the writing connection, for as long as that is open.
  func install(on database: Database) throws {
    try database.execute(sql: "PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = \(Self.keptBytes)")
    // The owner of the connection (`StoreDatabase` or `RecordsDatabase`) keeps this object alive as long as the
    // connection.
    let context = Unmanaged.passUnretained(self).toOpaque()
    sqlite3_wal_hook(
      database.sqliteConnection,
      { context, _, _, pages in
        if let context {
          Unmanaged<WALCheckpointer>.fromOpaque(context).takeUnretainedValue().note(Int(pages))
        }
        return SQLITE_OK
      }, context)
  }

  /// Called after each commit; never concurrently.
  private func note(_ count: Int) {
    // The log was restarted.
    if count < pages.load(ordering: .relaxed) { due.store(Self.duePages, ordering: .relaxed) }
    pages.store(count, ordering: .relaxed)
  }

  var isDue: Bool { pages.load(ordering: .relaxed) >= due.load(ordering: .relaxed) }

  /// Runs a checkpoint. Doesn't block readers; costs some milliseconds and two waits for the disk. If it throws, the
  /// log stays, with everything that was committed.
  func run(on pool: DatabasePool) throws { try pool.writeWithoutTransaction { try run(on: $0) } }

  /// The same, on the writing connection.
  func run(on database: Database) throws {
    _ = try database.checkpoint(.passive)
    due.store(pages.load(ordering: .relaxed) + Self.duePages, ordering: .relaxed)
  }
}
