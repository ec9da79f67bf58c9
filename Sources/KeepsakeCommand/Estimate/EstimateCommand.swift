#if Cloud
import ArgumentParser
import Foundation

/// `keepsake estimate`: shows how much the versions of real saves would take in a store.
struct EstimateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "estimate",
    abstract: "Show what keeping every version of your own saves would cost.",
    discussion: """
      Saves a series of files to a temporary store, one version after another, and shows how many bytes all of them \
      take and how long the newest and the oldest take to load. For comparison, it shows the minimum that deltas could \
      take (one zstd frame, and each later version as a delta against the one before) and the time to load a version \
      that is stored alone. Your files are not changed.

      Files that you name form one series, in the order given. In a folder, files whose names differ only in their \
      last number form one. What can't be read there is skipped and listed, and the exit status says why; a store is \
      left out.
      """,
    examples: [
      "keepsake estimate ~/old-saves"
    ])

  @Argument(help: "Versions of a save, or folders that contain them.", completion: .file())
  var paths: [String]

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  private struct Answer: Encodable {
    var series: [SeriesEstimate]
    var unreadable: [SkippedEntry]
  }

  func run() async throws {
    try await CommandRun.reporting(json: json) {
      let progress = ProgressLine(json: json)
      progress.update("looking for versions of saves")
      let found = try SaveSeries.find(paths)
      let estimates = try found.series.map { series in try SeriesEstimate(of: series) { progress.update($0) } }
      progress.clear()
      if json {
        try Output.document(Answer(series: estimates, unreadable: found.skipped))
      } else {
        Output.text(SeriesEstimate.table(estimates, on: .standardOutput()))
        for entry in found.skipped { Output.text(entry.line) }
      }
      if let status = found.skipped.map(\.failure.kind.rawValue).max() { throw ExitCode(status) }
    }
  }
}
#endif
