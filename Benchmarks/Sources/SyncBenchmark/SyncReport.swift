import BenchmarkKit

/// The figures as text: the same sections on the terminal and in the documents.
struct SyncReport: BenchmarkReport {
  let figures: SyncFigures

  init(_ figures: SyncFigures) { self.figures = figures }

  var isMet: Bool { goals.unmet == nil }

  func write(to documents: Documents) throws { try documents.write(sections, to: ["docs/BENCHMARKS.md"]) }

  var goals: [Goal] {
    guard let readable = figures.readable, let bare = figures.bare, figures.readableElsewhere == nil else { return [] }
    let patch = figures.patches.map { Double($0.bytesUp) / Double($0.patchBytes) }.max() ?? .infinity
    let rounds = figures.absences.map(\.wire.exchanges).max().map(Double.init) ?? .infinity
    return [
      Goal(
        what: "a save readable on another device: times as long as a bare exchange, median", must: 3, aim: 2,
        reached: readable.median / bare.median, direction: .atMost, unit: "x"),
      Goal(
        what: "the same, 99th percentile", must: 3, aim: 2, reached: readable.highest / bare.highest,
        direction: .atMost, unit: "x"),
      Goal(
        what: "1 % of 10 MB changed: bytes on the wire, times zstd's patch, the worst of four ways", must: 1.5,
        aim: 1.1, reached: patch,
        direction: .atMost, unit: "x"),
      Goal(
        what: "a month away: exchanges until all is caught up, the worst", must: 3, aim: 2, reached: rounds,
        direction: .atMost, unit: ""),
    ]
  }

  var convergence: String {
    guard let readable = figures.readable, let bare = figures.bare else { return "" }
    func row(_ what: String, _ times: SyncFigures.Times) -> [String] {
      [
        what, Format.time(microseconds: times.median), Format.number(times.median / bare.median) + "x",
        Format.time(microseconds: times.highest),
        Format.number(times.highest / bare.highest) + "x",
      ]
    }
    return Format.table(
      [
        "\(Format.grouped(figures.saves)) saves, \(Format.grouped(figures.requestBytes)) bytes each", "median", "",
        "99th percentile", "",
      ],
      [
        row("from `save` returning to readable on the other device", readable),
        figures.readableElsewhere.map { row("the same, with the devices at two servers over one database", $0) },
        row("a bare exchange of the same bytes", bare),
      ].compactMap { $0 })
  }

  var patches: String {
    Format.table(
      ["10 MB", "sent", "", "received by the other", "", "zstd -3 --patch-from"],
      figures.patches.map { patch in
        func times(_ bytes: Int) -> String { Format.number(Double(bytes) / Double(patch.patchBytes)) + "x" }
        return [
          patch.change.title, Format.grouped(patch.bytesUp), times(patch.bytesUp), Format.grouped(patch.bytesDown),
          times(patch.bytesDown),
          Format.grouped(patch.patchBytes),
        ]
      })
  }

  var absences: String {
    Format.table(
      [
        "\(Format.grouped(figures.autosaves)) autosaves, \(Format.grouped(figures.keys)) values", "exchanges", "puts",
        "gets", "bytes up",
        "bytes down", "time",
      ],
      figures.absences.map { row in
        [
          row.what, "\(row.wire.exchanges)", "\(row.wire.puts)", "\(row.wire.gets)", Format.grouped(row.wire.bytesUp),
          Format.grouped(row.wire.bytesDown),
          Format.time(microseconds: row.seconds * 1_000_000),
        ]
      })
  }

  /// By the name that the documents' markers carry.
  var sections: [String: String] {
    if figures.readableElsewhere != nil { return ["syncnodes": convergence] }
    return [
      "syncconvergence": convergence, "syncpatches": patches, "syncabsences": absences, "syncgoals": goals.table,
      "syncmachine": figures.machine + ".",
    ]
  }

  var text: String {
    let parts: [String?] =
      figures.readableElsewhere != nil
      ? ["", figures.machine, convergence]
      : ["", figures.machine, convergence, patches, absences, goals.table, goals.unmet]
    return parts.compactMap { $0 }.joined(separator: "\n\n")
  }
}
