#if Cloud
import Foundation
import GRDB

/// The tables of a cloud in SQLite, and how older databases become newer ones.
///
/// Keys and names that come from outside are kept as bytes (UTF-8): SQLite's text ends at a NUL. Unsigned 64-bit numbers are
/// kept by their bits.
enum Schema {
  static let migrations: [String] = ["1 containers, devices, pairing"]

  static func migrator() -> DatabaseMigrator {
    var migrator = DatabaseMigrator()
    migrator.registerMigration(migrations[0]) { db in
      try db.execute(
        sql: """
          CREATE TABLE container (
            id BLOB PRIMARY KEY, epoch INTEGER NOT NULL, seq INTEGER NOT NULL, mark INTEGER NOT NULL, bank BLOB
          ) STRICT, WITHOUT ROWID;
          CREATE TABLE mark (
            container BLOB NOT NULL, seq INTEGER NOT NULL, mark INTEGER NOT NULL, PRIMARY KEY (container, seq)
          ) STRICT, WITHOUT ROWID;
          CREATE TABLE cell (
            container BLOB NOT NULL, collection BLOB NOT NULL, key BLOB NOT NULL, seq INTEGER NOT NULL, state BLOB NOT NULL,
            UNIQUE (container, collection, key), UNIQUE (container, seq)
          ) STRICT;
          CREATE TABLE version (
            container BLOB NOT NULL, id BLOB NOT NULL, slot BLOB NOT NULL, seq INTEGER NOT NULL, head INTEGER NOT NULL,
            record BLOB NOT NULL,
            UNIQUE (container, id), UNIQUE (container, seq)
          ) STRICT;
          CREATE INDEX head ON version (container, slot, id) WHERE head = 1;
          CREATE TABLE covered (
            container BLOB NOT NULL, id BLOB NOT NULL, PRIMARY KEY (container, id)
          ) STRICT, WITHOUT ROWID;
          CREATE TABLE content (
            container BLOB NOT NULL, hash BLOB NOT NULL, length INTEGER NOT NULL, base BLOB, bytes BLOB, file TEXT,
            UNIQUE (container, hash)
          ) STRICT;
          CREATE TABLE decision (
            container BLOB NOT NULL, operation BLOB NOT NULL, chain BLOB NOT NULL, verdict TEXT NOT NULL,
            details BLOB NOT NULL, PRIMARY KEY (container, operation)
          ) STRICT, WITHOUT ROWID;
          CREATE TABLE chainHead (
            container BLOB NOT NULL, chain BLOB NOT NULL, count INTEGER NOT NULL, hash BLOB NOT NULL,
            PRIMARY KEY (container, chain, count)
          ) STRICT, WITHOUT ROWID;
          CREATE TABLE device (
            container BLOB NOT NULL, id BLOB NOT NULL, player BLOB NOT NULL, app BLOB NOT NULL, name BLOB,
            created INTEGER NOT NULL, seen INTEGER NOT NULL, PRIMARY KEY (container, id)
          ) STRICT, WITHOUT ROWID;
          CREATE TABLE pairing (
            app BLOB NOT NULL, code BLOB NOT NULL, container BLOB NOT NULL, player BLOB NOT NULL, expires INTEGER NOT NULL,
            PRIMARY KEY (app, code)
          ) STRICT, WITHOUT ROWID;
          CREATE INDEX pairingContainer ON pairing (container);
          CREATE INDEX pairingExpires ON pairing (expires);
          """)
    }
    return migrator
  }
}
#endif
