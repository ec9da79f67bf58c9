import GRDB

/// SQLite's own notes of the greatest number that a row of a table ever had. At the end of all numbers nothing can be written any more.
enum Counters {
  private static let tables = ["version", "outbox"]
  /// No store ever comes near.
  private static let most = Int64(1) << 53

  static func areSound(in database: Database) throws -> Bool {
    let wrong = try Int.fetchOne(
      database, sql: "SELECT COUNT(*) FROM sqlite_sequence WHERE typeof(seq) != 'integer' OR seq NOT BETWEEN 0 AND \(most)")
    return wrong == 0
  }

  /// Goes on after the greatest number that is there.
  static func rebuild(in database: Database) throws {
    try database.execute(sql: "DELETE FROM sqlite_sequence")
    for table in tables {
      try database.execute(
        sql: "INSERT INTO sqlite_sequence (name, seq) SELECT ?, COALESCE(MAX(rowid), 0) FROM \(table)", arguments: [table])
    }
  }
}
