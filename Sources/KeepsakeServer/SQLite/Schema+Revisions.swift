#if Cloud
import Foundation
import GRDB
import KeepsakeReplication

// The migration to containers with a revision.
extension Schema {
  /// Gives each container a revision and the bytes that it keeps, which are counted anew: in what the protocol sends,
  /// and no longer in what SQLite stores.
  static func addRevisions(to db: Database) throws {
    for table in ["cell", "version", "content"] {
      for event in ["INSERT", "UPDATE", "DELETE"] { try db.execute(sql: "DROP TRIGGER \(table)\(event)") }
    }
    try db.execute(
      sql: """
        ALTER TABLE container ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE container ADD COLUMN used INTEGER NOT NULL DEFAULT 0;
        INSERT OR IGNORE INTO container (id, epoch, seq, mark) SELECT container, 0, 0, 0 FROM usage;
        DROP TABLE usage;
        """)
    let containers = try Data.fetchAll(db, sql: "SELECT id FROM container")
    for container in containers {
      try db.execute(
        sql: "UPDATE container SET used = ? WHERE id = ?", arguments: [try used(by: container, in: db), container])
    }
  }

  private static func used(by container: Data, in db: Database) throws -> Int64 {
    var used =
      try Int64.fetchOne(
        db, sql: "SELECT sum(size) FROM content WHERE container = ?", arguments: [container]) ?? 0
    let cells = try Row.fetchCursor(
      db, sql: "SELECT collection, key, state FROM cell WHERE container = ?", arguments: [container])
    while let row = try cells.next() {
      let key = CellKey(
        collection: String(decoding: try row.decode(Data.self, atIndex: 0), as: UTF8.self),
        key: String(decoding: try row.decode(Data.self, atIndex: 1), as: UTF8.self))
      used += Int64(CellUpdate(key: key, state: try decoded(CellState.self, row.decode(atIndex: 2))).size)
    }
    let records = try Data.fetchCursor(
      db, sql: "SELECT record FROM version WHERE container = ?", arguments: [container])
    while let record = try records.next() { used += Int64(try decoded(VersionRecord.self, record).size) }
    return used
  }
}
#endif
