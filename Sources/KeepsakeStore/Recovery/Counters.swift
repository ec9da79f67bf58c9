import GRDB

/// SQLite's own records of the greatest row number that a table ever had. After the greatest possible number, nothing
/// more can be written.
enum Counters {
  private static let tables = ["version", "outbox"]
  /// No store ever comes near this number.
  private static let most = Int64(1) << 53

  static func areSound(in database: Database) throws -> Bool {
    let wrong = try Int.fetchOne(
      database,
      sql: "SELECT COUNT(*) FROM sqlite_sequence WHERE typeof(seq) != 'integer' OR seq NOT BETWEEN 0 AND \(most)")
    return wrong == 0
  }

  /// Continues after the greatest existing number.
  static func rebuild(in database: Database) throws {
    try database.execute(sql: "DELETE FROM sqlite_sequence")
    for table in tables {
      try database.execute(
        sql: "INSERT INTO sqlite_sequence (name, seq) SELECT ?, COALESCE(MAX(rowid), 0) FROM \(table)",
        arguments: [table])
    }
  }
}
