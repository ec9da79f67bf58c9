import BenchmarkKit
import Foundation
import GameWorlds

/// One run: the groups that were asked for, then the report.
struct Benchmark {
  /// Only groups whose names contain it.
  let filter: String
  let rounds: Int
  /// The library with Protocol Buffers' C++ encoder.
  let protobuf: String?
  let machine: String

  func run() throws -> Figures {
    guard Self.groups.contains(where: wants) else {
      throw UsageError(message: "No group's name contains \(filter): \(Self.groups.joined(separator: ", "))")
    }
    Progress.report(machine)
    var runner = Runner(rounds: rounds, figures: Figures(machine: machine, rounds: rounds))
    if filter == TilesGroup.name {
      try TilesGroup.run(&runner)
    } else if wants(TilesGroup.name) {
      runner.figures.measurements += try TilesGroup.runApart(rounds: rounds)
    }
    if wants(DungeonGroup.name) {
      try runner.measure(
        DungeonGroup.name, DungeonGroup.tasks(protobufLibrary: protobuf, remarks: &runner.figures.remarks))
    }
    if wants(KingdomGroup.name) { try runner.measure(KingdomGroup.name, KingdomGroup.tasks()) }
    if wants(HeroGroup.name) { try runner.measure(HeroGroup.name, HeroGroup.tasks()) }
    if wants(CardGroup.name) { try runner.measure(CardGroup.name, CardGroup.tasks()) }
    if wants(KeyedGroup.name) { try runner.measure(KeyedGroup.name, rounds: KeyedGroup.rounds, KeyedGroup.tasks()) }
    if wants(CaptureGroup.name) { try CaptureGroup.withTask { try runner.measure(CaptureGroup.name, [$0]) } }
    if wants(MemoryProbe.group) { runner.figures.memory = try MemoryProbe.measureAll() }
    if runner.busyPercent >= Self.worthTelling {
      runner.figures.remarks.append(
        "The machine was busy: others had the processor for \(runner.busyPercent) % of the time.")
    }
    return runner.figures
  }

  /// Less disturbs no figure.
  private static let worthTelling = 5

  static let groups = [
    TilesGroup.name, DungeonGroup.name, KingdomGroup.name, HeroGroup.name, CardGroup.name, KeyedGroup.name,
    CaptureGroup.name, MemoryProbe.group,
  ]

  private func wants(_ group: String) -> Bool { filter.isEmpty || group.contains(filter) }
}
