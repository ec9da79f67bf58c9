public import Foundation
public import GRDB
import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// The game's own database tables, for many items that are looked up by their contents.
///
/// A SQLite database beside the saves, used directly through GRDB: queries, observation and record types are GRDB's
/// own, so a file that uses them also says `import GRDB`. (The package is fetched with this one; add the product `GRDB`
/// of `GRDB.swift` to your target's dependencies.)
///
/// ```swift
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
/// The file is opened and checked at the first use: up to 64 MiB completely, in about a tenth of a second; of a larger
/// one only the schema. Backups and repair work as for the saves, and `GameData.incidents` reports them. Rows have no
/// checksums, so a value that changes on disk isn't detected.
///
/// Not promised: the tables aren't under the game's seal, and they aren't synced. Keep what other devices need in saves
/// and progress. `snapshot(to:)` makes one file of the tables, and `restore(from:migrator:)` reads it;
/// `game.files.track` keeps versions of such a file. Tables and saves aren't committed together: after a crash there
/// may be one without the other, so write the tables first and let a save name what it needs of them.
///
/// Safe to use from any thread. A `read` inside a `read` sees the same state, one inside a `write` the tables before
/// it. A `write` inside a `write` throws `misuse`, and so do `migrate` and `restore` inside either.
public final class Records: Sendable {
  private enum Phase {
    case unopened
    case open(RecordsDatabase)
    /// A newer game wrote them: this one must not touch them.
    case refused(StoreError)
    case closed
  }

  private let core: GameCore
  private let phase = Mutex(Phase.unopened)
  /// Held while the file is opened, which may take long; whoever closes meanwhile waits no longer than it may.
  private let opens = NSLock()

  init(core: GameCore) { self.core = core }

  /// Reads the tables as of the last commit. Doesn't wait for writes, and writes don't wait for it.
  ///
  /// - Parameter body: Reads the database.
  /// - Returns: What `body` returns.
  /// - Throws: `StoreError` with `damaged`, `io` or `newerFormat`; `GameDataError` with `closed`; GRDB's
  ///   `DatabaseError` for an invalid statement; what `body` throws.
  public func read<Value>(_ body: (Database) throws -> Value) throws -> Value { try opened().reading(body) }

  /// Changes the tables in a transaction. Durable on return; if `body` throws, nothing changes.
  ///
  /// Costs one wait for the disk, so do related changes in one call. Writes run one after another.
  ///
  /// - Parameter body: Changes the database.
  /// - Returns: What `body` returns.
  /// - Throws: As `read`; `StoreError` with `diskFull` or `notPermitted`. Earlier commits stay, and later writes work
  ///   when the cause is gone.
  public func write<Value>(_ body: (Database) throws -> Value) throws -> Value { try opened().write(body) }

  /// Migrates the tables to this release's schema. Call it after opening the data, before anything else.
  ///
  /// Each migration is a transaction and runs once. If one fails, those before it stay, and `StoreError` with `misuse`
  /// names it. If a newer release has applied a migration that `migrator` doesn't know, nothing is changed, and this
  /// call and every use of the tables throw `newerFormat` until the data is opened again.
  ///
  /// - Parameters:
  ///   - migrator: All migrations of the game, since its first release. With `eraseDatabaseOnSchemaChange` it may empty
  ///     the tables: don't release that.
  ///   - merged: The names of earlier migrations that `migrator` merged into others (`registerMigration(_:merging:)`).
  ///     GRDB doesn't report them, and they would be taken for those of a newer game.
  /// - Throws: As described, and as `write`.
  public func migrate(_ migrator: DatabaseMigrator, merged: Set<String> = []) throws {
    do {
      try opened(objection: RecordsDatabase.objection(to: migrator, merged: merged)).migrate(migrator, merged: merged)
    } catch let error as StoreError where error.code == .newerFormat {
      refuse(error)
      throw error
    }
  }

  /// GRDB's reader, for its observation:
  ///
  /// ```swift
  /// let observation = ValueObservation.tracking { db in try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM creature") ?? 0 }
  /// let watching = observation.start(in: try game.records.reader, scheduling: .async(onQueue: .global())) { error in
  ///   ...
  /// } onChange: { count in
  ///   ...
  /// }
  /// ```
  ///
  /// Only for reading, and not inside `read` or `write`. After a disk failure (`Incident.Kind.diskFailed`) there is a
  /// new reader, and observations must be started again. Don't keep it longer than the data is open: closing waits for
  /// its reads, and afterwards it throws GRDB's error for a closed connection. Throws as `read`.
  public var reader: any DatabaseReader { get throws { try opened().reader } }

  /// Writes the current tables to one file, while the game continues: for a bug report, a move, or a backup.
  ///
  /// The file is complete and durable on return, and replaces an existing one atomically. Writes don't wait for it.
  /// Costs reading and writing all of the tables.
  ///
  /// - Parameter url: The file.
  /// - Throws: `StoreError` with `missing` if the folder doesn't exist, `misuse` for a location among the files of the
  ///   game's data, `diskFull`, `notPermitted` or `io`.
  public func snapshot(to url: URL) throws { try opened().snapshot(to: url) }

  /// Replaces all tables by those of a snapshot, and migrates them to this release's schema.
  ///
  /// Atomic, also if the power fails; observations are notified. The previous tables are lost: make a snapshot of them
  /// first if the player may want them back. The snapshot is checked, its indexes too, and may be of an older release.
  /// Don't accept one from someone whom the player doesn't trust: a database has triggers, which then run in the game's
  /// tables.
  ///
  /// Costs reading the file twice and writing it twice.
  ///
  /// - Parameters:
  ///   - url: The snapshot.
  ///   - migrator: As for `migrate`.
  ///   - merged: As for `migrate`.
  /// - Throws: `StoreError` with `missing`; `damaged` for something that is no database or is altered; `newerFormat`
  ///   for one of a newer release; `misuse` inside a `read` or `write`, or for a file that `snapshot` didn't make;
  ///   `diskFull`, `notPermitted` or `io`. Nothing has changed then. If a migration fails it throws as `migrate`, with
  ///   the snapshot's tables in place.
  public func restore(from url: URL, migrator: DatabaseMigrator, merged: Set<String> = []) throws {
    try opened().restore(from: url, migrator, merged: merged)
  }

  /// Runs `body` while the tables' files can only grow at their end, where somebody has opened them.
  func whileStill<Value>(_ body: () throws -> Value) throws -> Value {
    guard case .open(let database) = phase.withLock({ $0 }) else { return try body() }
    return try database.reading { tables in
      _ = try Int.fetchOne(tables, sql: "SELECT COUNT(*) FROM sqlite_master")
      return try body()
    }
  }

  // MARK: Opening and closing

  private func opened(objection: RecordsDatabase.Objection = { _ in nil }) throws -> RecordsDatabase {
    if let database = try known() { return database }
    return try opens.withLock {
      if let database = try known() { return database }
      let database = try RecordsDatabase.open(in: core.store.url, objection: objection) { [weak core] in core?.events.report($0) }
      phase.withLock { $0 = .open(database) }
      return database
    }
  }

  /// Nil if nobody has opened them yet.
  private func known() throws -> RecordsDatabase? {
    switch phase.withLock({ $0 }) {
    case .open(let database): return database
    case .refused(let error): throw error
    case .closed: throw GameDataError(.closed, "the game's data is closed, and its records with it")
    case .unopened: return nil
    }
  }

  /// How long whoever still reads is waited for where the tables turn out to be those of a newer game.
  private static let refusalLimit = Duration.seconds(10)
  /// As good as for ever, and not beyond what the system's clock can count.
  private static let longestWait = Duration.seconds(1 << 30)

  private func refuse(_ error: StoreError) {
    let database = phase.withLock { phase -> RecordsDatabase? in
      defer { phase = .refused(error) }
      if case .open(let database) = phase { return database }
      return nil
    }
    // Outside of the lock, because whoever is waited for may come by it.
    close(database, within: Self.refusalLimit)
  }

  /// Throws `timedOut` only; whatever else goes wrong is told, and must not keep the saves from being closed.
  func close(within limit: Duration) throws {
    let start = ContinuousClock.now
    guard opens.lock(before: Date(timeIntervalSinceNow: min(limit, Self.longestWait) / .seconds(1))) else {
      throw StoreError(.timedOut, "the records are still being opened")
    }
    defer { opens.unlock() }
    let database = phase.withLock { phase -> RecordsDatabase? in
      if case .open(let database) = phase { return database }
      phase = .closed
      return nil
    }
    if let error = close(database, within: max(limit - (.now - start), .zero)), error.code == .timedOut { throw error }
    phase.withLock { $0 = .closed }
  }

  @discardableResult
  private func close(_ database: RecordsDatabase?, within limit: Duration) -> StoreError? {
    do {
      try database?.close(within: limit)
      return nil
    } catch {
      let failure = error as? StoreError ?? StoreError(.io, "closing the records failed", cause: error)
      if failure.code != .timedOut {
        core.events.report(Incident(kind: .unreadable, message: "the records could not be closed properly: \(failure)", date: core.now))
      }
      return failure
    }
  }
}
