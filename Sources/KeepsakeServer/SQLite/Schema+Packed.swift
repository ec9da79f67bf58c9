#if Cloud
import Foundation
import GRDB
import KeepsakeReplication

// The migration to packed rows.
extension Schema {
  /// Gives each container a number, by which the rows of its items name it, and puts what its devices have reached
  /// into its row. Packs records, puts marks beside the changes that they are of, and counts in each content what holds
  /// it. Of the tables `mark` and `covered`, what isn't elsewhere remains.
  static func packRows(in db: Database) throws {
    try db.execute(sql: "DROP INDEX head")
    try db.execute(sql: newTables)
    try db.execute(
      sql: """
        INSERT INTO newContainer (id, epoch, seq, mark, revision, used, bank)
        SELECT id, epoch, seq, mark, revision, used, bank FROM container ORDER BY id;
        INSERT OR IGNORE INTO newContainer (id, epoch, seq, mark)
        SELECT container, 0, 0, 0 FROM (
          SELECT container FROM cell UNION SELECT container FROM version UNION SELECT container FROM content
          UNION SELECT container FROM mark UNION SELECT container FROM covered
          UNION SELECT container FROM device WHERE reached > 0
        );
        INSERT INTO newCell (container, seq, mark, collection, key, state)
        SELECT owner.number, cell.seq, ifnull(mark.mark, 0), collection, key, state
        FROM cell JOIN newContainer AS owner ON owner.id = cell.container
        LEFT JOIN mark ON mark.container = cell.container AND mark.seq = cell.seq ORDER BY cell.rowid;
        INSERT INTO newContent (
          number, container, length, base, file, size, taken, suspect, holders, leaning, hash, bytes)
        SELECT content.rowid, owner.number, length,
          ifnull((
            SELECT base.rowid FROM content AS base WHERE base.container = content.container AND base.hash = content.base
          ), base),
          file, size, taken, suspect,
          (SELECT count(*) FROM holder WHERE holder.container = content.container AND holder.hash = content.hash),
          (
            SELECT count(*) FROM content AS leaning
            WHERE leaning.container = content.container AND leaning.base = content.hash
          ), hash, bytes
        FROM content JOIN newContainer AS owner ON owner.id = content.container ORDER BY content.rowid;
        """)
    try packVersions(in: db)
    try db.execute(
      sql: """
        INSERT INTO newMark SELECT owner.number, mark.seq, mark.mark
        FROM mark JOIN newContainer AS owner ON owner.id = mark.container
        WHERE NOT EXISTS (SELECT 1 FROM cell WHERE cell.container = mark.container AND cell.seq = mark.seq)
        AND NOT EXISTS (SELECT 1 FROM version WHERE version.container = mark.container AND version.seq = mark.seq);
        INSERT INTO newCovered SELECT owner.number, covered.id
        FROM covered JOIN newContainer AS owner ON owner.id = covered.container
        WHERE NOT EXISTS (
          SELECT 1 FROM version WHERE version.container = covered.container AND version.id = covered.id
        );
        """)
    try moveReached(in: db)
    try db.execute(sql: "DROP TABLE holder")
    for table in ["container", "cell", "version", "content", "mark", "covered"] {
      let new = "new" + table.prefix(1).uppercased() + table.dropFirst()
      try db.execute(sql: "DROP TABLE \(table); ALTER TABLE \(new) RENAME TO \(table)")
    }
    try db.execute(sql: newIndexes)
  }

  /// Rows are found by few and short indexes: each is a tree, of which a commit writes a page.
  private static let newTables = """
    CREATE TABLE newContainer (
      number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, epoch INTEGER NOT NULL, seq INTEGER NOT NULL,
      mark INTEGER NOT NULL, revision INTEGER NOT NULL DEFAULT 0, used INTEGER NOT NULL DEFAULT 0,
      reached BLOB NOT NULL DEFAULT x'', bank BLOB
    ) STRICT;
    CREATE TABLE newCell (
      number INTEGER PRIMARY KEY, container INTEGER NOT NULL, seq INTEGER NOT NULL, mark INTEGER NOT NULL,
      collection BLOB NOT NULL, key BLOB NOT NULL, state BLOB NOT NULL
    ) STRICT;
    CREATE TABLE newVersion (
      number INTEGER PRIMARY KEY, container INTEGER NOT NULL, seq INTEGER NOT NULL, mark INTEGER NOT NULL,
      holds INTEGER NOT NULL, id BLOB NOT NULL, slot BLOB NOT NULL, record BLOB NOT NULL
    ) STRICT;
    CREATE TABLE head (
      container INTEGER NOT NULL, slot BLOB NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (container, slot, version)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE newContent (
      number INTEGER PRIMARY KEY, container INTEGER NOT NULL, length INTEGER NOT NULL, base ANY, file TEXT,
      size INTEGER NOT NULL, taken INTEGER NOT NULL, suspect INTEGER NOT NULL DEFAULT 0,
      holders INTEGER NOT NULL DEFAULT 0, leaning INTEGER NOT NULL DEFAULT 0, hash BLOB NOT NULL, bytes BLOB
    ) STRICT;
    CREATE TABLE newMark (
      container INTEGER NOT NULL, seq INTEGER NOT NULL, mark INTEGER NOT NULL, PRIMARY KEY (container, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE newCovered (
      container INTEGER NOT NULL, id BLOB NOT NULL, PRIMARY KEY (container, id)
    ) STRICT, WITHOUT ROWID;
    """

  private static let newIndexes = """
    CREATE UNIQUE INDEX cellKey ON cell (container, collection, key);
    CREATE UNIQUE INDEX cellSeq ON cell (container, seq);
    CREATE UNIQUE INDEX versionSeq ON version (container, seq);
    CREATE UNIQUE INDEX versionID ON version (container, id);
    CREATE INDEX contentHash ON content (container, substr(hash, 1, 8));
    CREATE INDEX contentSuspect ON content (container, hash) WHERE suspect = 1;
    CREATE INDEX contentFile ON content (file) WHERE file IS NOT NULL;
    """

  private static func packVersions(in db: Database) throws {
    let versions = try Row.fetchCursor(
      db,
      sql: """
        SELECT owner.number, version.seq, ifnull(mark.mark, 0), EXISTS (
            SELECT 1 FROM holder WHERE holder.container = version.container AND holder.slot = version.slot
            AND holder.version = version.id
          ), version.id, slot, record, head
        FROM version JOIN newContainer AS owner ON owner.id = version.container
        LEFT JOIN mark ON mark.container = version.container AND mark.seq = version.seq
        ORDER BY version.rowid
        """)
    while let row = try versions.next() {
      let record = try decoded(VersionRecord.self, row.decode(atIndex: 6))
      let container = try row.decode(Int64.self, atIndex: 0)
      let slot = try row.decode(Data.self, atIndex: 5)
      try db.cachedStatement(
        sql: "INSERT INTO newVersion (container, seq, mark, holds, id, slot, record) VALUES (?, ?, ?, ?, ?, ?, ?)"
      ).execute(
        arguments: [
          container, try row.decode(Int64.self, atIndex: 1), try row.decode(Int64.self, atIndex: 2),
          try row.decode(Bool.self, atIndex: 3), try row.decode(Data.self, atIndex: 4), slot,
          PackedRecord(record).bytes,
        ])
      guard try row.decode(Bool.self, atIndex: 7) else { continue }
      try db.cachedStatement(sql: "INSERT INTO head (container, slot, version) VALUES (?, ?, ?)").execute(
        arguments: [container, slot, db.lastInsertedRowID])
    }
  }

  private static func moveReached(in db: Database) throws {
    let rows = try Row.fetchAll(db, sql: "SELECT container, id, reached FROM device WHERE reached > 0")
    for (container, rows) in Dictionary(grouping: rows, by: { $0["container"] as Data }) {
      var reached = PackedReached([:])
      for row in rows {
        guard let device = try DeviceID(bytes: row.decode(atIndex: 1)) else {
          throw ServerError(.damaged, "A device's row can't be read.")
        }
        reached[device] = UInt64(bitPattern: try row.decode(atIndex: 2))
      }
      try db.cachedStatement(sql: "UPDATE newContainer SET reached = ? WHERE id = ?").execute(
        arguments: [reached.bytes, container])
    }
    try db.execute(sql: "ALTER TABLE device DROP COLUMN reached")
  }
}
#endif
