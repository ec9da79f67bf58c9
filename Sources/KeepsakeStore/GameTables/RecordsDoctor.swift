import Foundation
import GRDB

/// Examines the game's own tables, and repairs them on request. The caller holds the store's lock meanwhile.
struct RecordsDoctor {
  struct Diagnosis: Sendable {
    var findings: [String] = []
    var plan = StoreDoctor.Plan.nothing
    /// What a recovery would do.
    var recovery: RecordsRecovery.Report?
  }

  private let files: RecordsFiles

  init(folder: URL) { files = RecordsFiles(folder: folder) }

  /// Examines everything and changes nothing. Costs reading all of the tables and, if they are damaged, rebuilding them
  /// beside the old ones.
  func examine() throws -> Diagnosis {
    var diagnosis = Diagnosis()
    guard files.isPresent else { return diagnosis }
    if StoreFiles.exists(files.workshop) {
      diagnosis.findings = ["a recovery of the records was interrupted"]
      diagnosis.plan = .recover
      return diagnosis
    }
    if let damage = try files.damageAtFirstSight() {
      diagnosis.findings = [damage]
      diagnosis.plan = .recover
    } else {
      let findings = try look()
      diagnosis.findings = findings.all
      diagnosis.plan = !findings.damage.isEmpty ? .recover : findings.indexes.isEmpty ? .nothing : .rebuild
    }
    diagnosis.findings = diagnosis.findings.map { "records: \($0)" }
    if diagnosis.plan == .recover {
      diagnosis.recovery = try RecordsRecovery(files).rehearse(because: diagnosis.findings)
    }
    return diagnosis
  }

  private func look() throws -> RecordsAudit.Findings {
    guard try (RawFile(files.database)?.size ?? 0) > 0 else { return RecordsAudit.Findings() }
    do {
      let queue = try DatabaseQueue(
        path: files.database.path, configuration: RecordsAudit.configuration("keepsake.records.doctor"))
      let findings = try queue.readAround { try RecordsAudit.run(on: $0, .everything) }
      try queue.close()
      return findings
    } catch let error as DatabaseError where error.isBrokenFile {
      return RecordsAudit.Findings(damage: ["the database can't be read: \(error.message ?? "damaged")"])
    } catch let error as DatabaseError {
      throw StoreError(error, doing: "examining the records")
    }
  }

  /// Repairs what `examine` found. Returns what was done.
  func repair(_ diagnosis: Diagnosis) throws -> [StoreIncident] {
    switch diagnosis.plan {
    case .nothing: return []
    case .recover where diagnosis.recovery == nil:
      try RecordsRecovery.finishInterrupted(files)
      return [StoreIncident(.recovered, "the interrupted recovery of the records was finished or undone")]
    case .recover:
      return [StoreIncident(.recovered, try RecordsRecovery(files).run(because: diagnosis.findings).message)]
    case .rebuild: return [try Self.mendIndexes(files, because: diagnosis.findings)]
    }
  }

  /// Rebuilds all indexes from their tables. If conflicting rows prevent that, runs a recovery.
  static func mendIndexes(_ files: RecordsFiles, because reasons: [String]) throws -> StoreIncident {
    do {
      let queue = try DatabaseQueue(path: files.database.path)
      do {
        try queue.write { try $0.execute(sql: "REINDEX") }
        try queue.close()
      } catch {
        try queue.close()
        throw error
      }
      return StoreIncident(
        .rebuilt,
        """
        indexes of the records disagreed with their tables and were rebuilt; nothing was lost \
        (\(reasons.joined(separator: "; ")))
        """)
    } catch let error as DatabaseError where error.isDamage {
      // Rows that an index should have prevented were inserted while it was damaged, or more is damaged than was found.
      let reasons = reasons + ["indexes can't be rebuilt: \(error.message ?? "damaged")"]
      return StoreIncident(.recovered, try RecordsRecovery(files).run(because: reasons).message)
    } catch let error as DatabaseError {
      throw StoreError(error, doing: "rebuilding the indexes of the records")
    }
  }
}
