import GRDB
import GRDBSQLite
import Synchronization

/// Moves what the write-ahead log holds into the database, after commits were acknowledged and not within one.
///
/// SQLite by itself does it within the commit that makes the log long, which then waits for the disk three times instead of once.
final class WALCheckpointer: Sendable {
  /// 8 MiB of log: read quickly after a crash, and seldom enough not to be felt.
  static let duePages = 2_000
  /// The log's file is cut to this after it was longer.
  private static let keptBytes = 8 << 20

  /// Pages in the log after the last commit.
  private let pages = Atomic<Int>(0)
  /// At how many it is done next: where a reader holds on to old pages, not at each commit again.
  private let due = Atomic<Int>(duePages)

  /// Takes over from SQLite on the connection that writes, for as long as that is open.
  func install(on database: Database) throws {
    try database.execute(sql: "PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = \(Self.keptBytes)")
    // `StoreDatabase` holds this object as long as the connection.
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

  /// After each commit, one at a time.
  private func note(_ count: Int) {
    // The log began anew.
    if count < pages.load(ordering: .relaxed) { due.store(Self.duePages, ordering: .relaxed) }
    pages.store(count, ordering: .relaxed)
  }

  var isDue: Bool { pages.load(ordering: .relaxed) >= due.load(ordering: .relaxed) }

  /// Does it. Blocks no reader; costs some milliseconds and two waits on the disk. If it throws, the log stays, and with it all that was
  /// committed.
  func run(on pool: DatabasePool) throws { try pool.writeWithoutTransaction { try run(on: $0) } }

  /// The same on the connection that writes.
  func run(on database: Database) throws {
    _ = try database.checkpoint(.passive)
    due.store(pages.load(ordering: .relaxed) + Self.duePages, ordering: .relaxed)
  }
}
