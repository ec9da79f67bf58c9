#if Cloud
import Foundation
import GRDB

/// The copy of a cloud's database in a backup: one file, marked so that the server which opens it begins a new epoch.
enum BackedUpDatabase {
  /// The names of the contents' files that a database needs, sorted.
  static func contentFiles(in db: Database) throws -> [String] {
    try String.fetchAll(db, sql: "SELECT file FROM content WHERE file IS NOT NULL ORDER BY file")
  }

  /// Makes one file of a copy, marks it, and checks it.
  static func finish(_ copy: URL) throws {
    let queue = try DatabaseQueue(path: copy.path)
    try queue.writeWithoutTransaction { db in
      // A copy has the server's mode, in which two more files belong to a database.
      try db.execute(sql: "PRAGMA journal_mode = DELETE")
      try CloudNumber.isRestored.set(1, in: db)
      // What is restored is another cloud than the one that is being moved elsewhere.
      try ChangeCapture.remove(in: db)
      try check(db, copy)
    }
    try queue.close()
  }

  /// Checks the database of a backup that is being restored.
  ///
  /// - Parameter contents: The folder that has the contents' files.
  /// - Returns: The generation, and how many contents it needs that aren't there.
  /// - Throws: `damaged` if it isn't whole, or isn't marked; a `ServerError` for one of a newer
  ///   version.
  static func verify(_ database: URL, contents: ContentFiles) throws -> (generation: UInt64, lost: Int) {
    let queue = try DatabaseQueue(path: database.path)
    let result = try queue.read { db in
      try Schema.refuseNewer(db)
      try check(db, database)
      guard try CloudNumber.isRestored.value(in: db) > 0 else {
        throw BackupError(.damaged, "The backup's database isn't marked as one.")
      }
      let names = Set(try contents.names())
      let lost = try contentFiles(in: db).count { !names.contains($0) }
      return (try CloudNumber.generation.value(in: db), lost)
    }
    try queue.close()
    return result
  }

  private static func check(_ db: Database, _ url: URL) throws {
    let found = try String.fetchAll(db, sql: "PRAGMA quick_check(1)")
    guard found == ["ok"] else {
      throw BackupError(
        .damaged, "The database is damaged, as its copy \(url.path) shows: \(found.joined(separator: " ").prefix(300))."
      )
    }
  }
}
#endif
