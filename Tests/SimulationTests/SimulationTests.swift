import Foundation
import KeepsakeReplication
import KeepsakeTesting
import Testing

/// Whole worlds from one seed each. A seed that fails here replays, with its trace, through `World.Options.keepsLines`.
@Suite(.serialized) struct SimulationTests {
  static let seeds: ClosedRange<UInt64> = 1...500
  /// A planted bug that isn't found in this many worlds counts as not found.
  static let plantedSeeds: UInt64 = 120
  /// How many catches are looked for, so that a median means something.
  static let catches = 5

  @Test("Devices lose saves, disagree, overdraw or never come to rest after crashes, copies and bad networks")
  func nothingIsLost() {
    var sum = WorldStatistics()
    for seed in Self.seeds {
      let report = World(seed: seed).run()
      #expect(report.violations.isEmpty, "seed \(seed): \(report.violations.prefix(3))")
      let crashes = report.statistics.crashesBeforeCommit + report.statistics.crashesAfterCommit
      #expect(report.statistics.devices >= 3 && report.statistics.operations >= 100 && crashes >= 1, "seed \(seed)")
      sum = sum + report.statistics
    }
    print("simulation: " + sum.counts.map { "\($0.name) \($0.count)" }.joined(separator: ", "))
    let seeds = Self.seeds.count
    #expect(sum.partitions >= seeds)
    // What is never reached is never tested.
    for (name, count) in sum.counts { #expect(count > 0, "\(name) never happened") }
  }

  @Test("A failing world can't be looked at again, because it goes another way the next time", arguments: [1, 77, 4_711] as [UInt64])
  func sameSeedSameWorld(seed: UInt64) {
    var options = World.Options()
    options.keepsLines = true
    let first = World(seed: seed, options: options).run()
    let second = World(seed: seed, options: options).run()
    #expect(first == second)
    #expect(first.lines.count > 100)
    #expect(World(seed: seed).run().trace == first.trace)
    #expect(World(seed: seed + 1).run().trace != first.trace)
  }

  @Test("The simulation would not notice a bug", arguments: PlantedBug.allCases)
  func plantedBugsAreFound(bug: PlantedBug) {
    var options = World.Options()
    options.planted = [bug]
    var caught: [UInt64] = []
    var last: UInt64 = 0
    var waits: [UInt64] = []
    for seed in 1...Self.plantedSeeds where caught.count < Self.catches {
      if !World(seed: seed, options: options).run().violations.isEmpty {
        caught.append(seed)
        waits.append(seed - last)
        last = seed
      }
    }
    #expect(!caught.isEmpty, "\(bug.rawValue) goes unnoticed in \(Self.plantedSeeds) worlds")
    if !waits.isEmpty {
      print("planted \(bug.rawValue): median seeds to catch \(waits.sorted()[waits.count / 2]), first seed \(caught[0])")
    }
  }
}
