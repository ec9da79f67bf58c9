#if Cloud && PostgreSQL
// The bank's old decisions, packed. Those that are there already stay in detail: they have no arrival.
extension PostgreSQLSchema {
  /// Several steps, since not every database makes a column, its index and a new name in one transaction.
  ///
  /// The last one ends servers of the version before: they know nothing of packed decisions, and would decide an
  /// operation a second time. Until such a server notices that, it doesn't find its table.
  static let packed = [
    PostgreSQLMigration(["ALTER TABLE decision ADD COLUMN arrival bigint"], oldest: 1),
    PostgreSQLMigration(
      [
        "CREATE INDEX decision_arrival ON decision (container, arrival) WHERE arrival IS NOT NULL",
        """
        CREATE TABLE packed_decision (
          container bytea NOT NULL, level bigint NOT NULL, first bytea NOT NULL, entries bytea NOT NULL,
          PRIMARY KEY (container, level, first)
        )
        """,
      ], oldest: 1),
    PostgreSQLMigration(["ALTER TABLE decision RENAME TO bank_decision"]),
  ]
}
#endif
