import BenchmarkKit
import Foundation

/// The figures as text: the same sections on the terminal and in the documents.
struct RecordsReport: BenchmarkReport {
  let figures: RecordsFigures

  /// That one changed record is somewhere quicker in records than in a slot.
  var isMet: Bool { hasCrossover }

  func write(to documents: Documents) throws {
    try documents.write(sections, to: ["Sources/Keepsake/Documentation.docc/FilesOrDatabase.md"])
    try documents.draw(CrossoverPlot(figures).svg, to: ["Sources/Keepsake/Documentation.docc/files-or-database.svg"])
  }

  private func table(_ action: RecordsFigures.Action) -> String {
    Format.table(
      ["\(action.title)"] + figures.counts.map(Format.grouped),
      Keeper.Way.allCases.map { way in
        [way == .records ? "**records**" : way.title]
          + figures.counts.map { count in
            figures.microseconds(action, way, count).map { Format.time(microseconds: $0) } ?? "not measured"
          }
      })
  }

  /// The number of records from which `records` is the faster one.
  var crossovers: String {
    Format.table(
      ["records are faster than"] + RecordsFigures.Action.allCases.map(\.shortTitle),
      Keeper.Way.allCases.filter { $0 != .records }.map { way in
        [way.title]
          + RecordsFigures.Action.allCases.map { action in
            guard let count = figures.crossover(action, way) else { return "never" }
            guard let first = figures.counts.first, count > Double(first) else { return "always" }
            return "from \(Format.grouped(Self.rounded(count)))"
          }
      })
  }

  /// To two digits: the times of one run say no more.
  private static func rounded(_ count: Double) -> Int {
    let unit = pow(10, max(log10(count).rounded(.down) - 1, 0))
    return Int((count / unit).rounded() * unit)
  }

  private var sizes: String {
    guard let count = figures.counts.last else { return "" }
    let rows = figures.sizes.filter { $0.count == count }.map { [$0.way.title, Format.mebibytes($0.bytes)] }
    return Format.table(["\(Format.grouped(count)) records", "on the disk"], rows)
  }

  /// By the name that the documents' markers carry.
  var sections: [String: String] {
    [
      "recordscrossover": crossovers, "recordschange": table(.changeOne), "recordschangeall": table(.changeAll),
      "recordsload": table(.loadAll),
      "recordsfind": table(.find), "recordsrange": table(.range), "recordssizes": sizes,
      "recordsmachine": figures.machine + ".",
    ]
  }

  var text: String {
    (["", figures.machine, crossovers] + RecordsFigures.Action.allCases.map(table) + [sizes]).joined(separator: "\n\n")
  }

  /// One changed record is quicker in `records` than all of them in a slot, somewhere within what was measured.
  var hasCrossover: Bool { figures.crossover(.changeOne, .slot) != nil }
}
