import Foundation
import GRDB
import KeepsakeReplication
import Synchronization

/// The connections to a store's database. They are opened only after the files were checked, and reopened after the
/// disk has failed.
///
/// After a disk error in a write, its outcome is unknown: a failed sync may have dropped what was written before, and a
/// second one that succeeds proves nothing. So the write fails. Before the next one, all connections are closed, what
/// the failed commit left in the write-ahead log is cut off, and the database is checked as on any opening. Damage
/// found while running isn't repaired then: values may have to return to an older state, from which a writer that is
/// counting must not continue. Writes are refused until the store is opened again.
final class StoreDatabase: BackupSource {
  private enum Trouble {
    /// The disk failed. Retried before the next write.
    case disk
    /// Only the next opening can repair it.
    case damage
  }
  private struct State {
    var pool: DatabasePool
    var trouble: Trouble?
    var isClosed = false
    /// What the next write must do first, in its transaction.
    var duty: (@Sendable (Database) throws -> Void)?
  }

  /// Not a tuple: a function in a tuple inside a generic type would be wrapped once more on every access.
  private struct Log {
    var incidents: [StoreIncident] = []
    var observer: @Sendable (StoreIncident) -> Void = { _ in }
  }

  private let files: StoreFiles
  let context: StoreContext
  var memory: ContentMemory { context.memory }
  private let checkpointer: WALCheckpointer
  private let state: Mutex<State>
  private let writing = NSLock()
  private let log = Mutex(Log())
  private let users: ConnectionUsers
  let backup: RollingBackup
  private let suspicion: Suspicion

  private init(
    _ files: StoreFiles, pool: DatabasePool, context: StoreContext, checkpointer: WALCheckpointer,
    _ backups: BackupSchedule
  ) {
    self.files = files
    self.checkpointer = checkpointer
    self.context = context
    state = Mutex(State(pool: pool))
    users = ConnectionUsers()
    suspicion = Suspicion(at: files.suspicion)
    backup = RollingBackup(files, backups) {
      try StoreAudit.run(on: StoreTransaction($0, in: StoreContext(seal: context.seal))).all.first
    }
  }

  // MARK: Opening

  /// Opens the store's database and repairs it if necessary.
  ///
  /// - Throws: What the seal's gate throws, before anything is changed, however damaged the database is.
  static func open(
    _ files: StoreFiles, seal request: SealRequest, history: HistoryRules, backups: BackupSchedule
  ) throws -> (StoreDatabase, [StoreIncident]) {
    let reserve = StoreReserve(files)
    do {
      let opened = try openOnce(files, request, history, backups)
      reserve.take()
      return opened
    } catch let error as StoreError where error.code == .diskFull {
      guard try reserve.giveUp() else { throw error }
      return try openOnce(files, request, history, backups)
    }
  }

  private static func openOnce(
    _ files: StoreFiles, _ request: SealRequest, _ history: HistoryRules, _ backups: BackupSchedule
  ) throws -> (StoreDatabase, [StoreIncident]) {
    try Recovery.finishInterrupted(files)
    let checkpointer = WALCheckpointer()
    var incidents: [StoreIncident] = []
    var gate: SealGate?
    var opened: (pool: DatabasePool, seal: StoreSeal)
    do {
      if let damage = try files.damageAtFirstSight() { throw StoreError(.damaged, damage) }
      opened = try openSealed(files, request, checkpointer, &gate, &incidents)
    } catch let error as StoreError where error.code == .damaged {
      // If the database doesn't show its seal, the files beside it or its pages do.
      let known = gate.flatMap { $0.found == nil ? nil : $0 }
      let recovery = try Recovery(files, known ?? SealGate(request, database: nil, folder: files.folder))
      let report = try recovery.run(because: [error.message])
      incidents = [StoreIncident(.recovered, report.message)]
      opened = try openSealed(files, request, checkpointer, &gate, &incidents)
    }
    try StoreFiles.remove(files.suspicion)
    let context = StoreContext(seal: opened.seal, history: history)
    return (StoreDatabase(files, pool: opened.pool, context: context, checkpointer: checkpointer, backups), incidents)
  }

  /// Opens and audits the database, and applies the requested seal. `gate` receives what the seal was, even if this
  /// throws later.
  private static func openSealed(
    _ files: StoreFiles, _ request: SealRequest, _ checkpointer: WALCheckpointer, _ gate: inout SealGate?,
    _ incidents: inout [StoreIncident]
  ) throws -> (DatabasePool, StoreSeal) {
    let pool = try connect(files)
    do {
      let entered = try translatingDamage { () -> StoreSeal in
        var opening = try pool.read { try SealGate(request, database: $0, folder: files.folder) }
        gate = opening
        try prepare(pool, files, checkpointer)
        if let incident = try opening.repairHeader(pool) { incidents.append(incident) }
        try audit(pool, files, opening.seal, &incidents)
        return try opening.enter(pool)
      }
      return (pool, entered)
    } catch {
      try? pool.close()  // The reason to give up is the error that is thrown.
      throw error
    }
  }

  /// For tools: rebuilds what derives from other rows, and leaves the seal as it is.
  static func rebuild(_ files: StoreFiles, _ request: SealRequest?) throws -> [StoreIncident] {
    var incidents: [StoreIncident] = []
    let pool = try connect(files)
    do {
      try translatingDamage {
        let seal = try pool.read { try SealGate.seal(of: $0, request, folder: files.folder) }
        try audit(pool, files, seal, &incidents)
        _ = try pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
      }
      try pool.close()
    } catch {
      try? pool.close()  // The reason to give up is the error that is thrown.
      throw error
    }
    return incidents
  }

  /// Opens the database again after the disk has failed.
  private static func reopen(
    _ files: StoreFiles, _ seal: StoreSeal, _ checkpointer: WALCheckpointer, _ incidents: inout [StoreIncident]
  ) throws -> DatabasePool {
    let pool = try connect(files)
    do {
      try translatingDamage {
        try prepare(pool, files, checkpointer)
        try audit(pool, files, seal, &incidents)
        try SealGate.keepLedger(of: seal, on: pool)
      }
      return pool
    } catch {
      try? pool.close()  // The reason to give up is the error that is thrown.
      throw error
    }
  }

  private static func connect(_ files: StoreFiles) throws -> DatabasePool {
    do {
      return try DatabasePool(path: files.database.path, configuration: configuration())
    } catch let error as DatabaseError where error.isDamage {
      throw StoreError(.damaged, "the database can't be opened: \(error.message ?? "damaged")", cause: error)
    } catch let error as DatabaseError {
      throw StoreError(error, doing: "opening the store")
    }
  }

  private static func prepare(_ pool: DatabasePool, _ files: StoreFiles, _ checkpointer: WALCheckpointer) throws {
    try pool.writeWithoutTransaction { database in
      // GRDB sets NORMAL for a write-ahead log, with which a power cut may undo the last commits.
      try database.execute(sql: "PRAGMA synchronous = FULL")
      // Some systems build SQLite to overwrite deleted data with zeros, a megabyte when history is pruned.
      try database.execute(sql: "PRAGMA secure_delete = OFF")
      try Schema.migrate(database, at: files.database)
      try checkpointer.install(on: database)
    }
  }

  /// Throws `damaged` if only a recovery helps; otherwise rebuilds derived rows that are wrong.
  private static func audit(
    _ pool: DatabasePool, _ files: StoreFiles, _ seal: StoreSeal, _ incidents: inout [StoreIncident]
  ) throws {
    let context = StoreContext(seal: seal)
    let whole = StoreFiles.exists(files.suspicion) ? true : nil
    let findings = try pool.read { try StoreAudit.run(on: StoreTransaction($0, in: context), whole: whole) }
    if let first = findings.damage.first { throw StoreError(.damaged, first) }
    if !findings.isEmpty { incidents.append(try rebuild(findings, pool, context)) }
  }

  private static func translatingDamage<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch let error as DatabaseError where error.isDamage {
      throw StoreError(.damaged, "the database can't be read: \(error.message ?? "damaged")", cause: error)
    } catch let error as DatabaseError {
      throw StoreError(error, doing: "opening the store")
    }
  }

  /// Rebuilds indexes and derived tables in one transaction. Throws `damaged` if that doesn't help.
  private static func rebuild(
    _ findings: StoreAudit.Findings, _ pool: DatabasePool, _ context: StoreContext
  ) throws -> StoreIncident {
    try pool.write { database in
      let transaction = StoreTransaction(database, in: context)
      if !findings.indexes.isEmpty { try database.execute(sql: "REINDEX") }
      if !findings.derived.isEmpty {
        try ContentUse.rebuild(in: transaction)
        try HeadTable.rebuild(in: database)
        try Counters.rebuild(in: database)
      }
      let rest = try StoreAudit.run(on: transaction)
      guard rest.isEmpty else { throw StoreError(.damaged, rest.all.first ?? "") }
    }
    let what = findings.all.joined(separator: "; ")
    return StoreIncident(.rebuilt, "derived data disagreed with the saves and was rebuilt; nothing was lost (\(what))")
  }

  private static func configuration() -> Configuration {
    var configuration = Configuration()
    configuration.label = "keepsake"
    configuration.prepareDatabase { database in
      // Detects damage in a page when the page is read, not when it is used.
      try database.execute(sql: "PRAGMA cell_size_check = ON")
      #if canImport(Darwin)
      // On Apple's systems, fsync leaves the bytes in the drive's cache.
      try database.execute(sql: "PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON")
      #endif
    }
    return configuration
  }

  // MARK: Use

  /// The current connections, for what only SQLite itself offers.
  var pool: DatabasePool { state.withLock { $0.pool } }

  func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
    users.enter()
    defer { users.leave() }
    defer { suspectLostPage() }
    var value: Value?
    do {
      return try pool.read { database in
        let read = try body(database)
        value = read
        return read
      }
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
      suspicion.note(error)
      // What was read around a lost page is valid, although SQLite then ends the transaction with an error.
      guard let value else { throw error }
      return value
    }
  }

  func write<Value>(_ body: (Database) throws -> Value) throws -> Value {
    // One write at a time, from checking for trouble to recording it: a write that waited for one that failed must
    // check the disk first.
    try writing.withLock {
      try heal()
      users.enter()
      defer { users.leave() }
      defer { suspectLostPage() }
      do {
        let value = try pool.write { database in
          try doDuty(database)
          return try body(database)
        }
        backup.didCommit(in: self)
        return value
      } catch let error as DatabaseError {
        note(error)
        throw error
      }
    }
  }

  private func suspectLostPage() {
    if memory.takeLostPage() { suspicion.note(StoreError(.damaged, "a page with data of a save could not be read")) }
  }

  /// Makes the next successful write run `duty` first, in its transaction.
  func beforeNextWrite(_ duty: @escaping @Sendable (Database) throws -> Void) { state.withLock { $0.duty = duty } }

  private func doDuty(_ database: Database) throws {
    guard let duty = state.withLock({ $0.duty }) else { return }
    try duty(database)
    // Cleared within this write, so that the next one doesn't find it.
    database.afterNextTransaction(onCommit: { _ in self.state.withLock { $0.duty = nil } })
  }

  var isCheckpointDue: Bool { checkpointer.isDue }

  /// Checkpoints the write-ahead log if that is due.
  ///
  /// A failure is not an error of any commit: the log stays, with everything that was committed, and the next write
  /// checks the disk first.
  func checkpointIfDue() {
    guard checkpointer.isDue else { return }
    // Not during a write: a failed sync must be known before the next commit builds on it.
    writing.withLock {
      guard state.withLock({ $0.trouble == nil && !$0.isClosed }) else { return }
      users.enter()
      defer { users.leave() }
      do {
        try checkpointer.run(on: pool)
      } catch let error as DatabaseError {
        note(error)
      } catch {
        // The pool was closed in the meantime.
      }
    }
  }

  /// Closes all connections, after a backup if one is due. The backup stops at `deadline`.
  func close(until deadline: ContinuousClock.Instant? = nil) throws {
    if state.withLock({ $0.trouble == nil && !$0.isClosed }) { backup.finish(on: self, until: deadline) }
    if let incident = suspicion.settle() { report(incident) }
    // Not while a write reopens the database, whose new connections would stay open.
    try writing.withLock {
      // A closed store is one file. If the checkpoint fails, for lack of space or because the store is being read, the
      // log keeps what the database lacks, and the next opening continues with both.
      if state.withLock({ $0.trouble == nil && !$0.isClosed }) {
        _ = try? pool.writeWithoutTransaction { database in try database.checkpoint(.truncate) }
      }
      try pool.close()
      state.withLock { $0.isClosed = true }
    }
    StoreReserve(files).take()
  }

  /// Records what a write's error means for later writes.
  private func note(_ error: DatabaseError) {
    switch error.resultCode {
    case .SQLITE_IOERR: state.withLock { $0.trouble = $0.trouble ?? .disk }
    case .SQLITE_CORRUPT, .SQLITE_NOTADB:
      state.withLock { $0.trouble = .damage }
      suspicion.note(error)
    default: return
    }
  }

  /// Reopens the database after the disk has failed. Throws if the disk still fails, or if the database is damaged.
  private func heal() throws {
    guard state.withLock({ $0.trouble != nil && !$0.isClosed }) else { return }
    try users.alone {
      switch state.withLock({ $0.trouble }) {
      case nil: return
      case .damage:
        throw StoreError(
          .damaged, "the store's database is damaged and can't store this save: close and reopen it to repair it")
      case .disk:
        let index = try FailedCommit.index(of: files.log)
        try pool.close()
        try FailedCommit.trimLog(files.log, to: index)
        var incidents: [StoreIncident] = []
        do {
          if let damage = try files.damageAtFirstSight() { throw StoreError(.damaged, damage) }
          let fresh = try Self.reopen(files, context.seal, checkpointer, &incidents)
          memory.forgetPlain()
          state.withLock { state in
            state.pool = fresh
            state.trouble = nil
          }
        } catch let error as StoreError where error.code == .damaged {
          state.withLock { $0.trouble = .damage }
          suspicion.note(error)
          throw error
        }
        report(StoreIncident(.reopened, "the disk failed while saving; the database was reopened and is intact"))
        for incident in incidents { report(incident) }
      }
    }
  }

  // MARK: Incidents

  var incidents: [StoreIncident] { log.withLock { $0.incidents } }

  func onIncident(_ observer: @escaping @Sendable (StoreIncident) -> Void) { log.withLock { $0.observer = observer } }

  func report(_ incident: StoreIncident) {
    let observer = log.withLock { log in
      log.incidents.append(incident)
      if log.incidents.count > Self.maximumIncidents { log.incidents.removeFirst() }
      return log.observer
    }
    observer(incident)
  }

  private static let maximumIncidents = 100
}
