#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import Logging

/// The tables of a cloud in SQLite, and the migrations of older databases.
///
/// Keys and names from outside are stored as bytes (UTF-8), because SQLite's text ends at a NUL. Unsigned 64-bit
/// numbers are stored as their bit patterns.
enum Schema {
  static let migrations: [String] = [
    "1 containers, devices, pairing", "2 room and damage", "3 offers in parts", "4 removed devices",
    "5 what devices have seen", "6 packed decisions", "7 the bank's own operations",
    "8 tokens with an age",
    "9 revisions", "10 packed rows", "11 pruning", "12 recovery codes",
    "13 identities", "14 admin", "15 webhooks", "16 set-back stores", "17 shared containers",
  ]

  static func migrator(files: ContentFiles) -> DatabaseMigrator {
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
            container BLOB NOT NULL, collection BLOB NOT NULL, key BLOB NOT NULL, seq INTEGER NOT NULL,
            state BLOB NOT NULL,
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
            app BLOB NOT NULL, code BLOB NOT NULL, container BLOB NOT NULL, player BLOB NOT NULL,
            expires INTEGER NOT NULL,
            PRIMARY KEY (app, code)
          ) STRICT, WITHOUT ROWID;
          CREATE INDEX pairingContainer ON pairing (container);
          CREATE INDEX pairingExpires ON pairing (expires);
          """)
    }
    migrator.registerMigration(migrations[1]) { try addRoom(to: $0, files) }
    migrator.registerMigration(migrations[2]) { db in
      try db.execute(
        sql: """
          CREATE TABLE offerPart (
            container BLOB NOT NULL, offer BLOB NOT NULL, number INTEGER NOT NULL, size INTEGER NOT NULL,
            touched INTEGER NOT NULL,
            items BLOB NOT NULL, UNIQUE (container, offer, number)
          ) STRICT;
          """)
    }
    migrator.registerMigration(migrations[3]) { db in
      // A device of no bytes means all devices: everything of the player was deleted.
      try db.execute(
        sql: """
          CREATE TABLE retired (
            container BLOB NOT NULL, device BLOB NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (container, device)
          ) STRICT, WITHOUT ROWID;
          CREATE TABLE deviceChain (
            container BLOB NOT NULL, device BLOB NOT NULL, chain BLOB NOT NULL, PRIMARY KEY (container, device, chain)
          ) STRICT, WITHOUT ROWID;
          """)
    }
    migrator.registerMigration(migrations[4]) { db in
      try db.execute(sql: "ALTER TABLE device ADD COLUMN reached INTEGER NOT NULL DEFAULT 0")
    }
    migrator.registerMigration(migrations[5], migrate: renewBanks)
    migrator.registerMigration(migrations[6], migrate: addOrders)
    migrator.registerMigration(migrations[7], migrate: addTokenUses)
    migrator.registerMigration(migrations[8], migrate: addRevisions)
    migrator.registerMigration(migrations[9], migrate: packRows)
    migrator.registerMigration(migrations[10], migrate: addPruning)
    migrator.registerMigration(migrations[11]) { db in
      // The code that was used last, and the device that got the current one.
      try db.execute(
        sql: """
          CREATE TABLE recovery (
            container BLOB PRIMARY KEY, app BLOB NOT NULL, player BLOB NOT NULL, code BLOB NOT NULL, used BLOB,
            device BLOB NOT NULL, created INTEGER NOT NULL, UNIQUE (code)
          ) STRICT, WITHOUT ROWID;
          CREATE INDEX recoveryUsed ON recovery (used) WHERE used IS NOT NULL;
          CREATE INDEX recoveryPlayer ON recovery (player);
          """)
    }
    migrator.registerMigration(migrations[12], migrate: addIdentities)
    migrator.registerMigration(migrations[13], migrate: addAdmin)
    migrator.registerMigration(migrations[14], migrate: addWebhooks)
    migrator.registerMigration(migrations[15]) { db in
      // Of a device whose store went back to an older state; null for any other.
      try db.execute(sql: "ALTER TABLE device ADD COLUMN setBack BLOB")
    }
    migrator.registerMigration(migrations[16], migrate: addShared)
    return migrator
  }

  /// Adds how much room each player's data takes (kept by triggers, so that nothing can be added or removed without
  /// being counted), which versions hold which contents, and which contents are damaged.
  private static func addRoom(to db: Database, _ files: ContentFiles) throws {
    try db.execute(
      sql: """
        ALTER TABLE content ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE content ADD COLUMN taken INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE content ADD COLUMN suspect INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX contentBase ON content (container, base) WHERE base IS NOT NULL;
        CREATE INDEX contentSuspect ON content (container, hash) WHERE suspect = 1;
        CREATE TABLE holder (
          container BLOB NOT NULL, hash BLOB NOT NULL, version BLOB NOT NULL, slot BLOB NOT NULL,
          PRIMARY KEY (container, hash, version)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX holderVersion ON holder (container, slot, version);
        CREATE TABLE usage (container BLOB PRIMARY KEY, used INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        UPDATE content SET size = length(bytes) WHERE bytes IS NOT NULL;
        """)
    let large = try Row.fetchCursor(db, sql: "SELECT rowid, file FROM content WHERE file IS NOT NULL")
    while let row = try large.next() {
      // A missing file takes no room; its row is removed when the content is sent again.
      guard case .file(_, let count)? = try files.file(named: row.decode(atIndex: 1)) else { continue }
      try db.execute(
        sql: "UPDATE content SET size = ? WHERE rowid = ?", arguments: [count, try row.decode(Int64.self, atIndex: 0)])
    }
    let versions = try Row.fetchCursor(db, sql: "SELECT container, id, slot, record FROM version")
    while let row = try versions.next() {
      let record = try decoded(VersionRecord.self, row.decode(atIndex: 3))
      for hash in record.contents {
        try db.execute(
          sql: "INSERT OR IGNORE INTO holder (container, hash, version, slot) VALUES (?, ?, ?, ?)",
          arguments: [
            try row.decode(Data.self, atIndex: 0), hash.bytes, try row.decode(Data.self, atIndex: 1),
            try row.decode(Data.self, atIndex: 2),
          ])
      }
    }
    try db.execute(
      sql: """
        INSERT INTO usage (container, used)
        SELECT container, sum(size) FROM (
          SELECT container, length(state) AS size FROM cell
          UNION ALL SELECT container, length(record) FROM version
          UNION ALL SELECT container, size FROM content
        ) GROUP BY container;
        """)
    for (table, size) in [("cell", "length(ROW.state)"), ("version", "length(ROW.record)"), ("content", "ROW.size")] {
      let (new, old) = (
        size.replacingOccurrences(of: "ROW", with: "new"), size.replacingOccurrences(of: "ROW", with: "old")
      )
      for (event, owner, change) in [
        ("INSERT", "new", new), ("UPDATE", "new", "\(new) - \(old)"), ("DELETE", "old", "-\(old)"),
      ] {
        try db.execute(
          sql: """
            CREATE TRIGGER \(table)\(event) AFTER \(event) ON \(table) BEGIN
              INSERT INTO usage (container, used) VALUES (\(owner).container, \(change))
              ON CONFLICT (container) DO UPDATE SET used = used + excluded.used;
            END;
            """)
      }
    }
  }
}

// MARK: Opening

extension Schema {
  /// The size of a page: small, because a commit writes a whole page of each tree that it touches.
  static let pageBytes = 1_024

  /// Creates a database, or migrates an older one. One with pages of another size is rebuilt, which takes its bytes of
  /// disk twice more for that time; without that room, it stays as it is until the next start.
  static func prepare(
    _ database: URL, _ configuration: Configuration, files: ContentFiles, logger: Logger
  ) throws {
    let queue = try DatabaseQueue(path: database.path, configuration: configuration)
    // Of a new database, this is the size.
    try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA page_size = \(pageBytes)") }
    try migrator(files: files).migrate(queue)
    do {
      try queue.writeWithoutTransaction { db in
        guard try Int.fetchOne(db, sql: "PRAGMA page_size") != pageBytes else { return }
        logger.notice("The database is rebuilt with smaller pages.")
        // With a write-ahead log, the size can't be changed. The database returns to it when the pool opens.
        try db.execute(sql: "PRAGMA journal_mode = DELETE; PRAGMA page_size = \(pageBytes); VACUUM")
      }
    } catch let error as DatabaseError where [.SQLITE_FULL, .SQLITE_BUSY].contains(error.resultCode) {
      logger.failure("The database can't be rebuilt with smaller pages: its log takes more room", error)
    }
    try queue.close()
  }

  /// Throws `newerData` for a database of a newer version, and another error for one whose cloud has moved elsewhere.
  static func refuseNewer(_ db: Database) throws {
    try refuseNewer(db, evenMoved: false)
  }

  private static func refuseNewer(_ db: Database, evenMoved: Bool) throws {
    if !evenMoved { try CloudFence.refuse(db) }
    guard try db.tableExists("grdb_migrations") else { return }
    if let unknown = try applied(in: db).first(where: { !migrations.contains($0) }) {
      throw ServerError(
        .newerData,
        "The database was written by a newer version of the server (\"\(unknown)\"); run that version or a newer one.")
    }
  }

  /// Throws for a database of a newer or older version, which can't be read without being changed.
  ///
  /// - Parameter evenMoved: Whether the cloud may have moved elsewhere.
  static func requireCurrent(_ db: Database, evenMoved: Bool = false) throws {
    try refuseNewer(db, evenMoved: evenMoved)
    guard try db.tableExists("grdb_migrations"), try applied(in: db).count == migrations.count else {
      throw ServerError(
        .unusableFile, "The database was written by an older version of the server: run `keepsake serve` once.")
    }
  }

  private static func applied(in db: Database) throws -> [String] {
    try String.fetchAll(db, sql: "SELECT identifier FROM grdb_migrations ORDER BY identifier")
  }

  /// Returns what to throw when a database can't be opened.
  static func failure(_ error: any Error, opening database: URL) -> any Error {
    switch error {
    case is ServerError: error
    case let error as DatabaseError where [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode):
      ServerError(.damaged, "The database \(database.path) is damaged.", cause: error)
    default: ServerError(.inputOutput, "The database \(database.path) can't be opened.", cause: error)
    }
  }
}
#endif
