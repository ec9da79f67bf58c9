import Foundation
import GRDB

/// The tables of a store, and the migrations from each earlier format to the current one.
enum Schema {
  /// Identifies the file as a store: "KEEP" in ASCII, in SQLite's header.
  static let applicationID: Int32 = 0x4B45_4550
  /// The format that this release writes. A store with a later format is refused and left untouched.
  static var currentVersion: Int32 { Int32(migrations.count) }

  /// Step n migrates from format n to n + 1. A released step never changes.
  private static let migrations: [@Sendable (Database) throws -> Void] = [createTables, addNotDownloaded, addPerformed]

  /// Checks the file's header, by reading its first bytes before SQLite touches anything.
  static func checkHeader(of url: URL) throws {
    let header: Data
    do {
      let file = try FileHandle(forReadingFrom: url)
      defer { try? file.close() }  // Only read from: closing can lose nothing.
      header = try file.read(upToCount: 100) ?? Data()
    } catch CocoaError.fileReadNoSuchFile, CocoaError.fileNoSuchFile {
      return
    } catch {
      throw StoreError(.io, "the store's database at \(url.path) can't be read", cause: error)
    }
    // SQLite creates the file before it writes the first page.
    if header.isEmpty { return }
    guard header.count == 100, header.starts(with: Data("SQLite format 3\0".utf8)) else {
      // A power cut while the store was created: the file has grown, but its first page is missing. SQLite rolls that
      // back.
      if try hasJournal(url) { return }
      throw StoreError(.damaged, "the file at \(url.path) is not a database, or its first page is damaged")
    }
    try check(version: header.bigEndian(at: 60), application: header.bigEndian(at: 68), at: url)
  }

  /// Returns whether a rollback journal exists beside the database. That is so only while a store is created; later it
  /// has a write-ahead log.
  private static func hasJournal(_ url: URL) throws -> Bool {
    let journal = url.deletingLastPathComponent().appendingPathComponent(url.lastPathComponent + "-journal")
    guard FileManager.default.fileExists(atPath: journal.path) else { return false }
    do {
      return try (journal.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0) > 0
    } catch {
      throw StoreError(.io, "the journal at \(journal.path) can't be examined", cause: error)
    }
  }

  /// Migrates the database to the current format, with all steps in one transaction.
  static func migrate(_ database: Database, at url: URL) throws {
    let version = try Int32.fetchOne(database, sql: "PRAGMA user_version") ?? 0
    let application = try Int32.fetchOne(database, sql: "PRAGMA application_id") ?? 0
    try check(version: version, application: application, at: url)
    guard version < currentVersion else { return }
    let tables = try Int.fetchOne(database, sql: "SELECT COUNT(*) FROM sqlite_schema") ?? 0
    if version == 0, tables > 0 {
      throw StoreError(.misuse, "the database at \(url.path) belongs to another program")
    }
    try database.inTransaction {
      for step in migrations[Int(version)...] { try step(database) }
      try database.execute(sql: "PRAGMA application_id = \(applicationID)")
      try database.execute(sql: "PRAGMA user_version = \(currentVersion)")
      return .commit
    }
    // Writes the new version into the file's header, where an older release looks before it opens anything.
    _ = try database.checkpoint(.truncate)
  }

  /// Creates the tables in an empty database.
  static func create(in database: Database) throws {
    for step in migrations { try step(database) }
    try database.execute(sql: "PRAGMA application_id = \(applicationID)")
    try database.execute(sql: "PRAGMA user_version = \(currentVersion)")
  }

  private static func check(version: Int32, application: Int32, at url: URL) throws {
    guard application == applicationID || application == 0 else {
      throw StoreError(.misuse, "the database at \(url.path) belongs to another program")
    }
    if isNewer(version) { try refuse(version: version, at: url) }
    guard (0...currentVersion).contains(version) else {
      throw StoreError(.damaged, "the store at \(url.path) has the invalid format \(version)")
    }
  }

  /// Returns whether a later release can have written this format. A release increments the number by one; a number far
  /// beyond is damage.
  static func isNewer(_ version: Int32) -> Bool { version > currentVersion && version <= plausibleVersions }

  private static let plausibleVersions: Int32 = 255

  /// Throws `misuse` if the store has an older format: a reader can't migrate it.
  static func requireCurrent(_ database: Database, at url: URL) throws {
    let version = try Int32.fetchOne(database, sql: "PRAGMA user_version") ?? 0
    guard version != 0, version < currentVersion else { return }
    throw StoreError(
      .misuse,
      """
      the store at \(url.path) has the older format \(version): open it once with the game, which upgrades it to \
      format \(currentVersion)
      """)
  }

  static func refuse(version: Int32, at url: URL) throws -> Never {
    throw StoreError(
      .newerFormat,
      """
      the store at \(url.path) has format \(version), but this program knows formats up to \(currentVersion): update \
      the game
      """)
  }

  @Sendable private static func createTables(_ database: Database) throws {
    try database.execute(
      sql: """
        -- Facts, the wallet: one row each.
        CREATE TABLE fact (name TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;

        CREATE TABLE cell (
          collection TEXT NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL,
          PRIMARY KEY (collection, key)) WITHOUT ROWID;

        -- Preferences of this device alone; those that are synced are cells.
        CREATE TABLE preference (name TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;

        -- rank: which score it is, in bytes that sort the best of a board first (ScoreRank). Each player's best is a
        -- cell, too.
        CREATE TABLE score (
          board TEXT NOT NULL, rank BLOB NOT NULL, date INTEGER NOT NULL, id BLOB NOT NULL, player TEXT NOT NULL,
          body BLOB NOT NULL,
          PRIMARY KEY (board, rank, date, id)) WITHOUT ROWID;
        CREATE INDEX score_player ON score (board, player, rank, date, id);

        -- position: the order in which this store came to know the versions. thinned: only the record is kept, for
        -- what it says about which versions come from which; its contents are not. pinned: kept whole, whatever the
        -- rules say.
        CREATE TABLE version (
          position INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL UNIQUE, slot TEXT NOT NULL,
          saved_at INTEGER NOT NULL,
          acknowledged INTEGER NOT NULL, offered INTEGER NOT NULL, thinned INTEGER NOT NULL, pinned INTEGER NOT NULL,
          tombstone INTEGER NOT NULL, body BLOB NOT NULL);
        -- All that the rules for history look at.
        CREATE INDEX version_slot ON version (slot, thinned, position, saved_at, pinned, tombstone);
        CREATE INDEX version_unacknowledged ON version (id) WHERE acknowledged = 0;

        -- Ids that are never a head again; kept for ever.
        CREATE TABLE covered (id BLOB PRIMARY KEY, checksum BLOB NOT NULL) WITHOUT ROWID;
        -- The versions that are not covered: derived, so that a save needn't look at all of a slot's past.
        CREATE TABLE head (slot TEXT NOT NULL, id BLOB NOT NULL, PRIMARY KEY (slot, id)) WITHOUT ROWID;

        -- base: the content whose plain bytes the frame takes as its prefix; none for a full frame.
        CREATE TABLE content (
          position INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, length INTEGER NOT NULL, base BLOB,
          bytes BLOB NOT NULL);
        CREATE INDEX content_base ON content (base) WHERE base IS NOT NULL;
        CREATE TABLE content_use (hash BLOB NOT NULL, version BLOB NOT NULL, PRIMARY KEY (hash, version)) WITHOUT ROWID;
        CREATE TABLE cloud_content (hash BLOB PRIMARY KEY, depth INTEGER NOT NULL) WITHOUT ROWID;

        CREATE TABLE outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL);
        CREATE TABLE staged (position INTEGER PRIMARY KEY, body BLOB NOT NULL);
        -- The contents of staged versions, which nobody may collect: derived, so that thinning needn't read what is
        -- staged.
        CREATE TABLE awaited (hash BLOB PRIMARY KEY) WITHOUT ROWID;

        -- What tells a sealed store from one with rows missing or put back: one row.
        CREATE TABLE ledger (id INTEGER PRIMARY KEY, body BLOB NOT NULL);

        -- What a seal found to be by other hands, as it stood: what it claimed to be, and what became of it.
        CREATE TABLE quarantine (id INTEGER PRIMARY KEY, place TEXT NOT NULL, outcome TEXT NOT NULL, body BLOB);
        """)
  }

  /// `deferred`: pruned even if it is a head, because the cloud has its contents and the game requests them when it
  /// wants them.
  @Sendable private static func addNotDownloaded(_ database: Database) throws {
    try database.execute(
      sql: """
        ALTER TABLE version ADD COLUMN deferred INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX version_deferred ON version (id) WHERE deferred = 1;
        """)
  }

  /// What the wallet ever performed here; kept for ever. `key`: the id of an operation, or a hash of a claim's key. The
  /// first opening fills it from the ledger, which may be encrypted.
  @Sendable private static func addPerformed(_ database: Database) throws {
    try database.execute(
      sql: """
        CREATE TABLE performed (
          key BLOB PRIMARY KEY, fingerprint INTEGER NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID;
        """)
  }
}

extension Data {
  fileprivate func bigEndian(at offset: Int) -> Int32 {
    withUnsafeBytes { Int32(bigEndian: $0.loadUnaligned(fromByteOffset: offset, as: Int32.self)) }
  }
}
