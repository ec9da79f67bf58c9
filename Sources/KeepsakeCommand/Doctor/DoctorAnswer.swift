#if Cloud
import Foundation
import KeepsakeInspection
import KeepsakeReplication
import KeepsakeStore

extension DoctorCommand {
  /// What is wrong with a store, and what was done about it.
  struct Answer {
    enum State: String, Encodable {
      case sound, damaged, repaired
    }
    var path: String
    var state: State
    /// What is wrong with the database.
    var findings: [String]
    /// Saved games that can't be read.
    var unreadable: [StoreDoctor.UnreadableSave]
    /// What a repair would do.
    var plan: StoreDoctor.Plan
    /// What can't be checked or repaired without the game's secret.
    var needsSecret: String?
    /// What a recovery would find, if one is planned.
    var recovery: Recovery.Report?
    /// What a repair would do with the game's own tables.
    var recordsPlan: StoreDoctor.Plan
    var recordsRecovery: RecordsRecovery.Report?
    /// What a repair did.
    var done: [String] = []

    init(store: String, _ diagnosis: StoreDoctor.Diagnosis) {
      path = store
      state = diagnosis.isSound ? .sound : .damaged
      findings = diagnosis.findings + diagnosis.recordsFindings
      (recordsPlan, recordsRecovery) = (diagnosis.recordsPlan, diagnosis.recordsRecovery)
      unreadable = diagnosis.unreadable
      plan = diagnosis.plan
      recovery = diagnosis.recovery
      needsSecret = diagnosis.needsSecret
    }

    var lines: [String] { lines(on: .plain) }

    func lines(on terminal: Terminal) -> [String] {
      let (sound, damaged, repaired) = (
        terminal.paint("sound", .good), terminal.paint("damaged", .bad), terminal.paint("repaired", .good)
      )
      let secret = needsSecret.map { ["not checked: " + Printable.text($0) + " (--secret-file)"] } ?? []
      if state == .sound {
        return ["\(sound): the database" + (secret.isEmpty ? ", every row and every saved game" : "")] + secret
      }
      var lines = findings.map { "\(damaged): " + Printable.text($0) }
      for save in unreadable {
        let which = save.isHead ? "the current save of" : "an older save of"
        lines.append(
          """
          \(terminal.paint("unreadable", .bad)): \(which) \(Printable.text(save.slot)), version \(save.version): \
          \(Printable.text(save.message))
          """)
      }
      lines += secret
      if state == .repaired { return lines + done.map { "\(repaired): " + Printable.text($0) } }
      switch plan {
      case .nothing: break
      case .rebuild: lines.append("a repair would rebuild what is derived from the saves; nothing would be lost")
      case .recover:
        if let recovery {
          lines.append(
            """
            a repair would move \(CountText.of(recovery.versions, "save")) and \
            \(CountText.of(recovery.values, "value")) to a new database and the damaged files to the folder \
            "damaged"; the contents of \(CountText.of(recovery.lostSaves, "save")) were not found anywhere
            """)
          for slot in recovery.steppedBack {
            lines.append("  \(Printable.text(slot)) would show an older save: the newest is lost")
          }
        }
      }
      switch recordsPlan {
      case .nothing: break
      case .rebuild: lines.append("a repair would rebuild indexes of the records; nothing would be lost")
      case .recover:
        if let recordsRecovery {
          lines.append(
            """
            a repair would move the damaged records to the folder "damaged" and replace them with \
            \(Printable.text(recordsRecovery.outcome))
            """)
        }
      }
      return lines + ["nothing was changed; keepsake doctor --repair \(Quoted.shell(path)) repairs it"]
    }
  }
}
#endif
