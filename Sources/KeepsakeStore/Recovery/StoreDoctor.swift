package import Foundation
import GRDB
package import KeepsakeReplication

/// Examines a store down to every content's hash, and the game's own tables beside it; reports what is wrong, and
/// repairs it on request. Holds the store's lock meanwhile.
package struct StoreDoctor {
  package enum Plan: String, Sendable, Codable {
    case nothing
    /// Indexes or derived tables are rebuilt in place; nothing can be lost.
    case rebuild
    /// What can be read goes into a new database, and the damaged files are set aside.
    case recover
  }

  /// A saved game that can't be read.
  package struct UnreadableSave: Sendable, Hashable, Codable {
    package var slot: String
    package var version: VersionID
    package var message: String
    /// Whether the slot currently shows this version.
    package var isHead: Bool
  }

  package struct Diagnosis: Sendable {
    /// What is wrong with the database, in sentences.
    package var findings: [String] = []
    package var unreadable: [UnreadableSave] = []
    package var plan = Plan.nothing
    /// What a recovery would do, or did; nil if none is needed, or if the secret of a seal is needed to know.
    package var recovery: Recovery.Report?
    /// If the store is sealed and no secret was given: what can't be examined or repaired without it, in a sentence.
    package var needsSecret: String?

    /// The game's own tables.
    var records = RecordsDoctor.Diagnosis()
    package var recordsFindings: [String] { records.findings }
    package var recordsPlan: Plan { records.plan }
    /// What a recovery of the game's own tables would do; nil if none is needed.
    package var recordsRecovery: RecordsRecovery.Report? { records.recovery }

    package var isSound: Bool { findings.isEmpty && unreadable.isEmpty && records.findings.isEmpty }
  }

  private let files: StoreFiles
  private let lock: StoreLock
  private let request: SealRequest?

  /// Locks the store in the folder at `url`.
  ///
  /// - Parameter seal: The secret of a sealed store. Without it, a signed store is examined without checking its
  ///   signatures, and of an encrypted one only checksums are checked. Neither can be recovered without the secret.
  /// - Throws: `missing` if there is no store, `inUse` if it is open elsewhere.
  package init(at url: URL, seal: SealRequest? = nil) throws {
    request = seal
    files = StoreFiles(folder: url)
    guard StoreFiles.exists(files.database) || !files.presentBackups.isEmpty || StoreFiles.exists(files.intent) else {
      throw StoreError(.missing, "the folder \(url.path) contains no store")
    }
    lock = try StoreLock(at: url.appendingPathComponent("lock"))
  }

  package func release() { lock.release() }

  /// Examines everything and changes nothing. Costs reading and decoding the whole store and, if it is damaged,
  /// building a second one in its folder, which is removed again.
  ///
  /// - Throws: `wrongSecret` if the given secret isn't the store's.
  package func examine(progress: (String) -> Void = { _ in }) throws -> Diagnosis {
    var diagnosis = try examineStore(progress)
    progress("examining the records")
    diagnosis.records = try RecordsDoctor(folder: files.folder).examine()
    return diagnosis
  }

  private func examineStore(_ progress: (String) -> Void) throws -> Diagnosis {
    var diagnosis = Diagnosis()
    if StoreFiles.exists(files.intent) {
      diagnosis.findings = [
        "a recovery was interrupted after its new database was complete; opening the store finishes it"
      ]
      diagnosis.plan = .recover
      return diagnosis
    }
    progress("examining the files")
    if let damage = try files.damageAtFirstSight() {
      diagnosis.findings = [damage]
      diagnosis.plan = .recover
    } else {
      try examineDatabase(&diagnosis, progress)
    }
    if diagnosis.plan == .recover {
      progress("trying a recovery")
      try rehearse(&diagnosis)
    }
    return diagnosis
  }

  private func rehearse(_ diagnosis: inout Diagnosis) throws {
    guard let gate = try gate(&diagnosis) else { return }
    diagnosis.recovery = try Recovery(files, gate).rehearse(because: reasons(diagnosis))
  }

  /// Returns the seal for the repaired store; nil if the secret is missing.
  private func gate(_ diagnosis: inout Diagnosis) throws -> SealGate? {
    if request == nil, let header = try SealHeader.findAnywhere(files).first {
      diagnosis.needsSecret =
        "the store is \(header.kind.rawValue): without the secret of \(header.game) it can't be recovered"
      return nil
    }
    return try SealGate(request ?? .none, database: nil, folder: files.folder)
  }

  private func reasons(_ diagnosis: Diagnosis) -> [String] { diagnosis.findings + diagnosis.unreadable.map(\.message) }

  private func examineDatabase(_ diagnosis: inout Diagnosis, _ progress: (String) -> Void) throws {
    do {
      var configuration = Configuration()
      configuration.readonly = true
      let queue = try DatabaseQueue(path: files.database.path, configuration: configuration)
      try queue.read { database in
        try Schema.requireCurrent(database, at: files.database)
        let seal = try SealGate.seal(of: database, request, folder: files.folder)
        let transaction = StoreTransaction(database, in: StoreContext(seal: seal))
        progress("checking the database")
        let findings = try StoreAudit.run(on: transaction, whole: true)
        diagnosis.findings = findings.all
        diagnosis.plan = findings.isEmpty ? .nothing : findings.damage.isEmpty ? .rebuild : .recover
        guard findings.damage.isEmpty else { return }
        if seal.kind == .sealed, seal.keys.isEmpty {
          diagnosis.needsSecret =
            "the store is sealed: without its secret it can't be checked whether the saved games can be read"
          return
        }
        diagnosis.unreadable = try unreadableSaves(in: transaction, progress)
        // A backup or an older page may still have the bytes.
        if !diagnosis.unreadable.isEmpty { diagnosis.plan = .recover }
      }
      try queue.close()
    } catch let error as StoreError where error.code == .damaged {
      // The seal's header is damaged, and there is no copy of it beside the database.
      diagnosis.findings.append(error.message)
      diagnosis.plan = .recover
    } catch let error as DatabaseError where error.isDamage {
      diagnosis.findings.append("the database can't be read: \(error.message ?? "damaged")")
      diagnosis.plan = .recover
    } catch let error as DatabaseError {
      throw StoreError(error, doing: "examining the store")
    }
  }

  private func unreadableSaves(in transaction: StoreTransaction, _ progress: (String) -> Void) throws
    -> [UnreadableSave]
  {
    var unreadable: [UnreadableSave] = []
    let isConnected = try transaction.facts().container != nil
    let slots = try transaction.slots()
    for (index, slot) in slots.enumerated() {
      let heads = Set(try transaction.heads(of: slot))
      for version in try transaction.history(of: slot) {
        progress("slot \(index + 1) of \(slots.count)")
        do {
          for hash in version.record.contents { _ = try transaction.plainContent(hash) }
        } catch let error as StoreError where error.code == .damaged || error.code == .missing {
          // A version that another device replaced may never have been downloaded.
          if error.code == .missing, isConnected { continue }
          unreadable.append(
            UnreadableSave(
              slot: slot, version: version.record.id, message: error.message, isHead: heads.contains(version.record.id))
          )
        }
      }
    }
    return unreadable
  }

  /// Repairs what `examine` found. Rows whose seal doesn't verify are kept for the game to judge, by its own policy.
  ///
  /// - Returns: The incidents: what was done, in sentences.
  /// - Throws: `wrongSecret` if the repair needs a secret and none was given.
  package func repair(_ diagnosis: Diagnosis) throws -> [StoreIncident] {
    // First, because they need no secret.
    let records = try RecordsDoctor(folder: files.folder).repair(diagnosis.records)
    return try records + repairStore(diagnosis)
  }

  private func repairStore(_ diagnosis: Diagnosis) throws -> [StoreIncident] {
    var diagnosis = diagnosis
    try Recovery.finishInterrupted(files)
    switch diagnosis.plan {
    case .nothing: return []
    case .recover where diagnosis.recovery == nil && diagnosis.needsSecret == nil:
      // It was the interrupted recovery.
      return [StoreIncident(.recovered, "the interrupted recovery was finished")]
    case .recover:
      guard let gate = try gate(&diagnosis) else {
        throw StoreError(
          .wrongSecret, diagnosis.needsSecret ?? "the store is sealed: it can't be recovered without its secret")
      }
      return [StoreIncident(.recovered, try Recovery(files, gate).run(because: reasons(diagnosis)).message)]
    case .rebuild: return try StoreDatabase.rebuild(files, request)
    }
  }
}
