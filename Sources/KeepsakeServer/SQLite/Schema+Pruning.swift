#if Cloud
import GRDB

// The migration to pruning.
extension Schema {
  /// Adds where containers stood in the past, with which seq a version was accepted if it has changed since, and
  /// whether an id without a version is of one that was pruned.
  static func addPruning(to db: Database) throws {
    try db.execute(
      sql: """
        CREATE TABLE pastPosition (
          container INTEGER NOT NULL, milliseconds INTEGER NOT NULL, seq INTEGER NOT NULL, devices BLOB NOT NULL,
          PRIMARY KEY (container, milliseconds)
        ) STRICT, WITHOUT ROWID;
        ALTER TABLE version ADD COLUMN accepted INTEGER;
        ALTER TABLE covered ADD COLUMN pruned INTEGER NOT NULL DEFAULT 0;
        """)
  }
}
#endif
