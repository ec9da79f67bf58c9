import BenchmarkKit
import GameWorlds

/// The figures as text: the same sections on the terminal and in the documents.
struct StoreReport: BenchmarkReport {
  let figures: StoreFigures

  init(_ figures: StoreFigures) { self.figures = figures }

  var isMet: Bool { goals.unmet == nil }

  func write(to documents: Documents) throws { try documents.write(sections, to: ["docs/BENCHMARKS.md"]) }

  private func save(_ way: DungeonSaves.Way) -> StoreFigures.Save? { figures.saves.first { $0.way == way.rawValue } }

  var goals: [Goal] {
    var goals: [Goal] = []
    if let ours = save(.keepsake), let json = save(.json) {
      goals.append(
        Goal(
          what: "durable save of a world with 1 % changed: times less of the processor than JSON", must: 30, aim: 60,
          reached: json.processorMicroseconds / ours.processorMicroseconds, direction: .atLeast, unit: "x"))
      goals.append(
        Goal(
          what: "durable save: waits on the disk", must: 1.05, aim: 1, reached: ours.syncs ?? .infinity,
          direction: .atMost, unit: ""))
    }
    goals.append(
      Goal(
        what: "capture while commits run: 99.9th percentile, in milliseconds", must: 8.3, aim: 4,
        reached: figures.capture.perMilleMicroseconds / 1_000, direction: .atMost, unit: " ms"))
    if let ordinary = figures.openings.first {
      goals.append(
        Goal(
          what: "opening a store of \(ordinary.size): milliseconds of the processor", must: 100, aim: 50,
          reached: ordinary.processorMicroseconds / 1_000, direction: .atMost, unit: " ms"))
    }
    if let growth = figures.slots.growth(.keepsake) {
      goals.append(
        Goal(
          what: "a save among 10,000 slots: times the processor's time of one among 1,000", must: 1.5, aim: 1.1,
          reached: growth, direction: .atMost, unit: "x"))
    }
    return goals
  }

  var saves: String {
    guard let ours = save(.keepsake) else { return "" }
    return Format.table(
      ["", "processor", "", "until durable", "waits on the disk"],
      DungeonSaves.Way.allCases.compactMap { way in
        save(way).map { row in
          [
            way.title, Format.time(microseconds: row.processorMicroseconds),
            Format.number(row.processorMicroseconds / ours.processorMicroseconds) + "x",
            Format.time(microseconds: row.wallMicroseconds),
            row.syncs.map(Format.number) ?? "not counted",
          ]
        }
      })
  }

  var captures: String {
    let capture = figures.capture
    return Format.table(
      ["captures at 120 a second", "median", "99.9th percentile", "worst"],
      [
        [
          Format.grouped(capture.count), Format.time(microseconds: capture.medianMicroseconds),
          Format.time(microseconds: capture.perMilleMicroseconds), Format.time(microseconds: capture.worstMicroseconds),
        ]
      ])
  }

  var openings: String {
    var sizes: [String] = []
    for opening in figures.openings where !sizes.contains(opening.size) { sizes.append(opening.size) }
    return Format.table(
      ["opening", "until open: no seal", "signed", "sealed", "processor: no seal", "signed", "sealed"],
      sizes.map { size in
        let row = OpenedStore.Sealing.allCases.compactMap { sealing in
          figures.openings.first { $0.size == size && $0.sealing == sealing.rawValue }
        }
        return [size] + row.map { Format.time(microseconds: $0.wallMicroseconds) }
          + row.map { Format.time(microseconds: $0.processorMicroseconds) }
      })
  }

  var slots: String {
    Format.table(
      ["slots", "", "save", "processor", "save again", "list, per slot", "load"],
      figures.slots.many.map { row in
        [
          Format.grouped(row.count), SlotWay(rawValue: row.way)?.title ?? row.way,
          Format.time(microseconds: row.saveMicroseconds), Format.time(microseconds: row.saveProcessorMicroseconds),
          Format.time(microseconds: row.saveAgainMicroseconds), Format.time(microseconds: row.listMicroseconds),
          Format.time(microseconds: row.loadMicroseconds),
        ]
      }, left: [1])
  }

  var tasks: String {
    Format.table(
      ["tasks that save at once", "", "until all are durable", "processor", "waits on the disk"],
      figures.slots.together.map { row in
        [
          Format.grouped(row.tasks), SlotWay(rawValue: row.way)?.title ?? row.way,
          Format.time(microseconds: row.wallMicroseconds), Format.time(microseconds: row.processorMicroseconds),
          row.syncs.map(Format.grouped) ?? "not counted",
        ]
      }, left: [1])
  }

  var scores: String {
    Format.table(
      [
        "scores on the board", "submit: to its return", "durable", "top 10", "rank of the middle", "best of a player",
        "opening: no seal", "sealed",
        "on disk",
      ],
      figures.scores.map { row in
        [
          Format.grouped(row.count), Format.time(microseconds: row.submitMicroseconds),
          Format.time(microseconds: row.durableMicroseconds),
          Format.time(microseconds: row.topMicroseconds), Format.time(microseconds: row.rankMicroseconds),
          Format.time(microseconds: row.bestMicroseconds), Format.time(microseconds: row.openingMicroseconds),
          Format.time(microseconds: row.sealedOpeningMicroseconds), Format.mebibytes(row.bytes),
        ]
      })
  }

  var scoreLists: String {
    Format.table(
      ["scores in the list", "submit: sorted and written", "times Keepsake's durable one", "opening: read", "on disk"],
      figures.scores.compactMap { row in
        row.list.map { list in
          [
            Format.grouped(row.count), Format.time(microseconds: list.submitMicroseconds),
            Format.number(list.submitMicroseconds / row.durableMicroseconds) + "x",
            Format.time(microseconds: list.openingMicroseconds),
            Format.mebibytes(list.bytes),
          ]
        }
      })
  }

  var memory: String {
    guard let memory = figures.memory else { return "Not measured on this system." }
    return Format.table(
      ["value", "save: peak above what was held before", "load"],
      [
        [
          Format.mebibytes(memory.valueBytes), Format.mebibytes(memory.saveExtraBytes),
          Format.mebibytes(memory.loadExtraBytes),
        ]
      ])
  }

  /// By the name that the documents' markers carry.
  var sections: [String: String] {
    var sections: [String: String] = [:]
    if !figures.scores.isEmpty { sections.merge(["storescores": scores, "storescorelists": scoreLists]) { $1 } }
    if !figures.slots.many.isEmpty { sections.merge(["storeslots": slots, "storetasks": tasks]) { $1 } }
    guard !figures.saves.isEmpty else { return sections }
    return sections.merging([
      "storesaves": saves, "storecaptures": captures, "storeopenings": openings, "storememory": memory,
      "storegoals": goals.table, "storemachine": figures.machine + ".",
    ]) { $1 }
  }

  var text: String {
    var parts: [String?] = ["", figures.machine]
    if !figures.saves.isEmpty { parts += [saves, captures, openings] }
    if !figures.slots.many.isEmpty { parts += [slots, tasks] }
    if !figures.scores.isEmpty { parts += [scores, scoreLists] }
    if !figures.saves.isEmpty { parts.append(memory) }
    return (parts + [goals.isEmpty ? nil : goals.table, goals.unmet]).compactMap { $0 }.joined(separator: "\n\n")
  }
}
