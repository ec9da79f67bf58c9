public import Foundation
public import GRDB
import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// The game's own database tables, for many items that are looked up by their contents.
///
/// A SQLite database beside the saves, used directly through GRDB: queries, observation and record types are GRDB's
/// own. A source file that uses them also imports `KeepsakeRecords`, which gives it GRDB. That module is part of the
/// product `Keepsake`, so your `Package.swift` needs nothing more.
///
/// ```swift
/// import Keepsake
/// import KeepsakeRecords
///
/// var migrator = DatabaseMigrator()
/// migrator.registerMigration("creatures") { db in
///   try db.create(table: "creature") { table in
///     table.primaryKey("id", .integer)
///     table.column("name", .text).notNull()
///     table.column("seen", .integer).notNull().indexed()
///   }
/// }
/// try game.records.migrate(migrator)
/// try game.records.write { db in
///   try db.execute(sql: "INSERT INTO creature (name, seen) VALUES (?, ?)", arguments: [name, now])
/// }
/// let count = try game.records.read { db in
///   try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM creature WHERE seen > ?", arguments: [then])
/// }
/// ```
///
/// Pass values as `arguments`, never in the text of a statement.
///
/// The database file is opened and checked at the first use: a file of up to 64 MiB completely, in about a tenth of a
/// second; in a larger one, only the schema. Backups and repair work as for the saves, and `GameData.incidents` reports
/// them. Rows have no checksums, so a value that changes on disk isn't detected.
///
/// Not promised: the tables aren't covered by the game's seal, and they aren't synced. Keep what other devices need in
/// saves and progress. `snapshot(to:)` writes the tables to one file, and `restore(from:migrator:)` reads it;
/// `game.files.track` keeps versions of such a file. Tables and saves aren't committed together: after a crash there
/// may be one without the other, so write the tables first and let a save refer to the rows it needs.
///
/// Safe to use from any thread. A `read` inside a `read` sees the same state; a `read` inside a `write` sees the tables
/// as they were before the write. A `write` inside a `write` throws `misuse`, and so do `migrate` and `restore` inside
/// either.
public final class Records: Sendable {
  private enum Phase {
    case unopened
    case open(RecordsDatabase)
    /// A newer release of the game wrote the tables, so this one must not touch them.
    case refused(StoreError)
    case closed
  }

  private let core: GameCore
  private let phase = Mutex(Phase.unopened)
  /// Held while the file is opened, which may take long. `close` waits for it, but no longer than its limit.
  private let opens = TimedLock()

  init(core: GameCore) { self.core = core }

  deinit {
    phase.withLock { phase in
      if case .open(let database) = phase { database.willBeReleased() }
    }
  }

  /// Reads the tables as of the last commit. Doesn't wait for writes, and writes don't wait for it.
  ///
  /// - Parameter body: Reads the database.
  /// - Returns: The result of `body`.
  /// - Throws: `StoreError` with `damaged`, `io` or `newerFormat`; `GameDataError` with `closed`; GRDB's
  ///   `DatabaseError` for an invalid statement; any error that `body` throws.
  public func read<Value>(_ body: (Database) throws -> Value) throws -> Value { try opened().reading(body) }

  /// Changes the tables in a transaction. Durable on return; if `body` throws, nothing changes.
  ///
  /// Costs one wait for the disk, so make related changes in one call. Writes run one after another.
  ///
  /// - Parameter body: Changes the database.
  /// - Returns: The result of `body`.
  /// - Throws: As `read`; `StoreError` with `diskFull` or `notPermitted`. Earlier commits remain, and later writes work
  ///   once the cause is gone.
  @discardableResult
  public func write<Value>(_ body: (Database) throws -> Value) throws -> Value { try opened().write(body) }

  /// Migrates the tables to this release's schema. Call it after opening the data, before any other use of the tables.
  ///
  /// Each migration is a transaction and runs once. If one fails, the earlier ones remain applied, and the `StoreError`
  /// with `misuse` names it. If a newer release has applied a migration that `migrator` doesn't know, nothing is
  /// changed, and this call and every use of the tables throw `newerFormat` until the data is opened again.
  ///
  /// - Parameters:
  ///   - migrator: All migrations of the game since its first release. With `eraseDatabaseOnSchemaChange` it may empty
  ///     the tables: don't release a game with that option.
  ///   - merged: The names of earlier migrations that `migrator` merged into others (`registerMigration(_:merging:)`).
  ///     GRDB doesn't report them, so they would be taken for migrations of a newer release.
  /// - Throws: As described, and as `write`.
  public func migrate(_ migrator: DatabaseMigrator, merged: Set<String> = []) throws {
    do {
      try opened(objection: RecordsDatabase.objection(to: migrator, merged: merged)).migrate(migrator, merged: merged)
    } catch let error as StoreError where error.code == .newerFormat {
      refuse(error)
      throw error
    }
  }

  /// GRDB's reader, for observing the database:
  ///
  /// ```swift
  /// let observation = ValueObservation.tracking { db in
  ///   try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM creature") ?? 0
  /// }
  /// let watching = observation.start(
  ///   in: try game.records.reader, scheduling: .async(onQueue: .global())
  /// ) { error in
  ///   ...
  /// } onChange: { count in
  ///   ...
  /// }
  /// ```
  ///
  /// Only for reading, and not inside `read` or `write`. A disk failure (`Incident.Kind.diskFailed`) replaces the
  /// reader, and observations must be started again. Don't keep it after the data is closed: closing waits for its
  /// reads, and afterwards it throws GRDB's error for a closed connection. Throws as `read`.
  public var reader: any DatabaseReader { get throws { try opened().reader } }

  /// Writes the current tables to one file while the game continues: for a bug report, for moving them, or as a backup.
  ///
  /// The file is complete and durable on return, and replaces an existing one atomically. Writes don't wait for it.
  /// Reads and writes all of the tables.
  ///
  /// - Parameter url: The location of the file.
  /// - Throws: `StoreError` with `missing` if the folder doesn't exist, `misuse` for a location among the files of the
  ///   game's data, `diskFull`, `notPermitted` or `io`.
  public func snapshot(to url: URL) throws { try opened().snapshot(to: url) }

  /// Replaces all tables with those of a snapshot, and migrates them to this release's schema.
  ///
  /// Atomic, even if the power fails; observations are notified. The previous tables are lost: take a snapshot of them
  /// first if the player may want them back. The snapshot is checked, including its indexes, and may be from an older
  /// release. Don't accept a snapshot from anyone the player doesn't trust: a database can contain triggers, which
  /// would then run in the game's tables.
  ///
  /// Reads the file twice and writes it twice.
  ///
  /// - Parameters:
  ///   - url: The snapshot.
  ///   - migrator: As for `migrate`.
  ///   - merged: As for `migrate`.
  /// - Throws: `StoreError` with `missing`; `damaged` if the file isn't a database or has been altered; `newerFormat`
  ///   if a newer release wrote it; `misuse` inside a `read` or `write`, or for a file that `snapshot` didn't make;
  ///   `diskFull`, `notPermitted` or `io`. Nothing has changed then. If a migration fails, throws as `migrate`, with
  ///   the snapshot's tables in place.
  public func restore(from url: URL, migrator: DatabaseMigrator, merged: Set<String> = []) throws {
    try opened().restore(from: url, migrator, merged: merged)
  }

  /// Runs `body` inside a read transaction if the tables are open, so that meanwhile their files can only grow at the
  /// end.
  func whileStill<Value>(_ body: () throws -> Value) throws -> Value {
    guard case .open(let database) = phase.withLock({ $0 }) else { return try body() }
    return try database.reading { tables in
      _ = try Int.fetchOne(tables, sql: "SELECT COUNT(*) FROM sqlite_master")
      return try body()
    }
  }

  /// The tables, if they have been used.
  var openDatabase: RecordsDatabase? { if case .open(let database) = phase.withLock({ $0 }) { database } else { nil } }

  // MARK: Opening and closing

  private func opened(objection: RecordsDatabase.Objection = { _ in nil }) throws -> RecordsDatabase {
    if let database = try known() { return database }
    return try opens.withLock {
      if let database = try known() { return database }
      let store = core.store.base
      let database = try RecordsDatabase.open(in: store.url, beside: store, objection: objection) { [weak core] in
        core?.events.report($0)
      }
      phase.withLock { $0 = .open(database) }
      return database
    }
  }

  /// Returns nil if the tables aren't open yet.
  private func known() throws -> RecordsDatabase? {
    switch phase.withLock({ $0 }) {
    case .open(let database): return database
    case .refused(let error): throw error
    case .closed: throw GameDataError(.closed, "the game's data is closed, and so are its records")
    case .unopened: return nil
    }
  }

  /// How long closing waits for readers when the tables turn out to belong to a newer release of the game.
  private static let refusalLimit = Duration.seconds(10)

  private func refuse(_ error: StoreError) {
    let database = phase.withLock { phase -> RecordsDatabase? in
      defer { phase = .refused(error) }
      if case .open(let database) = phase { return database }
      return nil
    }
    // Outside the lock, because a reader that `close` waits for may need it.
    close(database, within: Self.refusalLimit)
  }

  /// Throws only `timedOut`, and `removed` once it is closed. Any other error is reported as an incident, and must not
  /// keep the saves from being closed.
  func close(within limit: Duration) throws {
    let start = ContinuousClock.now
    guard opens.lock(within: limit) else {
      throw StoreError(.timedOut, "the records are still being opened")
    }
    defer { opens.unlock() }
    let database = phase.withLock { phase -> RecordsDatabase? in
      if case .open(let database) = phase { return database }
      phase = .closed
      return nil
    }
    let error = close(database, within: max(limit - (.now - start), .zero))
    if let error, error.code == .timedOut { throw error }
    phase.withLock { $0 = .closed }
    if let error, error.code == .removed { throw error }
  }

  @discardableResult
  private func close(_ database: RecordsDatabase?, within limit: Duration) -> StoreError? {
    do {
      try database?.close(within: limit)
      return nil
    } catch {
      let failure = error as? StoreError ?? StoreError(.io, "closing the records failed", cause: error)
      if ![.timedOut, .removed].contains(failure.code) {
        core.events.report(
          Incident(kind: .unreadable, message: "the records could not be closed properly: \(failure)", date: core.now))
      }
      return failure
    }
  }
}
