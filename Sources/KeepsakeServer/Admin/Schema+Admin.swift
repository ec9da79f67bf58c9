#if Cloud
import Foundation
import GRDB
import KeepsakeReplication

// The migration to a hand for the studio.
extension Schema {
  /// Adds admin keys, the audit log, and bans. A deleted player's container is known by a hash of its id from now on.
  static func addAdmin(to db: Database) throws {
    try db.execute(
      sql: """
        CREATE TABLE adminKey (
          id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, digest BLOB NOT NULL UNIQUE, scopes TEXT NOT NULL,
          apps BLOB NOT NULL, created INTEGER NOT NULL, revoked INTEGER
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE audit (
          number INTEGER PRIMARY KEY, at INTEGER NOT NULL, key TEXT NOT NULL, name TEXT NOT NULL, act TEXT NOT NULL,
          request TEXT NOT NULL, details TEXT NOT NULL, result TEXT NOT NULL, player BLOB, subject BLOB,
          chain BLOB NOT NULL
        ) STRICT;
        CREATE INDEX auditPlayer ON audit (player) WHERE player IS NOT NULL;
        CREATE TRIGGER auditUpdate BEFORE UPDATE ON audit
        BEGIN SELECT RAISE(ABORT, 'rows of the audit log are never changed'); END;
        CREATE TRIGGER auditDelete BEFORE DELETE ON audit
        BEGIN SELECT RAISE(ABORT, 'rows of the audit log are never removed'); END;
        CREATE TABLE ban (
          container BLOB PRIMARY KEY, reason TEXT NOT NULL, at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX deviceID ON device (id);
        """)
    for bytes in try Data.fetchAll(db, sql: "SELECT container FROM retired WHERE device = x''") {
      guard let container = ContainerID(bytes: bytes) else { continue }
      try db.execute(
        sql: "UPDATE retired SET container = ? WHERE container = ? AND device = x''",
        arguments: [container.deletedMark, bytes])
    }
  }
}

extension Identifier where Kind == ContainerKind {
  /// What remains of the id once everything of its player was deleted: enough to recognize it in a token, and nothing
  /// from which it follows.
  var deletedMark: Data { Data(ContentHash(of: Data("deleted \(self)".utf8)).bytes.prefix(16)) }
}
#endif
