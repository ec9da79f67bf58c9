import BenchmarkKit
import Foundation
import GameWorlds

/// One run: the groups that were asked for, then the report.
struct Benchmark {
  let options: Options

  init(_ options: Options) { self.options = options }

  /// Whether everything that must be reached was.
  func run() throws -> Bool {
    guard Self.groups.contains(where: wants) else {
      throw UsageError(message: "No group's name contains \(options.filter): \(Self.groups.joined(separator: ", "))")
    }
    let machine = Machine.line(compiler: options.compiler)
    Progress.tell(machine)
    var runner = Runner(rounds: options.rounds, figures: Figures(machine: machine, rounds: options.rounds))
    if options.filter == TilesGroup.name {
      try TilesGroup.run(&runner)
    } else if wants(TilesGroup.name) {
      runner.figures.measurements += try TilesGroup.runApart(rounds: options.rounds)
    }
    if wants(DungeonGroup.name) {
      try runner.measure(
        DungeonGroup.name, DungeonGroup.tasks(protobufLibrary: options.protobuf, remarks: &runner.figures.remarks))
    }
    if wants(KingdomGroup.name) { try runner.measure(KingdomGroup.name, KingdomGroup.tasks()) }
    if wants(HeroGroup.name) { try runner.measure(HeroGroup.name, HeroGroup.tasks()) }
    if wants(CardGroup.name) { try runner.measure(CardGroup.name, CardGroup.tasks()) }
    if wants(KeyedGroup.name) { try runner.measure(KeyedGroup.name, rounds: KeyedGroup.rounds, KeyedGroup.tasks()) }
    if wants(CaptureGroup.name) { try CaptureGroup.withTask { try runner.measure(CaptureGroup.name, [$0]) } }
    if wants(MemoryProbe.group) { runner.figures.memory = try MemoryProbe.measureAll() }
    if runner.busyPercent >= Self.worthTelling {
      runner.figures.remarks.append("The machine was busy: others had the processor for \(runner.busyPercent) % of the time.")
    }
    let figures = runner.figures
    if options.json {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
      FileHandle.standardOutput.write(try encoder.encode(figures) + Data("\n".utf8))
    } else {
      FileHandle.standardOutput.write(Data(Report(figures: figures).text.utf8))
    }
    if let root = options.root {
      let documents = Documents(root: root)
      try documents.write(
        Report(figures: figures).sections, to: ["docs/BENCHMARKS.md", "README.md", "Sources/Keepsake/Documentation.docc/Speed.md"])
      try documents.draw(Plot(figures).svg, to: ["docs/archive-speed.svg", "Sources/Keepsake/Documentation.docc/archive-speed.svg"])
    }
    return figures.goals.allSatisfy(\.meetsMust)
  }

  /// Less disturbs no figure.
  private static let worthTelling = 5

  private static let groups = [
    TilesGroup.name, DungeonGroup.name, KingdomGroup.name, HeroGroup.name, CardGroup.name, KeyedGroup.name, CaptureGroup.name, MemoryProbe.group,
  ]

  private func wants(_ group: String) -> Bool { options.filter.isEmpty || group.contains(options.filter) }
}
