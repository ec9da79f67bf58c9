#if Cloud
import ArgumentParser
import Foundation
import KeepsakeInspection
import KeepsakeReplication

/// `keepsake verify`: checks whether saves are sound.
struct VerifyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Check archives, exported saves and stores: checksums, structure, every value.",
    discussion: """
      Checks archives, exported saves, stores, and folders of them, including all subfolders; other files in a folder \
      are skipped, and one that is named is foreign. Nothing is changed, and a game may have a store open. Exit \
      status: 0 if all are sound, 1 if any is damaged, otherwise 65 if one is foreign, and the status of the failure \
      if one can't be read at all.
      """,
    examples: [
      "keepsake verify ~/.local/share",
      "keepsake verify before.save after.save",
    ])

  @Argument(help: "Archives, exported saves, stores, or folders.", completion: .file())
  var paths: [String]

  @OptionGroup var seal: SealOptions

  @OptionGroup var color: ColorOptions

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  static let unsound: Int32 = 1

  func run() async throws {
    try await CommandRun.reporting(json: json, looksInside: true) {
      let progress = ProgressLine(json: json)
      progress.update("looking for archives and stores")
      let terminal = color.terminal
      let report = try Verification.run(
        on: paths, seal: seal.request(),
        progress: { progress.update($0) },
        each: { verdict in
          guard !json else { return }
          progress.clear()
          Output.text(verdict.line(on: terminal))
        })
      progress.clear()
      guard !report.files.isEmpty else {
        let others = report.skipped == 0 ? "" : ", only \(CountText.of(report.skipped, "other file"))"
        throw CommandFailure(
          .noInput, "no archive or store was found in what was named\(others)", next: "name the folder of the saves")
      }
      if json { try Output.document(report) } else { Output.text(report.summary) }
      guard report.status == 0 else { throw ExitCode(report.status) }
    }
  }
}
#endif
