#if Cloud
import GRDB

// The migration to pruning.
extension Schema {
  /// Adds where containers stood in the past, and with which seq a version was accepted if it has changed since.
  static func addPruning(to db: Database) throws {
    try db.execute(
      sql: """
        CREATE TABLE pastPosition (
          container INTEGER NOT NULL, milliseconds INTEGER NOT NULL, seq INTEGER NOT NULL, devices BLOB NOT NULL,
          PRIMARY KEY (container, milliseconds)
        ) STRICT, WITHOUT ROWID;
        ALTER TABLE version ADD COLUMN accepted INTEGER;
        """)
  }
}
#endif
