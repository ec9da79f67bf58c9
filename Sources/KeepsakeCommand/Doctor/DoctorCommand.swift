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
        try Output.document(answer.report)
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
}
#endif
