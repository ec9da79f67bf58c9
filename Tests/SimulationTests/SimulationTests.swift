import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport
import Testing

/// Whole worlds from one seed each. A seed that fails can be replayed, with its trace, through
/// `World.Options.keepsLines`.
@Suite(.serialized) struct SimulationTests {
  static let seeds: ClosedRange<UInt64> = 1...TestDepth.worlds
  /// A planted bug that isn't found in this many worlds counts as not found.
  static let firstCatch: UInt64 = 120
  /// The number of worlds in which all catches have to happen.
  static let plantedSeeds: UInt64 = 400
  /// How many catches are required, so that a median means something.
  static let catches = TestDepth.catches
  static let threads = 2

  /// Runs worlds without blocking a thread of the pool that tests of servers wait for.
  private func live(
    _ seeds: ClosedRange<UInt64>, _ options: World.Options = World.Options(), failures: Int = 1,
    threads: Int = Self.threads
  ) async -> SimulationRun.Progress {
    let run = SimulationRun(seeds: seeds, options: options, maximumFailures: failures)
    run.start(threads: threads)
    return await withCheckedContinuation { continuation in run.whenEnded { continuation.resume(returning: $0) } }
  }

  @Test("Devices lose no save, agree, never overdraw and come to rest after crashes, copies and bad networks")
  func nothingIsLost() async {
    let progress = await live(Self.seeds)
    for report in progress.failures { Issue.record("seed \(report.seed): \(report.violations.prefix(3))") }
    let sum = progress.statistics
    print("simulation: " + sum.counts.map { "\($0.name) \($0.count)" }.joined(separator: ", "))
    let seeds = Self.seeds.count
    #expect(sum.worlds == seeds)
    // On average, a world has several devices, many operations and some partitions.
    #expect(sum.devices >= 3 * seeds && sum.operations >= 200 * seeds && sum.partitions >= seeds)
    #expect(sum.crashesBeforeCommit + sum.crashesAfterCommit >= seeds)
    // What never happens is never tested.
    for (name, count) in sum.counts { #expect(count > 0, "\(name) never happened") }
  }

  @Test("The same seed always gives the same world, and another seed another one", arguments: TestDepth.repeatedWorlds)
  func sameSeedSameWorld(seed: UInt64) async {
    let options = World.Options()
    let (first, second) = (
      await SimulationRun.world(seed: seed, options: options), await SimulationRun.world(seed: seed, options: options)
    )
    #expect(first == second)
    #expect(first.lines.count > 100)
    let (same, other) = (await live(seed...seed), await live(seed + 1...seed + 1))
    #expect(same.trace == SimulationRun.fingerprint(of: first))
    #expect(other.trace != same.trace)
  }

  @Test("The result doesn't depend on the number of threads")
  func sameOnThreads() async {
    let (one, three) = (await live(30...45, threads: 1), await live(30...45, threads: 3))
    #expect(one.trace == three.trace && one.statistics == three.statistics && one.worlds == 16)
  }

  /// Those that worlds can notice. An engine drops each reply to an earlier request, so that no wallet in a world sees
  /// an old statement: `ExhaustiveTests` delivers one.
  static let bugs = PlantedBug.allCases.filter { $0 != .takeOldStatement }

  @Test("The simulation notices each planted bug", arguments: bugs)
  func plantedBugsAreFound(bug: PlantedBug) async {
    var options = World.Options()
    options.faults = Faults(planting: [bug])
    let planted = options
    let caught = await live(1...Self.plantedSeeds, planted, failures: Self.catches).failures.prefix(Self.catches).map(
      \.seed)
    let waits = zip(caught, [0] + caught).map { $0 - $1 }
    #expect(
      caught.first.map { $0 <= Self.firstCatch } == true, "\(bug.rawValue) goes unnoticed in \(Self.firstCatch) worlds")
    #expect(
      caught.count == Self.catches, "\(bug.rawValue) is noticed \(caught.count) times in \(Self.plantedSeeds) worlds")
    if !waits.isEmpty {
      print(
        "planted \(bug.rawValue): median seeds to catch \(waits.sorted()[waits.count / 2]), first seed \(caught[0])")
    }
  }
}
