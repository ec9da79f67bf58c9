public import Foundation
public import GRDB
import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// The game's own tables: for what is many, and looked up by what it holds.
///
/// A SQLite database beside the saves, through GRDB and openly: queries, observation and records are GRDB's own, so a file that uses them
/// says `import GRDB` too. (The package is fetched with this one; name the product `GRDB` of `GRDB.swift` among your target's dependencies.)
///
///     var migrator = DatabaseMigrator()
///     migrator.registerMigration("creatures") { db in
///       try db.create(table: "creature") { table in
///         table.primaryKey("id", .integer)
///         table.column("name", .text).notNull()
///         table.column("seen", .integer).notNull().indexed()
///       }
///     }
///     try game.records.migrate(migrator)
///     try game.records.write { db in
///       try db.execute(sql: "INSERT INTO creature (name, seen) VALUES (?, ?)", arguments: [name, now])
///     }
///     let count = try game.records.read { db in try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM creature WHERE seen > ?", arguments: [then]) }
///
/// Values go into `arguments`, never into the text of a statement.
///
/// The file is opened at the first use and checked then: up to 64 MiB all of its structure, about a tenth of a second; of a larger one the
/// description of its tables. Copies are kept and damage is repaired as with the saves, which `GameData.incidents` tells; there are no checksums
/// on rows, so a value that changes on the disk is not found.
///
/// Not promised: records aren't under the game's seal, and they aren't synced row by row. What must be the same on all devices belongs into
/// saves and progress. `snapshot(to:)` makes one file of the tables and `restore(from:migrator:)` takes them back from one; `game.files.track` keeps
/// versions of such a file, on this device. Nor are records and saves committed together: after a crash between the two there may be one
/// without the other, so let a save name what it needs of the records, and write that first.
///
/// Safe to use from any thread. A `read` within a `read` shows the same moment, one within a `write` the tables before it. A `write` within a `write`
/// throws `misuse`, and so do `migrate` and `restore` within either.
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

  /// Lends the tables as they are after the last commit. Waits for no write, and none waits for it.
  ///
  /// Throws `StoreError` for the file and the disk (`damaged`, `io`, `newerFormat`), `GameDataError.Code.closed`, GRDB's `DatabaseError` for what is
  /// wrong with a statement, and what `body` throws.
  public func read<Value>(_ body: (Database) throws -> Value) throws -> Value { try opened().reading(body) }

  /// Runs `body` in a transaction and returns when it is durable: all of it, or nothing where it throws.
  ///
  /// Costs one wait on the disk, so put what belongs together, and what is many, into one. Writes come one after the other. Throws as `read` does,
  /// and `diskFull` and `notPermitted`; what was committed before stays, and a later write works again when the cause is gone.
  public func write<Value>(_ body: (Database) throws -> Value) throws -> Value { try opened().write(body) }

  /// Brings the tables to the form that this release of the game uses: to be called when the data was opened, before anything else.
  ///
  /// Each migration is a transaction of its own; one that was applied isn't run again. Where one fails the tables are as they were before it, those
  /// before it stay, and `StoreError.Code.misuse` says which one it was. Where a newer release of the game has been here (a migration was applied
  /// that `migrator` doesn't know), nothing is touched, and this and every use of the records until the data is opened again throw `newerFormat`.
  ///
  /// - Parameters:
  ///   - migrator: All migrations of the game, from its first release on. With `eraseDatabaseOnSchemaChange` it may empty the tables: never release that.
  ///   - merged: The names of earlier migrations that `migrator` merged into others (`registerMigration(_:merging:)`): GRDB doesn't tell them, and they
  ///     would be taken for those of a newer game.
  public func migrate(_ migrator: DatabaseMigrator, merged: Set<String> = []) throws {
    do {
      try opened(objection: RecordsDatabase.objection(to: migrator, merged: merged)).migrate(migrator, merged: merged)
    } catch let error as StoreError where error.code == .newerFormat {
      refuse(error)
      throw error
    }
  }

  /// What GRDB's own observation takes:
  ///
  ///     let observation = ValueObservation.tracking { db in try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM creature") ?? 0 }
  ///     let watching = observation.start(in: try game.records.reader, scheduling: .async(onQueue: .global())) { error in
  ///       ...
  ///     } onChange: { count in
  ///       ...
  ///     }
  ///
  /// For reading only, and not within `read` or `write`. After the disk has failed (`Incident.Kind.diskFailed`) there is another one, and what watched the old one has to be started
  /// anew. Keep it no longer than the data is open: closing waits for whoever reads
  /// through it, and then it throws GRDB's error for a closed connection. Throws as `read` does.
  public var reader: any DatabaseReader { get throws { try opened().reader } }

  /// Makes one file of the tables as they are now, while the game goes on: for a bug report, a move, or to be kept.
  ///
  /// The file is whole and durable when this returns, and replaces what stood under the name; until then that stays. Writes don't wait for it. Costs
  /// reading and writing all of the tables. Throws `StoreError`: `missing` if there is no such folder, `misuse` for a place among the files of the
  /// game's data, `diskFull`, `notPermitted`, `io`.
  public func snapshot(to url: URL) throws { try opened().snapshot(to: url) }

  /// Puts the tables of a snapshot in the place of all that are here, and brings them to the form that this release of the game uses.
  ///
  /// All of it or nothing, also if the power fails; whoever observes the tables is told. What was here is gone: make a snapshot of it before, if the
  /// player may want it back. The snapshot is checked first, its indexes too, and may come from an older release of the game. Take none from people
  /// whom the player doesn't trust: a database brings rules of its own (triggers), which then work in the game's tables.
  ///
  /// Costs reading the file twice and writing it twice. Throws `StoreError` with nothing changed: `missing`; `damaged` for what is no database or is
  /// altered; `newerFormat` for one of a newer release; `misuse` within a `read` or `write`, and for a file that `snapshot` didn't make; `diskFull`,
  /// `notPermitted`, `io`. Where a migration fails it throws as `migrate` does, with the snapshot's tables in place.
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
      let database = try RecordsDatabase.open(in: core.store.url, objection: objection) { [weak core] in core?.report($0) }
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
        core.report(Incident(kind: .unreadable, message: "the records could not be closed properly: \(failure)", date: core.now))
      }
      return failure
    }
  }
}
