import BenchmarkKit

/// The figures as text: the same sections on the terminal and in the documents.
struct PreferenceReport: BenchmarkReport {
  let figures: PreferenceFigures

  init(_ figures: PreferenceFigures) { self.figures = figures }

  var isMet: Bool { goals.unmet == nil }

  func write(to documents: Documents) throws { try documents.write(sections, to: ["docs/BENCHMARKS.md"]) }

  private func sets(_ way: Way) -> PreferenceFigures.Sets? { figures.sets.first { $0.way == way.rawValue } }

  var goals: [Goal] {
    guard let ours = sets(.keepsake), let defaults = sets(.defaults), let pool = sets(.pool) else { return [] }
    return [
      Goal(
        what: "setting a preference: times less of the caller's thread than UserDefaults on Linux", must: 200, aim: 400,
        reached: defaults.processorMicroseconds / ours.processorMicroseconds, direction: .atLeast, unit: "x"),
      Goal(
        what: "setting a preference: times less of the caller's thread than a write through GRDB's pool", must: 50,
        aim: 100,
        reached: pool.processorMicroseconds / ours.processorMicroseconds, direction: .atLeast, unit: "x"),
    ]
  }

  var setting: String {
    guard let ours = sets(.keepsake) else { return "" }
    return Format.table(
      ["one set", "caller's thread", "", "until the call returns", "", "with a flush at the end", ""],
      Way.allCases.compactMap { way in
        sets(way).map { row in
          [
            way.title, Format.time(microseconds: row.processorMicroseconds),
            Format.number(row.processorMicroseconds / ours.processorMicroseconds) + "x",
            Format.time(microseconds: row.returnMicroseconds),
            Format.number(row.returnMicroseconds / ours.returnMicroseconds) + "x",
            Format.time(microseconds: row.durableMicroseconds),
            Format.number(row.durableMicroseconds / ours.durableMicroseconds) + "x",
          ]
        }
      })
  }

  var openings: String {
    Format.table(
      ["\(Format.grouped(PreferenceFigures.keys)) keys", "until read"],
      figures.openings.map { [$0.what, Format.time(microseconds: $0.microseconds)] })
  }

  /// By the name that the documents' markers carry.
  var sections: [String: String] {
    [
      "preferencesets": setting, "preferenceopenings": openings, "preferencegoals": goals.table,
      "preferencemachine": figures.machine + ".",
    ]
  }

  var text: String {
    let parts: [String?] = ["", figures.machine, setting, openings, goals.table, goals.unmet]
    return parts.compactMap { $0 }.joined(separator: "\n\n")
  }
}
