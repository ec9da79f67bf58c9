import BenchmarkKit
import GameWorlds

/// The figures as text: the same sections on the terminal and in the documents.
struct Report: BenchmarkReport {
  let figures: Figures

  var isMet: Bool { figures.goals.allSatisfy(\.meetsMust) }

  func write(to documents: Documents) throws {
    try documents.write(
      sections, to: ["docs/BENCHMARKS.md", "README.md", "Sources/Keepsake/Documentation.docc/Speed.md"])
    try documents.draw(
      Plot(figures).svg, to: ["docs/archive-speed.svg", "Sources/Keepsake/Documentation.docc/archive-speed.svg"])
  }

  static let note =
    """
    Times are the best of interleaved rounds in one run; outputs are fresh each time and released off the clock. A \
    ratio above 1 is how many times Keepsake's figure it is.
    """

  /// The figures that one sentence holds: the dungeon, and the card, where a peer is ahead. Lines stay below 120
  /// characters.
  var summary: String {
    let (dungeon, card) = (DungeonGroup.name, CardGroup.name)
    return """
      A dungeon of 10,000 heroes with 40,000 items is encoded in \(cell(dungeon, "encode", "Keepsake")) and decoded in \
      \(cell(dungeon, "decode", "Keepsake")).
      JSON takes \(times(dungeon, "JSON")) times as long, swift-protobuf \(times(dungeon, "swift-protobuf")) times,
      C++ written by hand for the same bytes \(times(dungeon, "by hand, C++")) times.
      One card of five fields takes \(cell(card, "encode", "Keepsake")), \(cell(card, "decode", "Keepsake")) and \
      \(cell(card, "bytes", "Keepsake")) bytes:
      swift-protobuf takes \(times(card, "swift-protobuf")) times as long, and \
      \(cell(card, "bytes", "swift-protobuf").dropLast()) times the bytes.
      """
  }

  /// "11.1 and 4.21": how many times as long an encoder takes as Keepsake, to encode and to decode.
  private func times(_ group: String, _ encoder: String) -> String {
    "\(cell(group, "encode", encoder).dropLast()) and \(cell(group, "decode", encoder).dropLast())"
  }

  /// Everyone as multiples of Keepsake, for those who read one table only.
  var ratios: String { table([DungeonGroup.name, KingdomGroup.name]) }

  /// The same for what is so small that the call itself counts.
  var small: String { table([HeroGroup.name, CardGroup.name]) }

  private func table(_ groups: [String]) -> String {
    let columns = groups.flatMap {
      [($0, "encode", "\($0): encode"), ($0, "decode", "decode"), ($0, "bytes", "bytes")]
    }
    var encoders: [String] = []
    for measurement in figures.measurements
    where groups.contains(measurement.group) && !encoders.contains(measurement.encoder) {
      encoders.append(measurement.encoder)
    }
    encoders.sort { order($0, groups[0]) < order($1, groups[0]) }
    let rows = encoders.map { encoder in
      [encoder == "Keepsake" ? "**Keepsake**" : encoder]
        + columns.map { group, action, _ in cell(group, action, encoder) }
    }
    return Format.table([""] + columns.map(\.2), rows)
  }

  private func order(_ encoder: String, _ group: String) -> Double {
    if encoder == "Keepsake" { return -1 }
    return figures.measurement(group, encoder, "encode")?.bestMicroseconds ?? .infinity
  }

  private func cell(_ group: String, _ action: String, _ encoder: String) -> String {
    guard let theirs = figures.measurement(group, encoder, action == "bytes" ? "encode" : action),
      let ours = figures.measurement(group, "Keepsake", action == "bytes" ? "encode" : action)
    else { return "" }
    if action == "bytes" {
      guard let bytes = theirs.bytes, let base = ours.bytes, encoder != "memcpy" else { return "" }
      return encoder == "Keepsake" ? Format.grouped(bytes) : Format.number(Double(bytes) / Double(base)) + "x"
    }
    if encoder == "Keepsake" { return Format.time(microseconds: theirs.bestMicroseconds) }
    return Format.number(theirs.bestMicroseconds / ours.bestMicroseconds) + "x"
  }

  var goals: String { ([figures.goals.table] + warmTiles).joined(separator: "\n\n") }

  /// Fresh memory makes memcpy look slow, so the other figure stands beside the goal.
  private var warmTiles: [String] {
    let ratios = TilesGroup.kinds.flatMap { kind in
      ["encode", "decode"].compactMap {
        figures.ratio("\(TilesGroup.name) \(kind), \(TilesGroup.warm)", $0, of: "memcpy", to: "Keepsake")
      }
    }
    guard let least = ratios.min(), let most = ratios.max() else { return [] }
    return [
      """
      The goals for tiles are about fresh memory, where most of the time goes into new pages, for memcpy as well. In \
      memory that is used again, Keepsake takes \(Format.number(least)) to \(Format.number(most)) times as long as \
      memcpy.
      """
    ]
  }

  /// Every figure, group by group.
  var raw: String {
    var groups: [String] = []
    for measurement in figures.measurements where !groups.contains(measurement.group) {
      groups.append(measurement.group)
    }
    let rows = groups.flatMap { group in
      figures.measurements.filter { $0.group == group }.map { row in
        [
          group, row.action, row.encoder, Format.microseconds(row.bestMicroseconds),
          Format.microseconds(row.medianMicroseconds),
          "\(row.samples)", row.bytes.map(Format.grouped) ?? "", row.zstdBytes.map(Format.grouped) ?? "",
        ]
      }
    }
    return Format.table(["", "", "", "best µs", "median µs", "samples", "bytes", "zstd -1"], rows, left: [1, 2])
  }

  var memory: String {
    Format.table(
      ["", "value", "bytes", "peak above what was held before"],
      figures.memory.map {
        [
          $0.name, $0.valueBytes.map(Format.mebibytes) ?? "", Format.grouped($0.archiveBytes),
          Format.mebibytes($0.extraBytes),
        ]
      })
  }

  var machine: String {
    ([figures.machine + "; \(figures.rounds) rounds."] + figures.remarks).joined(separator: " ")
  }

  /// By the name that the documents' markers carry.
  var sections: [String: String] {
    var sections = [
      "summary": summary, "ratios": ratios, "small": small, "goals": goals, "figures": raw, "machine": machine,
    ]
    sections["memory"] = figures.memory.isEmpty ? "Not measured on this system." : memory
    return sections
  }

  var text: String {
    var parts = ["", machine, Self.note]
    if !figures.measurements.isEmpty { parts.append(raw) }
    if !figures.memory.isEmpty { parts.append(memory) }
    if figures.measurement(DungeonGroup.name, "Keepsake", "encode") != nil { parts.append(ratios) }
    if figures.measurement(HeroGroup.name, "Keepsake", "encode") != nil { parts.append(small) }
    if !figures.goals.isEmpty { parts.append(goals) }
    if let unmet = figures.goals.unmet { parts.append(unmet) }
    return parts.joined(separator: "\n\n") + "\n"
  }
}
