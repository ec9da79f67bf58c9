package import Foundation
package import GRDB
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#elseif canImport(Darwin)
import Darwin
#endif

/// The connections to the game's own tables: opened only after a look at the file, and opened anew when the disk has failed.
///
/// After an error of the disk in a write nobody knows what of it is there (`StoreDatabase` says why). So the write fails, and before the next
/// one all connections are closed, what the failed commit left in the log is cut off, and the file is checked as at any opening. Damage that
/// is met while running refuses further writes until the next opening, which repairs it.
package final class RecordsDatabase: BackupSource {
  /// The database's name in the folder of a game's data.
  package static let fileName = "records.sqlite"

  /// Says why the tables must not be used, if so: asked before anything is changed.
  package typealias Objection = (Database) throws -> StoreError?

  private enum Trouble {
    /// The disk failed; tried again before the next write.
    case disk
    /// Only the next opening can help.
    case damage
  }
  private struct State {
    var pool: DatabasePool
    var trouble: Trouble?
    var isClosed = false
  }
  /// Thrown by a write that waited behind one that failed: the disk has to be looked at first.
  private struct Troubled: Error {}

  /// How long a statement waits for another program that holds the file, such as a tool of the developer's.
  private static let busySeconds = 5.0

  let files: RecordsFiles
  private let checkpointer: WALCheckpointer
  private let state: Mutex<State>
  private let users = ConnectionUsers()
  private let report: @Sendable (StoreIncident) -> Void
  private let checkpoints = DispatchQueue(label: "keepsake.records.checkpoint", qos: .utility)
  let backup: RollingBackup
  /// Whether this thread is within `read` or `write`: the connections can't be opened anew around it.
  @TaskLocal private static var isInside = false

  private init(
    _ files: RecordsFiles, pool: DatabasePool, checkpointer: WALCheckpointer, _ backups: BackupSchedule,
    _ report: @escaping @Sendable (StoreIncident) -> Void
  ) {
    (self.files, self.checkpointer, self.report) = (files, checkpointer, report)
    state = Mutex(State(pool: pool))
    backup = RollingBackup(files, backups) { try RecordsAudit.run(on: $0, .opening).all.first }
  }

  deinit {
    // Whoever still holds the pool must not commit to a log that nobody moves into the database. Nothing is lost with it.
    try? state.withLock { $0.pool }.close()
  }

  // MARK: Opening

  /// Opens the tables in the folder of a game's data, which the caller has locked, or makes the file. Repairs what has to be, and tells it.
  ///
  /// Throws `StoreError`: what `objection` says, with nothing changed; `diskFull`, `notPermitted`, `io`.
  package static func open(
    in folder: URL, objection: Objection = { _ in nil }, report: @escaping @Sendable (StoreIncident) -> Void
  ) throws -> RecordsDatabase {
    try open(in: folder, objection: objection, backups: .standard, report: report)
  }

  /// For tests that can't wait for a backup.
  static func open(
    in folder: URL, objection: Objection = { _ in nil }, backups: BackupSchedule, report: @escaping @Sendable (StoreIncident) -> Void
  ) throws -> RecordsDatabase {
    let files = RecordsFiles(folder: folder)
    return try StoreError.translating("opening the records") {
      do {
        let opened = try openOnce(files, objection, backups, report)
        files.reserve.take()
        return opened
      } catch {
        guard StoreError.isFull(error), try files.reserve.giveUp() else { throw error }
        return try openOnce(files, objection, backups, report)
      }
    }
  }

  private static func openOnce(
    _ files: RecordsFiles, _ objection: Objection, _ backups: BackupSchedule, _ report: @escaping @Sendable (StoreIncident) -> Void
  ) throws -> RecordsDatabase {
    guard access(files.folder.path, W_OK) == 0 else { throw StoreError(errorNumber: errno, doing: "writing in \(files.folder.path)") }
    try RecordsRecovery.finishInterrupted(files)
    let whole = StoreFiles.exists(files.suspicion)
    if let damage = try damage(files, whole ? .structure : .opening, objection) {
      report(StoreIncident(.recovered, try RecordsRecovery(files).run(because: [damage]).message))
      // A backup may be of a newer game, too.
      if let damage = try Self.damage(files, .opening, objection) { throw StoreError(.damaged, damage) }
    }
    let checkpointer = WALCheckpointer()
    let pool = try connect(files, checkpointer)
    try StoreFiles.remove(files.suspicion)
    return RecordsDatabase(files, pool: pool, checkpointer: checkpointer, backups, report)
  }

  /// What is wrong with the file; nil if nothing is. Throws what `objection` says of one that is sound. Changes nothing that was committed.
  private static func damage(_ files: RecordsFiles, _ extent: RecordsAudit.Extent, _ objection: Objection) throws -> String? {
    if let damage = try files.damageAtFirstSight() { return damage }
    guard try (RawFile(files.database)?.size ?? 0) > 0 else { return nil }
    do {
      var configuration = Configuration()
      configuration.label = "keepsake.records.check"
      // What a journal holds has to be put back before anything can be read.
      configuration.readonly = !StoreFiles.exists(files.journal)
      configuration.busyMode = .timeout(busySeconds)
      let queue = try DatabaseQueue(path: files.database.path, configuration: configuration)
      let (finding, refusal) = try queue.readAround { database in
        let finding = try RecordsAudit.run(on: database, extent).all.first
        return (finding, try finding == nil ? objection(database) : nil)
      }
      try queue.close()
      if let refusal { throw refusal }
      return finding
    } catch let error as DatabaseError where error.isBrokenFile {
      return "the database can't be read: \(error.message ?? "damaged")"
    }
  }

  private static func connect(_ files: RecordsFiles, _ checkpointer: WALCheckpointer) throws -> DatabasePool {
    var configuration = Configuration()
    configuration.label = "keepsake.records"
    configuration.busyMode = .timeout(busySeconds)
    configuration.prepareDatabase { database in
      // Finds damage in a page when it is read, not when it is used.
      try database.execute(sql: "PRAGMA cell_size_check = ON")
      #if canImport(Darwin)
      // fsync on Apple's systems leaves the bytes in the drive's cache.
      try database.execute(sql: "PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON")
      #endif
    }
    let pool = try DatabasePool(path: files.database.path, configuration: configuration)
    do {
      try pool.writeWithoutTransaction { database in
        // GRDB sets NORMAL for a write-ahead log, with which a power cut may take back the last commits.
        try database.execute(sql: "PRAGMA synchronous = FULL")
        try database.execute(sql: "PRAGMA secure_delete = OFF")
        try checkpointer.install(on: database)
      }
      return pool
    } catch {
      try? pool.close()  // The reason to give up is the error that is thrown.
      throw error
    }
  }

  // MARK: Use

  /// The connections as they are now, for what GRDB alone offers; others after the disk has failed.
  package var reader: any DatabaseReader { state.withLock { $0.pool } }

  /// For backups: SQLite's errors as they are.
  func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
    users.enter()
    defer { users.leave() }
    return try Self.$isInside.withValue(true) { try state.withLock { $0.pool }.read(body) }
  }

  /// Lends the tables as they are after the last commit. Blocks no writer and is blocked by none.
  package func reading<Value>(_ body: (Database) throws -> Value) throws -> Value {
    do {
      return try read(body)
    } catch let error as DatabaseError {
      if error.isBrokenFile { suspect(error) }
      if let closed = closed(error) { throw closed }
      // A statement that writes has no place here: that is the statement's fault, and SQLite's error says so.
      guard error.resultCode != .SQLITE_READONLY, let translated = StoreError(ofFile: error, doing: "reading the records") else {
        throw error
      }
      throw translated
    }
  }

  /// Runs `body` in a transaction and returns when it is durable; nothing has happened if it throws.
  package func write<Value>(_ body: (Database) throws -> Value) throws -> Value {
    try writing("writing the records") { pool in
      try pool.writeWithoutTransaction { database in
        // In the writer's own queue, so that a write that waited for one whose sync failed finds that noted.
        guard state.withLock({ $0.trouble == nil }) else { throw Troubled() }
        do {
          var value: Value?
          try database.inTransaction {
            value = try body(database)
            return .commit
          }
          guard let value else { throw StoreError(.io, "a write of the records ended without a result") }
          return value
        } catch let error as DatabaseError {
          note(error)
          throw error
        }
      }
    }
  }

  /// Brings the tables to the game's newest form. A database that `migrator` has nothing to do with is left alone.
  ///
  /// Throws `newerFormat` with nothing changed; of a migration that fails, which one it is, and whatever error of the disk.
  package func migrate(_ migrator: DatabaseMigrator, merged: Set<String> = []) throws {
    if let refusal = try reading({ try Self.objection(to: migrator, merged: merged)($0) }) { throw refusal }
    let isDone = try reading { try migrator.hasCompletedMigrations($0) && !migrator.hasBeenSuperseded($0) }
    guard !isDone || migrator.eraseDatabaseOnSchemaChange else { return }
    try writing("migrating the records") { pool in
      do {
        try migrator.migrate(pool)
      } catch {
        if let error = error as? DatabaseError {
          note(error)
          if let translated = StoreError(ofFile: error, doing: "migrating the records") { throw translated }
        }
        let done = try pool.read { try migrator.appliedIdentifiers($0) }
        let failed = migrator.migrations.first { !done.contains($0) } ?? "?"
        throw StoreError(.misuse, "the migration \"\(failed)\" of the records failed; the tables are as they were before it", cause: error)
      }
    }
  }

  /// Refuses tables to which migrations were applied that `migrator` doesn't know.
  ///
  /// - Parameter merged: Names of earlier ones that it merged into others, which GRDB doesn't tell.
  package static func objection(to migrator: DatabaseMigrator, merged: Set<String> = []) -> Objection {
    { database in
      let unknown = try migrator.appliedIdentifiers(database).subtracting(migrator.migrations).subtracting(merged).sorted()
      guard !unknown.isEmpty else { return nil }
      let names = unknown.prefix(3).map { "\"\($0)\"" }.joined(separator: ", ")
      return StoreError(
        .newerFormat,
        "the records were written by a newer release of the game, whose migrations this one doesn't know (\(names)): update the game")
    }
  }

  private func writing<Value>(_ doing: String, _ body: (DatabasePool) throws -> Value) throws -> Value {
    while true {
      try heal()
      do {
        users.enter()
        defer { users.leave() }
        let value = try Self.$isInside.withValue(true) { try body(state.withLock { $0.pool }) }
        backup.noteCommit(in: self)
        checkpointIfDue()
        return value
      } catch is Troubled {
        // Once more: `heal` looks at the disk, or throws.
      } catch let error as DatabaseError {
        guard let translated = closed(error) ?? StoreError(ofFile: error, doing: doing) else { throw error }
        throw translated
      }
    }
  }

  /// What GRDB says of connections that are closed, where that is so.
  private func closed(_ error: DatabaseError) -> StoreError? {
    guard error.resultCode == .SQLITE_MISUSE else { return nil }
    let (isClosed, isInTrouble) = state.withLock { ($0.isClosed, $0.trouble != nil) }
    if isClosed { return StoreError(.misuse, "the records are closed", cause: error) }
    guard isInTrouble else { return nil }
    return StoreError(.io, "the disk failed, and the records are closed until a write finds it working again", cause: error)
  }

  // MARK: Closing

  /// Closes all connections, after a backup if one is due; that ends early at the deadline. Throws `timedOut` where a read or write goes on.
  package func close(within limit: Duration? = nil) throws {
    guard !state.withLock({ $0.isClosed }) else { return }
    let deadline = limit.map { ContinuousClock.now + $0 }
    if state.withLock({ $0.trouble == nil }) { backup.finish(on: self, until: deadline) }
    let rest = deadline.map { max($0 - .now, .zero) / .seconds(1) }
    guard users.waitUntilIdle(until: rest.map { Date(timeIntervalSinceNow: $0) } ?? .distantFuture) else {
      throw StoreError(.timedOut, "the records are still being read or written")
    }
    checkpoints.sync {}
    try StoreError.translating("closing the records") {
      let pool = state.withLock { $0.pool }
      // So that closed records are one file. Where that fails the log keeps what the database lacks.
      if state.withLock({ $0.trouble == nil }) { _ = try? pool.writeWithoutTransaction { try $0.checkpoint(.truncate) } }
      try pool.close()
      state.withLock { $0.isClosed = true }
    }
    files.reserve.take()
  }

  // MARK: Trouble

  private func checkpointIfDue() {
    guard checkpointer.isDue else { return }
    // Not on the thread of the write, which has its answer already.
    checkpoints.async { [weak self] in
      guard let self, state.withLock({ $0.trouble == nil && !$0.isClosed }) else { return }
      users.enter()
      defer { users.leave() }
      do {
        let pool = state.withLock { $0.pool }
        try pool.writeWithoutTransaction { database in
          guard state.withLock({ $0.trouble == nil }) else { return }
          do {
            try checkpointer.run(on: database)
          } catch let error as DatabaseError {
            note(error)
          }
        }
      } catch {
        // Closed meanwhile.
      }
    }
  }

  private func note(_ error: DatabaseError) {
    switch error.resultCode {
    case .SQLITE_IOERR: state.withLock { $0.trouble = $0.trouble ?? .disk }
    case .SQLITE_CORRUPT, .SQLITE_NOTADB:
      state.withLock { $0.trouble = .damage }
      suspect(error)
    default: return
    }
  }

  private func suspect(_ error: any Error) {
    // Where the note can't be written, the damage is still what has to be told; the next opening then looks as usual.
    try? AtomicFile.write(Data("\(error)\n".utf8), to: files.suspicion)
  }

  private func heal() throws {
    guard state.withLock({ $0.trouble != nil && !$0.isClosed }) else { return }
    guard !Self.isInside else {
      throw StoreError(.io, "the disk failed, and the records can't be opened anew within a read: write after it")
    }
    try users.alone {
      switch state.withLock({ $0.trouble }) {
      case nil: return
      case .damage:
        throw StoreError(
          .damaged, "the records are damaged and can't be written: close the game's data and open it again, they are repaired then")
      case .disk:
        try StoreError.translating("opening the records anew") {
          let committed = try FailedCommit.committedFrames(of: files.database)
          try state.withLock { $0.pool }.close()
          try FailedCommit.trimLog(files.log, to: committed)
          if let damage = try Self.damage(files, .structure, { _ in nil }) {
            state.withLock { $0.trouble = .damage }
            let error = StoreError(.damaged, damage)
            suspect(error)
            throw error
          }
          let fresh = try Self.connect(files, checkpointer)
          state.withLock { state in
            state.pool = fresh
            state.trouble = nil
          }
        }
        report(StoreIncident(.reopened, "the disk failed while writing the records; they were opened anew and are whole"))
      }
    }
  }
}
