#if Cloud
import ArgumentParser
import Foundation
import Keepsake

/// `keepsake assets verify`: compares every asset with the manifest.
struct AssetsVerifyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Compare every asset with the manifest: missing, damaged, stale and extra files.",
    discussion: """
      Reads and hashes every asset, and changes nothing. Exit status 1 if one is missing, damaged, stale or \
      unreadable. Extra files are reported but do no harm: a game never loads them.
      """,
    examples: [
      "keepsake assets verify Assets"
    ])

  @Argument(help: "The folder of the assets.", completion: .directory)
  var folder: String

  @Option(name: .long, help: "The manifest; by default \(AssetManifest.fileName) in the folder.", completion: .file())
  var manifest: String?

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  static let unsound: Int32 = 1

  /// What `--json` prints.
  struct Answer: Encodable {
    enum State: String, Encodable {
      case sound, damaged
    }
    struct Finding: Encodable {
      /// The file in the folder.
      var path: String
      var state: AssetReport.Kind
      var message: String
    }
    /// The folder.
    var path: String
    var manifest: String
    /// Extra files don't count.
    var state: State
    var assetCount: Int
    /// How many of the assets were hashed.
    var hashedCount: Int
    var findings: [Finding]
  }

  func run() async throws {
    try await CommandRun.reporting(json: json) {
      let source = manifest.map { AssetLibrary.ManifestSource.file(URL(fileURLWithPath: $0)) }
      // Nothing is kept in memory: files are hashed piece by piece.
      let library = try AssetLibrary(
        at: FolderArgument.url(folder), manifest: source ?? .required, budget: 0)
      let report = try check(library)
      if json { try Output.document(answer(report)) } else { Output.text(report.description) }
      guard report.isSound else { throw ExitCode(Self.unsound) }
    }
  }

  private func answer(_ report: AssetReport) -> Answer {
    Answer(
      path: folder, manifest: manifest ?? FolderArgument.path(of: AssetManifest.fileName, in: folder),
      state: report.isSound ? .sound : .damaged, assetCount: report.assets, hashedCount: report.hashed,
      findings: report.findings.map { .init(path: $0.path, state: $0.kind, message: $0.message) })
  }

  /// Not in a task of its own: the command has nothing else to do meanwhile.
  private func check(_ library: AssetLibrary) throws -> AssetReport {
    let progress = ProgressLine(json: json)
    defer { progress.clear() }
    return try library.check(.full) { progress.update(AssetsText.progress($0)) }
  }
}
#endif
