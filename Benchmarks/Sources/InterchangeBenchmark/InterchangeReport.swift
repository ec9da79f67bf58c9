import BenchmarkKit

/// The figures as text: the same sections on the terminal and in the documents.
struct InterchangeReport: BenchmarkReport {
  let figures: InterchangeFigures

  init(_ figures: InterchangeFigures) { self.figures = figures }

  var isMet: Bool { goals.unmet == nil }

  func write(to documents: Documents) throws { try documents.write(sections, to: ["docs/BENCHMARKS.md"]) }

  /// Foundation is what games used: whoever comes from there must not wait longer.
  var goals: [Goal] {
    figures.rows.map { row in
      Goal(
        what: "\(row.what): times as fast as Foundation", must: 1, aim: 2, reached: row.ratio, direction: .atLeast,
        unit: "x")
    }
  }

  var table: String {
    Format.table(
      ["", "bytes", "Keepsake", "Foundation", ""],
      figures.rows.map { row in
        [
          row.what, Format.grouped(row.bytes), Format.time(microseconds: row.microseconds),
          Format.time(microseconds: row.foundationMicroseconds), Format.number(row.ratio) + "x",
        ]
      })
  }

  /// By the name that the documents' markers carry.
  var sections: [String: String] {
    ["interchange": table, "interchangegoals": goals.table, "interchangemachine": figures.machine + "."]
  }

  var text: String {
    let parts: [String?] = ["", figures.machine, table, goals.table, goals.unmet]
    return parts.compactMap { $0 }.joined(separator: "\n\n")
  }
}
