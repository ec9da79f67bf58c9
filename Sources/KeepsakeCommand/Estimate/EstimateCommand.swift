#if Cloud
import ArgumentParser
import Foundation

/// `keepsake estimate`: shows how much the versions of real saves would take in a store.
struct EstimateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "estimate",
    abstract: "Show what keeping every version of your own saves would take.",
    discussion: """
      Keeps a series of saves in a store made for that, version after version, and tells how many bytes all of them take and how long \
      the newest and the oldest take to load. Beside it stand the least that deltas could take (one zstd frame, and each later \
      version against the one before) and the time of loading a version that stands alone. Nothing of yours is changed.

      Files that are named form one series, in that order. In a folder, files whose names differ in their last number form one.
      """)

  @Argument(help: "Versions of a save, or folders with such.", completion: .file())
  var paths: [String]

  @Flag(name: .long, help: "Print JSON.")
  var json = false

  func run() async throws {
    try await CommandRun.reporting(json: json) {
      let series = try SaveSeries.find(paths)
      let progress = ProgressLine(quiet: false)
      let estimates = try series.map { series in try SeriesEstimate(of: series) { progress.update($0) } }
      progress.clear()
      if json { try Output.document(estimates) } else { Output.text(SeriesEstimate.table(estimates)) }
    }
  }
}
#endif
