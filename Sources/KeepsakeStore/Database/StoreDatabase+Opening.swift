import Foundation
import GRDB
import KeepsakePlatform
import KeepsakeReplication

// Opening a store's database, and opening it again after the disk has failed.
extension StoreDatabase {
  /// Opens the store's database and repairs it if necessary.
  ///
  /// - Parameter lock: The lock of the folder, which stays taken as long as the database is open.
  /// - Throws: What the seal's gate throws, before anything is changed, however damaged the database is.
  static func open(
    _ files: StoreFiles, lock: StoreLock, seal request: SealRequest, history: HistoryRules, backups: BackupSchedule
  ) throws -> (StoreDatabase, [StoreIncident]) {
    let reserve = StoreReserve(files)
    do {
      let opened = try openOnce(files, lock, request, history, backups)
      reserve.take()
      return opened
    } catch let error as StoreError where error.code == .diskFull {
      guard try reserve.giveUp() else { throw error }
      return try openOnce(files, lock, request, history, backups)
    }
  }

  private static func openOnce(
    _ files: StoreFiles, _ lock: StoreLock, _ request: SealRequest, _ history: HistoryRules, _ backups: BackupSchedule
  ) throws -> (StoreDatabase, [StoreIncident]) {
    let presence = FilePresence(files, lock: lock)
    try Recovery.finishInterrupted(files)
    let checkpointer = WALCheckpointer()
    var incidents: [StoreIncident] = []
    var gate: SealGate?
    var opened: (pool: DatabasePool, seal: StoreSeal)
    do {
      if let damage = try files.damageAtFirstSight() { throw StoreError(.damaged, damage) }
      opened = try openSealed(files, presence, request, checkpointer, &gate, &incidents)
    } catch let error as StoreError where error.code == .damaged {
      // If the database doesn't show its seal, the files beside it or its pages do.
      let known = gate.flatMap { $0.found == nil ? nil : $0 }
      let recovery = try Recovery(files, known ?? SealGate(request, database: nil, folder: files.folder))
      let report = try recovery.run(because: [error.message])
      incidents = [StoreIncident(.recovered, report.message)]
      opened = try openSealed(files, presence, request, checkpointer, &gate, &incidents)
    }
    try presence.capture()
    try StoreFiles.remove(files.suspicion)
    let context = StoreContext(seal: opened.seal, history: history)
    let database = StoreDatabase(
      files, presence, pool: opened.pool, context: context, checkpointer: checkpointer, backups)
    return (database, incidents)
  }

  /// Opens and audits the database, and applies the requested seal. `gate` receives what the seal was, even if this
  /// throws later.
  private static func openSealed(
    _ files: StoreFiles, _ presence: FilePresence, _ request: SealRequest, _ checkpointer: WALCheckpointer,
    _ gate: inout SealGate?, _ incidents: inout [StoreIncident]
  ) throws -> (DatabasePool, StoreSeal) {
    let pool = try connect(files, presence)
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
    let pool = try connect(files, nil)
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
  static func reopen(
    _ files: StoreFiles, _ presence: FilePresence, _ seal: StoreSeal, _ checkpointer: WALCheckpointer,
    _ incidents: inout [StoreIncident]
  ) throws -> DatabasePool {
    let pool = try connect(files, presence)
    do {
      try translatingDamage {
        try prepare(pool, files, checkpointer)
        try presence.capture()
        try audit(pool, files, seal, &incidents)
        try SealGate.keepLedger(of: seal, on: pool)
      }
      return pool
    } catch {
      presence.willReopen()
      try? pool.close()  // The reason to give up is the error that is thrown.
      throw error
    }
  }

  /// - Parameter presence: What each later connection checks before it reads anything: it is opened by the path.
  private static func connect(_ files: StoreFiles, _ presence: FilePresence?) throws -> DatabasePool {
    do {
      return try DatabasePool(path: files.database.path, configuration: configuration(presence))
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
      // What a savepoint needs to undo its changes would go into a file in the system's temporary folder.
      try database.execute(sql: "PRAGMA temp_store = MEMORY")
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

  private static func configuration(_ presence: FilePresence?) -> Configuration {
    var configuration = Configuration()
    configuration.label = "keepsake"
    configuration.prepareDatabase { database in
      try presence?.check()
      // Detects damage in a page when the page is read, not when it is used.
      try database.execute(sql: "PRAGMA cell_size_check = ON")
      try database.execute(sql: FullSync.databaseStatements)
    }
    return configuration
  }
}
