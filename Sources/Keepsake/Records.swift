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
/// saves and progress; `snapshot(to:)` makes one file of the tables.
///
/// Safe to use from any thread. A `read` or `write` within a `write`, and a `read` within a `read`, are mistakes that GRDB ends the program for,
/// as it is with its own pool; a `read` within a `write` shows the tables before it.
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
  /// For reading only. After the disk has failed (`Incident.Kind.diskFailed`) there is another one, and what watched the old one has to be started
  /// anew. Keep it no longer than the data is open. Throws as `read` does.
  public var reader: any DatabaseReader { get throws { try opened().reader } }

  /// Makes one file of the tables as they are now, while the game goes on: for a bug report, a move, or to be kept in the cloud.
  ///
  /// The file is whole and durable when this returns, and replaces what stood under the name; until then that stays. Writes don't wait for it. Costs
  /// reading and writing all of the tables. Throws `StoreError`: `missing` if there is no such folder, `misuse` for a place among the files of the
  /// game's data, `diskFull`, `notPermitted`, `io`.
  public func snapshot(to url: URL) throws { try opened().snapshot(to: url) }

  // MARK: Opening and closing

  private func opened(objection: RecordsDatabase.Objection = { _ in nil }) throws -> RecordsDatabase {
    try phase.withLock { phase in
      switch phase {
      case .open(let database): return database
      case .refused(let error): throw error
      case .closed: throw GameDataError(.closed, "the game's data is closed, and its records with it")
      case .unopened:
        let database = try RecordsDatabase.open(in: core.store.url, objection: objection) { [weak core] in core?.report($0) }
        phase = .open(database)
        return database
      }
    }
  }

  /// How long whoever still reads is waited for where the tables turn out to be those of a newer game.
  private static let refusalLimit = Duration.seconds(10)

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
    let database = phase.withLock { phase -> RecordsDatabase? in
      if case .open(let database) = phase { return database }
      phase = .closed
      return nil
    }
    if let error = close(database, within: limit), error.code == .timedOut { throw error }
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
