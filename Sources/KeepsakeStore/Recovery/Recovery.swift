import Foundation
import GRDB
import KeepsakeReplication

/// Builds a new store from everything that can still be read of a damaged one, and replaces the damaged one with it.
///
/// The new database is built beside the damaged one, which is only read. Once it is complete and durable, a file
/// records that (`StoreFiles.intent`). Then the damaged files move into a folder of their own and the new one takes
/// their name. A crash before the file is written leaves the damaged store, and the next opening starts over; after it,
/// the next opening completes what the file records.
package struct Recovery {
  /// What a recovery found, and what it did or would do.
  package struct Report: Sendable, Hashable, Codable {
    /// What was wrong.
    package var reasons: [String]
    package var versions: Int
    package var values: Int
    package var contents: Int
    /// Saves whose bytes no source had.
    package var lostSaves: Int
    /// Slots that show an older save, because the newest was lost.
    package var steppedBack: [String]
    /// What happened to the wallet, if it had to be rebuilt.
    package var wallet: String?
    /// The folder into which the damaged files were moved, or would be.
    package var damagedFolder: String

    package var message: String {
      var text = "the store was damaged (\(reasons.first ?? "it could not be opened")"
      if reasons.count > 1 { text += ", and \(reasons.count - 1) more" }
      text +=
        "); \(CountText.of(versions, "save")) and \(CountText.of(values, "value")) could be read, into a new database"
      if lostSaves > 0 { text += "; the bytes of \(CountText.of(lostSaves, "save")) are lost" }
      if !steppedBack.isEmpty {
        text += "; an older save is now the newest in \(steppedBack.map { "\"\($0)\"" }.joined(separator: ", "))"
      }
      if let wallet { text += "; \(wallet)" }
      return text + "; the damaged files are in \(damagedFolder)"
    }
  }

  private struct Intent: Codable {
    /// The folder's name in `StoreFiles.damaged`, not its path: the store's folder may be moved in the meantime.
    var name: String
  }
  private static let maximumIntentBytes = 4_096

  private let files: StoreFiles
  /// The seal of the existing rows. The new rows are sealed in the same way; the seal that the game requests is applied
  /// later, by the gate.
  private let seal: StoreSeal
  private let header: SealHeader?
  private var recovered: URL { Self.recovered(files) }

  init(_ files: StoreFiles, _ gate: SealGate) {
    self.files = files
    (seal, header) = (gate.seal, gate.found)
  }

  private static func recovered(_ files: StoreFiles) -> URL {
    files.workshop.appendingPathComponent("recovered.sqlite")
  }

  // MARK: Steps

  /// Completes a recovery that was interrupted after its new database was complete. Removes the remains of one that was
  /// not.
  static func finishInterrupted(_ files: StoreFiles) throws {
    if let data = try AtomicFile.read(files.intent, maximumBytes: maximumIntentBytes) {
      let intent: Intent
      do {
        intent = try JSONDecoder().decode(Intent.self, from: data)
      } catch {
        throw StoreError(
          .damaged, "the recovery record at \(files.intent.path) can't be read: delete it to start the recovery again",
          cause: error)
      }
      // It must be a name and not a path: nothing may be moved out of the store.
      guard !intent.name.isEmpty, !intent.name.contains("/"), !intent.name.hasPrefix(".") else {
        throw StoreError(
          .damaged, "the recovery record at \(files.intent.path) is damaged: delete it to start the recovery again")
      }
      try swap(files, aside: files.damaged.appendingPathComponent(intent.name))
    } else {
      try StoreFiles.remove(files.workshop)
    }
  }

  /// Recovers the whole store. Throws `damaged`, with nothing changed, if no source can be read.
  func run(because reasons: [String]) throws -> Report {
    let report = try build(because: reasons)
    try StoreFiles.sync(recovered)
    try AtomicFile.syncFolder(files.workshop.path)
    let damaged = URL(fileURLWithPath: report.damagedFolder)
    let intent: Data
    do {
      intent = try JSONEncoder().encode(Intent(name: damaged.lastPathComponent))
    } catch {
      throw StoreError(.io, "the recovery record can't be written", cause: error)
    }
    try AtomicFile.write(intent, to: files.intent)
    try Self.swap(files, aside: damaged)
    return report
  }

  /// Builds the new database and discards it, to find out what a recovery would do.
  func rehearse(because reasons: [String]) throws -> Report {
    let report = try build(because: reasons)
    try StoreFiles.remove(files.workshop)
    return report
  }

  /// May be interrupted at any point and run again.
  private static func swap(_ files: StoreFiles, aside damaged: URL) throws {
    let recovered = recovered(files)
    if StoreFiles.exists(recovered) {
      try StoreFiles.makeFolder(files.damaged)
      try StoreFiles.makeFolder(damaged)
      // A remaining log would be replayed into the new database.
      for suffix in ["-wal", "-shm", "-journal", ""] {
        let name = Store.databaseName + suffix
        try StoreFiles.moveIfPresent(
          files.folder.appendingPathComponent(name), to: damaged.appendingPathComponent(name))
      }
      try AtomicFile.syncFolder(damaged.path)
      try AtomicFile.syncFolder(files.folder.path)
      try StoreFiles.moveIfPresent(recovered, to: files.database)
      try AtomicFile.syncFolder(files.folder.path)
    }
    try StoreFiles.remove(files.suspicion)
    try StoreFiles.remove(files.intent)
    try AtomicFile.syncFolder(files.folder.path)
    try StoreFiles.remove(files.workshop)
  }

  // MARK: Building

  private func build(because reasons: [String]) throws -> Report {
    try StoreFiles.remove(files.workshop)
    try StoreFiles.makeFolder(files.workshop)
    do {
      return try StoreError.translating("recovering the store") { try buildReport(reasons) }
    } catch {
      try StoreFiles.remove(files.workshop)
      throw error
    }
  }

  private func buildReport(_ reasons: [String]) throws -> Report {
    let shapes = try TableShape.all()
    let raw = try RawFile(files.database)
    let log = try WriteAheadLog.read(files.log, defaultPageSize: PageScanner.pageSize(of: raw))
    // SQLite works on a copy, so that the damaged files stay as they are.
    let copy = files.workshop.appendingPathComponent("damaged.sqlite")
    try StoreFiles.copyReadable(files.database, to: copy)
    try StoreFiles.copyReadable(files.log, to: URL(fileURLWithPath: copy.path + "-wal"))
    try StoreFiles.copyReadable(files.journal, to: URL(fileURLWithPath: copy.path + "-journal"))

    let queue = try DatabaseQueue(path: recovered.path)
    var report: Report?
    try queue.inDatabase { database in
      try database.inTransaction {
        try Schema.create(in: database)
        var salvage = Salvage(into: database, seal: seal)
        let scanner = PageScanner(database: raw, log: log, shapes: shapes)
        // Where rows can't be joined, the first source wins. SQLite knows best what is newest, unless it would ignore
        // the end of a damaged log.
        if log.state == .damaged {
          try scanner.scan { try salvage.add($0) }
          try salvage.proveContents()
          try Self.read(copy, shapes, isStore: true, into: &salvage)
        } else {
          try Self.read(copy, shapes, isStore: true, into: &salvage)
          try scanner.scan { try salvage.add($0) }
          try salvage.proveContents()
        }
        for backup in files.presentBackups {
          let copied = files.workshop.appendingPathComponent("backup.sqlite")
          try StoreFiles.copyReadable(backup, to: copied)
          try Self.read(copied, shapes, isStore: false, into: &salvage)
          try StoreFiles.remove(copied)
        }
        guard !salvage.isEmpty else {
          let backup =
            switch files.presentBackups.count {
            case 0: "there is no backup of it"
            case 1: "its backup can't be read either"
            default: "its backups can't be read either"
            }
          throw StoreError(
            .damaged,
            """
            the store at \(files.folder.path) can't be read (\(reasons.first ?? "it could not be opened")), and \
            \(backup). Nothing was changed: restore the folder from a copy, or move it away to start afresh
            """)
        }
        try salvage.write()
        if let header { try salvage.writeSeal(header) }
        let findings = try StoreAudit.run(on: salvage.transaction)
        guard findings.isEmpty else {
          throw StoreError(.damaged, "the store could not be recovered: \(findings.all.first ?? "")")
        }
        report = Report(
          reasons: reasons, versions: salvage.versionCount, values: salvage.valueCount, contents: salvage.contentCount,
          lostSaves: salvage.lostContents, steppedBack: salvage.steppedBack, wallet: salvage.walletLoss,
          damagedFolder: StoreFiles.newDamagedFolder(in: files.damaged).path)
        return .commit
      }
    }
    try queue.close()
    guard let report else { throw StoreError(.io, "a recovery ended without a result") }
    return report
  }

  /// Adds all rows that SQLite returns for a database; for a damaged one these are some or none.
  ///
  /// - Parameter isStore: Whether it is the store itself, so that a row whose seal doesn't verify is judged later, and
  ///   not an older copy, in which such a row may be from before the store was sealed.
  private static func read(_ url: URL, _ shapes: [TableShape], isStore: Bool, into salvage: inout Salvage) throws {
    guard StoreFiles.exists(url) else { return }
    do {
      var configuration = Configuration()
      configuration.label = "keepsake.recovery"
      let queue = try DatabaseQueue(path: url.path, configuration: configuration)
      for table in shapes { try read(table, of: queue, isStore: isStore, into: &salvage) }
      try read(.quarantine, of: queue, isStore: isStore, into: &salvage)
      try queue.close()
    } catch let error as DatabaseError
      where error.isDamage || error.resultCode == .SQLITE_IOERR || error.resultCode == .SQLITE_CANTOPEN
    {
      // The other sources are there for this case.
    }
    try salvage.proveContents()
  }

  private static func read(_ table: TableShape, of queue: DatabaseQueue, isStore: Bool, into salvage: inout Salvage)
    throws
  {
    do {
      try queue.read { database in
        // By name, because in a damaged schema the columns may have other names.
        let columns = table.columns.map(\.name)
        let rows = try Row.fetchCursor(
          database, sql: "SELECT \(columns.joined(separator: ", ")) FROM \(table.name) NOT INDEXED")
        while let row = try rows.next() {
          var values: [String: DatabaseValue] = [:]
          for (name, value) in zip(columns, row.databaseValues) { values[name] = value }
          // Errors of the new database must not be mistaken for damage of the old one.
          do {
            try salvage.add(SalvagedRow(table: table.name, values: values), isStore: isStore)
          } catch let error as DatabaseError {
            throw StoreError(error, doing: "recovering the store")
          }
        }
      }
    } catch let error as DatabaseError where error.isDamage || error.resultCode == .SQLITE_IOERR {
      // The rows after the damage come from the pages.
    }
  }
}
