package import Foundation
import GRDB
import KeepsakeReplication

/// Replaces damaged tables with intact ones: with all their rows if the damage is only outside the tables, otherwise
/// with the newest good backup, otherwise with what can be read row by row, otherwise with none.
///
/// The new file is built beside the damaged one, which is only read. Once it is complete and durable, it is renamed to
/// mark that. Then the damaged files move into a folder of their own and the new one takes their place. A crash before
/// the renaming leaves the damaged tables, and the next opening starts over; after it, the next opening completes the
/// move.
package struct RecordsRecovery {
  /// What a recovery found, and what it did or would do.
  package struct Report: Sendable, Hashable, Codable {
    package enum Source: String, Sendable, Hashable, Codable {
      /// A copy made while the game ran.
      case backup
      /// What could be read of the damaged file.
      case rows
      /// Nothing could be read: the game's migrations start over.
      case nothing
    }
    /// What was wrong.
    package var reasons: [String]
    package var source: Source
    /// When the backup was made.
    package var backupDate: Date?
    package var tables = 0
    package var rows = 0
    /// Parts of tables from which rows are lost, and things that could not be rebuilt, in sentences.
    package var losses: [String] = []
    /// Whether no table was damaged: all rows are there, including those that the newest backup lacks.
    package var isComplete = false
    /// The folder into which the damaged files were moved, or would be.
    package var damagedFolder: String

    /// What replaces the damaged tables, in words.
    package var outcome: String {
      switch source {
      case .backup:
        """
        the backup of \(backupDate.map { $0.formatted(.iso8601) } ?? "an unknown time") with \
        \(CountText.of(rows, "row")) in \(CountText.of(tables, "table")); what was written after it is lost
        """
      case .rows:
        isComplete
          ? "all rows: \(CountText.of(rows, "row")) of \(CountText.of(tables, "table")); nothing was lost"
          : "what could be read: \(CountText.of(rows, "row")) of \(CountText.of(tables, "table"))"
            + (losses.isEmpty
              ? ""
              : """
              ; lost: \
              \(losses.prefix(3).joined(separator: ", "))\(losses.count > 3 ? ", and \(losses.count - 3) more" : "")
              """)
      case .nothing:
        "nothing: no row could be read and there is no usable backup, so the game's migrations start from the beginning"
      }
    }

    package var message: String {
      let more = reasons.count > 1 ? ", and \(reasons.count - 1) more" : ""
      return """
        the records were damaged (\(reasons.first ?? "they could not be opened")\(more)); in their place is \
        \(outcome); the damaged files are in \(damagedFolder)
        """
    }
  }

  /// The suffix of a complete new file's name. The part before it is the name of the folder for the damaged files.
  private static let wholeSuffix = ".whole"

  private let files: RecordsFiles

  init(_ files: RecordsFiles) { self.files = files }

  // MARK: Steps

  /// Completes a recovery that was interrupted after its new file was complete. Removes the remains of one that was
  /// not.
  static func finishInterrupted(_ files: RecordsFiles) throws {
    guard StoreFiles.exists(files.workshop) else { return }
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: files.workshop.path)
    } catch {
      throw StoreError(.io, "\(files.workshop.path) can't be read", cause: error)
    }
    if let whole = names.first(where: { $0.hasSuffix(wholeSuffix) }) { try swap(files, whole) }
    try StoreFiles.remove(files.workshop)
  }

  func run(because reasons: [String]) throws -> Report {
    let report = try build(because: reasons)
    let whole = URL(fileURLWithPath: report.damagedFolder).lastPathComponent + Self.wholeSuffix
    try StoreFiles.sync(fresh)
    try StoreFiles.moveIfPresent(fresh, to: files.workshop.appendingPathComponent(whole))
    try AtomicFile.syncFolder(files.workshop.path)
    try Self.swap(files, whole)
    try StoreFiles.remove(files.workshop)
    return report
  }

  /// Builds the new file and discards it, to find out what a recovery would do.
  func rehearse(because reasons: [String]) throws -> Report {
    let report = try build(because: reasons)
    try StoreFiles.remove(files.workshop)
    return report
  }

  /// May be interrupted at any point and run again: the new file leaves the workshop last.
  private static func swap(_ files: RecordsFiles, _ whole: String) throws {
    let aside = files.damaged.appendingPathComponent(String(whole.dropLast(wholeSuffix.count)))
    try StoreFiles.makeFolder(files.damaged)
    try StoreFiles.makeFolder(aside)
    // A remaining log would be replayed into the new file.
    for suffix in ["-wal", "-shm", "-journal", ""] {
      let name = RecordsDatabase.fileName + suffix
      try StoreFiles.moveIfPresent(files.folder.appendingPathComponent(name), to: aside.appendingPathComponent(name))
    }
    try AtomicFile.syncFolder(aside.path)
    try AtomicFile.syncFolder(files.folder.path)
    try StoreFiles.moveIfPresent(files.workshop.appendingPathComponent(whole), to: files.database)
    try AtomicFile.syncFolder(files.folder.path)
    try StoreFiles.remove(files.suspicion)
  }

  // MARK: Building

  private var fresh: URL { files.workshop.appendingPathComponent("new.sqlite") }
  /// SQLite works on a copy, so that the damaged files stay as they are.
  private var copy: URL { files.workshop.appendingPathComponent("damaged.sqlite") }

  private func build(because reasons: [String]) throws -> Report {
    try StoreFiles.remove(files.workshop)
    try StoreFiles.makeFolder(files.workshop)
    do {
      return try StoreError.translating("recovering the records") {
        var report = Report(
          reasons: reasons, source: .nothing, damagedFolder: StoreFiles.newDamagedFolder(in: files.damaged).path)
        // Damage outside the tables must not lose what was written since the backup.
        if try takeAllRows(&report) { return report }
        if try restoreBackup(&report) { return report }
        if try salvage(&report, completely: false) { return report }
        try begin()
        return report
      }
    } catch {
      try StoreFiles.remove(files.workshop)
      throw error
    }
  }

  private func restoreBackup(_ report: inout Report) throws -> Bool {
    for backup in files.presentBackups {
      try StoreFiles.copyReadable(backup, to: fresh)
      if let tables = try soundTables() {
        report.source = .backup
        report.backupDate = Date(timeIntervalSince1970: Double(StoreFiles.modified(backup)) / 1e9)
        (report.tables, report.rows) = (tables.count, tables.reduce(0) { $0 + ($1.rows ?? 0) })
        return true
      }
      try StoreFiles.remove(fresh)
    }
    return false
  }

  /// Returns the tables in the new file; nil if that is damaged, too.
  private func soundTables() throws -> [RecordsReader.Table]? {
    guard let raw = try RawFile(fresh), let header = raw.bytes(at: 0, count: 100), RecordsFiles.isSound(header) else {
      return nil
    }
    do {
      let queue = try DatabaseQueue(
        path: fresh.path, configuration: RecordsAudit.configuration("keepsake.records.recovery"))
      let tables = try queue.readAround { database in
        try RecordsAudit.run(on: database, .structure).damage.isEmpty ? try RecordsReader.tables(in: database) : nil
      }
      try queue.close()
      return tables
    } catch let error as DatabaseError where error.isBrokenFile {
      return nil
    }
  }

  /// Copies of the damaged files stay in the workshop only as long as they are needed: disk space may be short.
  private func takeAllRows(_ report: inout Report) throws -> Bool {
    guard try files.damageAtFirstSight() == nil else { return false }
    do {
      try copyDamaged()
      if try sparesTables(), try salvage(&report, completely: true) { return true }
    } catch  where StoreError.isFull(error) {
      // A backup may take less space.
    }
    for url in [fresh, copy, URL(fileURLWithPath: copy.path + "-wal"), URL(fileURLWithPath: copy.path + "-shm")] {
      try StoreFiles.remove(url)
    }
    return false
  }

  private func copyDamaged() throws {
    try StoreFiles.copyReadable(files.database, to: copy)
    try StoreFiles.copyReadable(files.log, to: URL(fileURLWithPath: copy.path + "-wal"))
    try StoreFiles.copyReadable(files.journal, to: URL(fileURLWithPath: copy.path + "-journal"))
  }

  /// All findings must be known; if there are more than this, the damage isn't only in an index.
  private static let maximumFindings = 100_000

  /// Returns whether all tables are intact and everything damaged can be rebuilt from them: indexes, and the list of
  /// free pages.
  private func sparesTables() throws -> Bool {
    do {
      let queue = try DatabaseQueue(path: copy.path)
      let (problems, roots) = try queue.readAround { database -> ([String], [Int]) in
        let findings = try RecordsAudit.run(on: database, .structure, limit: Self.maximumFindings)
        guard findings.damage.count < Self.maximumFindings else { return ([], []) }
        let roots = try Int.fetchAll(
          database, sql: "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
        return (findings.damage, [1] + roots)
      }
      // Puts everything into one file, whose pages can be examined.
      _ = try queue.writeWithoutTransaction { try $0.checkpoint(.truncate) }
      try queue.close()
      guard !problems.isEmpty, let file = try RawFile(copy), let tables = TablePages(file, roots: roots) else {
        return false
      }
      return tables.spares(problems)
    } catch let error as DatabaseError where error.isDamage || error.isBrokenFile {
      return false
    }
  }

  private func salvage(_ report: inout Report, completely: Bool) throws -> Bool {
    if !StoreFiles.exists(copy) { try copyDamaged() }
    guard let salvaged = try TableSalvage.run(from: copy, to: fresh), let tables = try soundTables(), !tables.isEmpty,
      !completely || salvaged.isEmpty && tables.allSatisfy({ $0.rows != nil })
    else {
      try StoreFiles.remove(fresh)
      return false
    }
    report.source = .rows
    report.isComplete = completely
    (report.tables, report.rows) = (tables.count, tables.reduce(0) { $0 + ($1.rows ?? 0) })
    report.losses = salvaged + tables.filter { $0.rows == nil }.map { "the table \($0.name), which can't be read" }
    return true
  }

  /// Creates a database without tables, and not an empty file without a header, which would look as if it had been
  /// lost.
  private func begin() throws {
    let queue = try DatabaseQueue(path: fresh.path)
    try queue.write { try $0.execute(sql: "CREATE TABLE begun (id INTEGER PRIMARY KEY); DROP TABLE begun") }
    try queue.close()
  }
}
