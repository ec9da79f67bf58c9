#if Cloud
import ArgumentParser
import Foundation
import KeepsakeInspection
import KeepsakeStore
import KeepsakeReplication

/// `keepsake doctor`: finds what is wrong with a store, and repairs it.
struct DoctorCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Find, explain and repair damage in a store.",
    discussion: """
      Checks the database, every row, every saved game and the game's own tables (records). Without --repair, it \
      changes nothing and says what a repair would do. A repair deletes nothing: damaged files are moved to the folder \
      "damaged" in the store. The game must not have the store open. Without the game's secret (--secret-file), a \
      sealed store can't be read, and neither a sealed nor a signed one can be recovered. Exit status: 0 if the store \
      is sound or was repaired, 1 if it is not.
      """,
    examples: [
      "keepsake doctor STORE --repair"
    ])

  @Argument(help: "The store's folder, or a folder that keepsake sync syncs.", completion: .directory)
  var store: String

  @OptionGroup var seal: SealOptions

  @Flag(name: .long, help: "Repair the damage that is found.")
  var repair = false

  @OptionGroup var color: ColorOptions

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  func run() async throws {
    try await CommandRun.reporting(json: json, looksInside: true) {
      let progress = ProgressLine(json: json)
      progress.update("opening \(Printable.text(store))")
      let doctor = try StoreDoctor(at: try Self.folder(of: store), seal: seal.request())
      defer { doctor.release() }
      let diagnosis = try doctor.examine { progress.update($0) }
      progress.clear()
      var answer = Answer(store: store, diagnosis)
      if repair, !diagnosis.isSound {
        progress.update("repairing \(Printable.text(store))")
        answer.done = try doctor.repair(diagnosis).map(\.message)
        progress.clear()
        answer.state = .repaired
      }
      if json {
        try Output.document(answer)
      } else {
        Output.text(answer.lines(on: color.terminal).joined(separator: "\n"))
      }
      if answer.state == .damaged { throw ExitCode(VerifyCommand.unsound) }
    }
  }

  /// Returns the folder itself, whatever state its database is in; for a synced folder, the store's folder inside it.
  private static func folder(of path: String) throws -> URL {
    let url = URL(fileURLWithPath: path, isDirectory: true)
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
      throw CommandFailure.nothing(at: path)
    }
    guard isFolder.boolValue else { throw CommandFailure(.data, "\(path) is a file", next: "name the store's folder") }
    let names = [Store.databaseName, "backup-1.sqlite", "backup-2.sqlite", "recovery"]
    if names.contains(where: { FileManager.default.fileExists(atPath: url.appendingPathComponent($0).path) }) {
      return url
    }
    let found = try StoreInput.url(of: path)
    return found.pathExtension == "sqlite" ? found.deletingLastPathComponent() : found
  }

  struct Answer: Encodable {
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
