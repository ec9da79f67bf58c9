#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore

/// What `keepsake doctor --json` prints.
struct DoctorReport: Encodable {
  struct Finding: Encodable {
    var message: String
  }
  /// A saved game that can't be read.
  struct Unreadable: Encodable {
    var slot: String
    var version: String
    var message: String
    /// Whether the slot currently shows this version.
    var head: Bool
  }
  /// What a recovery finds.
  struct Found: Encodable {
    var reasons: [String]
    var versionCount: Int
    var valueCount: Int
    var contentCount: Int
    var lostSaveCount: Int
    /// Slots that show an older save.
    var steppedBack: [String]
    /// What happens to the wallet, if it has to be rebuilt.
    var walletMessage: String?
    var damagedFolder: String
  }
  /// What a recovery of the game's own tables finds.
  struct FoundRecords: Encodable {
    var reasons: [String]
    /// `backup`, `rows` or `nothing`.
    var source: String
    /// When the backup was made.
    var backup: String?
    var backupMilliseconds: Int64?
    var tableCount: Int
    var rowCount: Int
    /// What is lost, in sentences.
    var lost: [String]
    var complete: Bool
    var damagedFolder: String
  }
  var path: String
  var state: DoctorCommand.Answer.State
  var findings: [Finding]
  var unreadable: [Unreadable]
  /// `nothing`, `rebuild` or `recover`.
  var plan: String
  var needsSecret: String?
  var recovery: Found?
  var recordsPlan: String
  var recordsRecovery: FoundRecords?
  var done: [String]
}

extension DoctorCommand.Answer {
  /// The answer for programs.
  var report: DoctorReport {
    DoctorReport(
      path: path, state: state, findings: findings.map { .init(message: $0) },
      unreadable: unreadable.map {
        .init(
          slot: SlotName.shown($0.slot), version: $0.version.description, message: $0.message, head: $0.isHead)
      },
      plan: plan.rawValue, needsSecret: needsSecret,
      recovery: recovery.map {
        .init(
          reasons: $0.reasons, versionCount: $0.versions, valueCount: $0.values, contentCount: $0.contents,
          lostSaveCount: $0.lostSaves, steppedBack: $0.steppedBack.map(SlotName.shown), walletMessage: $0.wallet,
          damagedFolder: $0.damagedFolder)
      },
      recordsPlan: recordsPlan.rawValue,
      recordsRecovery: recordsRecovery.map { found in
        let milliseconds = found.backupDate.map { Int64(($0.timeIntervalSince1970 * 1_000).rounded()) }
        return .init(
          reasons: found.reasons, source: found.source.rawValue,
          backup: milliseconds.map(TimeText.iso(milliseconds:)), backupMilliseconds: milliseconds,
          tableCount: found.tables, rowCount: found.rows, lost: found.losses, complete: found.isComplete,
          damagedFolder: found.damagedFolder)
      },
      done: done)
  }
}
#endif
