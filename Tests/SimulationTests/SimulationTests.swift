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
  func nothingIsLost() async {
    var sum = WorldStatistics()
    for (seed, report) in await onThread({ Self.seeds.map { ($0, World(seed: $0).run()) } }) {
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
  func sameSeedSameWorld(seed: UInt64) async {
    var options = World.Options()
    options.keepsLines = true
    let kept = options
    let (first, second) = await onThread { (World(seed: seed, options: kept).run(), World(seed: seed, options: kept).run()) }
    #expect(first == second)
    #expect(first.lines.count > 100)
    let (same, other) = await onThread { (World(seed: seed).run(), World(seed: seed + 1).run()) }
    #expect(same.trace == first.trace)
    #expect(other.trace != first.trace)
  }

  @Test("The simulation would not notice a bug", arguments: PlantedBug.allCases)
  func plantedBugsAreFound(bug: PlantedBug) async {
    var options = World.Options()
    options.planted = [bug]
    let planted = options
    let caught = await onThread {
      let found = (1...Self.plantedSeeds).lazy.filter { !World(seed: $0, options: planted).run().violations.isEmpty }
      return Array(found.prefix(Self.catches))
    }
    let waits = zip(caught, [0] + caught).map { $0 - $1 }
    #expect(!caught.isEmpty, "\(bug.rawValue) goes unnoticed in \(Self.plantedSeeds) worlds")
    if !waits.isEmpty {
      print("planted \(bug.rawValue): median seeds to catch \(waits.sorted()[waits.count / 2]), first seed \(caught[0])")
    }
  }
}

/// Runs `work` on a thread of its own: worlds compute for minutes and would starve the tests that wait for a server meanwhile.
private func onThread<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
  await withCheckedContinuation { continuation in
    let thread = Thread { continuation.resume(returning: work()) }
    thread.stackSize = 8 << 20
    thread.start()
  }
}
