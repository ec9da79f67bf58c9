#if Cloud
import ArgumentParser
import Foundation
import Keepsake
import KeepsakeReplication

/// `keepsake assets manifest`: writes the list of a game's assets.
struct AssetsManifestCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "manifest",
    abstract: "Write the manifest of a folder of assets: path, size and SHA-256 of each file.",
    discussion: """
      Run it whenever the folder has changed, before the game is packaged. Names that begin with a dot are left out. \
      Names that can't be loaded on every platform (on Windows, a name with a colon, or the name aux) are refused, and \
      so are symbolic links. The same files give the same manifest, byte for byte.

      With --check, nothing is written, and exit status 1 means that the manifest is not up to date.
      """,
    examples: [
      "keepsake assets manifest Assets --check"
    ])

  /// What `--json` prints.
  struct Answer: Codable, Equatable {
    /// The folder.
    var path: String
    /// The manifest.
    var output: String
    var assetCount: Int
    var bytes: Int64
    /// How many names begin with a dot.
    var hidden: Int
    /// Whether the manifest had to change, or with `--check` would have to.
    var changed: Bool
  }

  @Argument(help: "The folder of the assets.", completion: .directory)
  var folder: String

  @Option(
    name: .shortAndLong, help: "Where to write it; by default \(AssetManifest.fileName) in the folder.",
    completion: .file())
  var output: String?

  @Flag(name: .long, help: "Write nothing; exit with status 1 if the manifest is not up to date.")
  var check = false

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  static let outdated: Int32 = 1

  func run() async throws {
    try await CommandRun.reporting(json: json) {
      let url = try FolderArgument.url(folder)
      let output = self.output ?? FolderArgument.path(of: AssetManifest.fileName, in: folder)
      let target = URL(fileURLWithPath: output)
      try OutputFile.check(output, mayReplace: true)
      let progress = ProgressLine(json: json)
      let made = try AssetManifest.make(of: url, output: target) { progress.update(AssetsText.progress($0)) }
      progress.clear()
      let manifest = made.manifest
      let changed = try !manifest.isWritten(at: target)
      if changed, !check { try manifest.write(to: target) }
      let answer = Answer(
        path: folder, output: output, assetCount: manifest.entries.count, bytes: manifest.bytesInAll,
        hidden: made.hidden, changed: changed)
      if json { try Output.document(answer) } else { Output.text(Printable.text(text(of: answer))) }
      if check, changed { throw ExitCode(Self.outdated) }
    }
  }

  private func text(of answer: Answer) -> String {
    let what = "\(CountText.of(answer.assetCount, "asset")), \(Printable.size(answer.bytes))"
    let hidden = answer.hidden > 0 ? "; \(CountText.of(answer.hidden, "hidden file")) left out" : ""
    let state =
      !answer.changed ? "up to date" : check ? "NOT up to date: run the command without --check to write it" : "written"
    return "\(answer.output): \(state) (\(what)\(hidden))"
  }
}

/// What several commands about assets print.
enum AssetsText {
  static func progress(_ progress: AssetProgress) -> String {
    """
    \(progress.filesDone) of \(CountText.of(progress.filesInAll, "file")), \
    \(Printable.size(progress.bytesDone)) of \(Printable.size(progress.bytesInAll))
    """
  }
}
#endif
