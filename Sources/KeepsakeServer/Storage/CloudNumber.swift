#if Cloud
import GRDB
import KeepsakeReplication
// GRDB has a type of this name, too.
import struct KeepsakeReplication.Cursor

/// Numbers of the whole cloud, each a row of the table `number`. One without a row is 0.
enum CloudNumber: String {
  /// The epoch that every bank has to reach: greater after each time that the database was set back to a backup.
  case bankEpoch
  /// Grows at each start and while the server commits; the folder's witness (DatabaseWitness) has it, too.
  case generation
  /// 1 if the database is a backup that was put back: the next start begins a new epoch.
  case isRestored
  /// The number of the newest row of the audit log.
  case auditRows

  func value(in db: Database) throws -> UInt64 {
    let found = try Int64.fetchOne(
      db.cachedStatement(sql: "SELECT value FROM number WHERE name = ?"), arguments: [rawValue])
    guard let value = UInt64(exactly: found ?? 0) else {
      throw ServerError(.damaged, "The database's number \(rawValue) can't be read.")
    }
    return value
  }

  func set(_ value: UInt64, in db: Database) throws {
    try db.cachedStatement(
      sql: """
        INSERT INTO number (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value
        """
    ).execute(arguments: [rawValue, Int64(clamping: value)])
  }

  /// Returns the epoch after `known`.
  ///
  /// It isn't only the next number: a database that was set back has forgotten the epochs that began since. The
  /// server's clock makes it greater than these, too.
  ///
  /// - Parameter now: Milliseconds since 1970.
  static func epoch(after known: UInt64, now: Int64) -> UInt64 {
    min(max(known + 1, UInt64(max(0, now / 1_000))), Cursor.maximumSeq)
  }

  /// Begins a new epoch, whose number is returned.
  static func beginEpoch(in db: Database, now: Int64) throws -> UInt64 {
    let next = epoch(after: try bankEpoch.value(in: db), now: now)
    try bankEpoch.set(next, in: db)
    try isRestored.set(0, in: db)
    // Where the cloud is being moved to, there may be what happened after the backup.
    try ChangeCapture.forgetCopied(in: db)
    return next
  }
}
#endif
