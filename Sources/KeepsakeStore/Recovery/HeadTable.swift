import GRDB

/// The table `head`, which derives from the versions and the covered ids.
enum HeadTable {
  private static let uncovered = "FROM version WHERE id NOT IN (SELECT id FROM covered)"

  /// Returns whether the table contains the versions that nothing covers, and nothing else. Costs a look-up for each
  /// version.
  static func isAsImplied(in database: Database) throws -> Bool {
    let differs = try Bool.fetchOne(
      database,
      sql: """
        SELECT EXISTS (SELECT 1 \(uncovered)
            AND NOT EXISTS (SELECT 1 FROM head WHERE head.slot = version.slot AND head.id = version.id))
          OR EXISTS (SELECT slot, id FROM head EXCEPT SELECT slot, id \(uncovered))
        """)
    return differs == false
  }

  /// Rebuilds the table.
  static func rebuild(in database: Database) throws {
    try database.execute(sql: "DELETE FROM head; INSERT INTO head (slot, id) SELECT slot, id \(uncovered)")
  }
}
