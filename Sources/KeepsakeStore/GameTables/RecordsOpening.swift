import Foundation
import GRDB
import KeepsakePlatform

/// Opens the file of the game's own tables after checking it and, if necessary, repairing it.
struct RecordsOpening {
  private let files: RecordsFiles

  init(_ files: RecordsFiles) { self.files = files }

  /// Returns connections to intact tables, and reports what had to be repaired.
  ///
  /// - Throws: The error from `objection` if the tables are intact, with nothing changed.
  func open(
    _ checkpointer: WALCheckpointer, _ presence: FilePresence, _ objection: RecordsDatabase.Objection,
    _ report: (StoreIncident) -> Void
  ) throws -> DatabasePool {
    guard SystemCall.mayWrite(files.folder.path) == 0 else {
      throw StoreError(errorNumber: errno, doing: "writing in \(files.folder.path)")
    }
    try RecordsRecovery.finishInterrupted(files)
    // What was wrong may be an index, which only a comparison with its table reveals.
    var findings = try look(StoreFiles.exists(files.suspicion) ? .everything : .opening, objection)
    if !findings.damage.isEmpty {
      report(StoreIncident(.recovered, try RecordsRecovery(files).run(because: findings.damage).message))
      // A backup may be from a newer release of the game, too.
      findings = try look(.opening, objection)
    }
    if let damage = findings.damage.first { throw StoreError(.damaged, damage) }
    if !findings.indexes.isEmpty { report(try RecordsDoctor.mendIndexes(files, because: findings.indexes)) }
    let pool = try connect(checkpointer, presence)
    do {
      try presence.capture()
      try StoreFiles.remove(files.suspicion)
      return pool
    } catch {
      try? pool.close()  // The reason to give up is the error that is thrown.
      throw error
    }
  }

  /// Returns what is wrong with the file. Throws the error from `objection` if the tables are intact. Changes nothing
  /// that was committed.
  func look(
    _ extent: RecordsAudit.Extent, _ objection: RecordsDatabase.Objection = { _ in nil }
  ) throws -> RecordsAudit.Findings {
    if let damage = try files.damageAtFirstSight() { return RecordsAudit.Findings(damage: [damage]) }
    guard try (RawFile(files.database)?.size ?? 0) > 0 else { return RecordsAudit.Findings() }
    do {
      var configuration = RecordsAudit.configuration("keepsake.records.check")
      // A journal has to be rolled back before anything can be read.
      configuration.readonly = !StoreFiles.exists(files.journal)
      configuration.busyMode = .timeout(RecordsDatabase.busySeconds)
      let queue = try DatabaseQueue(path: files.database.path, configuration: configuration)
      let (findings, refusal) = try queue.readAround { database in
        let findings = try RecordsAudit.run(on: database, extent)
        return (findings, try findings.damage.isEmpty ? objection(database) : nil)
      }
      try queue.close()
      if let refusal { throw refusal }
      return findings
    } catch let error as DatabaseError where error.isBrokenFile {
      return RecordsAudit.Findings(damage: ["the database can't be read: \(error.message ?? "damaged")"])
    }
  }

  /// - Parameter presence: What each later connection checks before it reads anything: it is opened by the path.
  func connect(_ checkpointer: WALCheckpointer, _ presence: FilePresence?) throws -> DatabasePool {
    var configuration = Configuration()
    configuration.label = "keepsake.records"
    configuration.busyMode = .timeout(RecordsDatabase.busySeconds)
    configuration.prepareDatabase { database in
      try presence?.check()
      // Detects damage in a page when the page is read, not when it is used.
      try database.execute(sql: "PRAGMA cell_size_check = ON")
      try database.execute(sql: FullSync.databaseStatements)
    }
    let pool = try DatabasePool(path: files.database.path, configuration: configuration)
    do {
      try pool.writeWithoutTransaction { database in
        // GRDB sets NORMAL for a write-ahead log, with which a power cut may undo the last commits.
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
}
