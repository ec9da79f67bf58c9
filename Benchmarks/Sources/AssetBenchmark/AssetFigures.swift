import BenchmarkKit
import Foundation

/// What loading ten thousand assets takes, beside reading the same files, in one run.
struct AssetFigures: Codable {
  struct Row: Codable {
    var way: AssetWay
    /// The middle ones.
    var seconds: Double
    /// Nil where the system doesn't tell.
    var extraBytes: Int?
  }

  var machine: String
  var count: Int
  var bytes: Int
  var rows: [Row]

  var budget: Int { bytes / 10 }

  static func measure(count: Int, rounds: Int, machine: String) throws -> AssetFigures {
    let folder = FileManager.default.temporaryDirectory.appending(
      path: "keepsake-assets-\(ProcessInfo.processInfo.processIdentifier)")
    defer {
      // Only leaves a folder behind among the temporary files.
      try? FileManager.default.removeItem(at: folder)
    }
    let maker = AssetFolderMaker(url: folder, count: count)
    Progress.report(
      "assets: \(count) files, \(Format.mebibytes(maker.bytesInAll)), \(rounds) rounds of each way in turns")
    try maker.make()
    var results: [AssetWay: [AssetProbeResult]] = [:]
    // The first round has the system read the files; it doesn't count.
    for round in 0...rounds {
      for way in AssetWay.allCases {
        let output = try Subprocess.run(["--probe", "\(way.rawValue):\(count):\(folder.path)"])
        let result = try JSONDecoder().decode(AssetProbeResult.self, from: output)
        if round > 0 { results[way, default: []].append(result) }
      }
    }
    let rows = AssetWay.allCases.compactMap { way -> Row? in
      guard let all = results[way] else { return nil }
      let extra = all.compactMap(\.extraBytes).sorted()
      return Row(
        way: way, seconds: all.map(\.seconds).sorted()[all.count / 2],
        extraBytes: extra.isEmpty ? nil : extra[extra.count / 2])
    }
    return AssetFigures(machine: machine, count: count, bytes: maker.bytesInAll, rows: rows)
  }
}

/// The figures as text: the same on the terminal and in the documents.
struct AssetTables: BenchmarkReport {
  let figures: AssetFigures

  var isMet: Bool { goals.unmet == nil }

  func write(to documents: Documents) throws { try documents.write(sections, to: ["docs/BENCHMARKS.md"]) }

  private func row(_ way: AssetWay) -> AssetFigures.Row? { figures.rows.first { $0.way == way } }

  var loading: String {
    guard let ours = row(.library) else { return "" }
    return Format.table(
      [
        "\(Format.grouped(figures.count)) assets, \(Format.mebibytes(figures.bytes))", "time", "",
        "peak above what was held before",
      ],
      figures.rows.map { row in
        [
          row.way.title, Format.time(microseconds: row.seconds * 1_000_000),
          Format.number(row.seconds / ours.seconds) + "x",
          row.extraBytes.map(Format.mebibytes) ?? "not measured",
        ]
      })
  }

  var goals: [Goal] {
    guard let ours = row(.library) else { return [] }
    return [
      Goal(
        what: "assets with a budget of a tenth: peak memory, in budgets", must: 1.5, aim: 1.25,
        reached: ours.extraBytes.map { Double($0) / Double(figures.budget) } ?? .infinity, direction: .atMost, unit: "x"
      )
    ]
  }

  /// By the name that the documents' markers carry.
  var sections: [String: String] {
    ["assetloading": loading, "assetgoals": goals.table, "assetmachine": figures.machine + "."]
  }

  var text: String {
    let parts: [String?] = [
      "", figures.machine, "budget: \(Format.mebibytes(figures.budget))", loading, goals.table, goals.unmet,
    ]
    return parts.compactMap { $0 }.joined(separator: "\n\n")
  }
}
