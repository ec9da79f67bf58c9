import Foundation
import Synchronization

/// Many worlds, each from its own seed, on several threads. The result doesn't depend on the number of threads.
package final class SimulationRun: Sendable {
  package struct Progress: Sendable {
    /// The number of worlds that were run.
    package var worlds: UInt64 = 0
    package var statistics = WorldStatistics()
    /// Combined over all worlds, in no order: the same seeds give the same trace.
    package var trace: UInt64 = 0
    /// Worlds with violations, the smallest seed first.
    package var failures: [WorldReport] = []

    package init() {}
  }

  private struct State {
    var next: UInt64?
    var threads = 0
    var progress = Progress()
  }

  /// Several times what the deepest merge takes.
  private static let stackBytes = 8 << 20

  private let last: UInt64
  private let options: World.Options
  private let maximumFailures: Int
  private let state: Mutex<State>
  private let ended = DispatchGroup()

  /// - Parameter maximumFailures: The number of failures after which no new world is begun; worlds in progress run to
  ///   their end.
  package init(seeds: ClosedRange<UInt64>, options: World.Options = World.Options(), maximumFailures: Int = 1) {
    last = seeds.upperBound
    self.options = options
    self.maximumFailures = maximumFailures
    state = Mutex(State(next: seeds.lowerBound))
  }

  package var progress: Progress {
    var progress = state.withLock(\.progress)
    progress.failures.sort { $0.seed < $1.seed }
    return progress
  }

  package func start(threads: Int) {
    for _ in 0..<threads {
      ended.enter()
      let thread = Thread { [self] in
        while let seed = take() {
          let report = World(seed: seed, options: options).run()
          state.withLock { Self.add(report, to: &$0.progress) }
        }
        ended.leave()
      }
      thread.stackSize = Self.stackBytes
      thread.start()
    }
  }

  /// Begins no new worlds.
  package func stop() { state.withLock { $0.next = nil } }

  /// Whether all threads have ended.
  package var isOver: Bool { ended.wait(timeout: .now()) == .success }

  /// Calls `body` when all threads have ended.
  package func whenEnded(_ body: @escaping @Sendable (Progress) -> Void) {
    ended.notify(queue: .global()) { [self] in body(progress) }
  }

  /// Runs one world with its trace in words.
  package static func world(seed: UInt64, options: World.Options) async -> WorldReport {
    var options = options
    options.keepsLines = true
    let kept = options
    return await withCheckedContinuation { continuation in
      let thread = Thread { continuation.resume(returning: World(seed: seed, options: kept).run()) }
      thread.stackSize = stackBytes
      thread.start()
    }
  }

  /// Returns what a world adds to the trace of all worlds.
  package static func fingerprint(of report: WorldReport) -> UInt64 { report.trace &* (2 &* report.seed &+ 1) }

  private func take() -> UInt64? {
    state.withLock { state in
      guard let seed = state.next, state.progress.failures.count < maximumFailures else { return nil }
      state.next = seed < last ? seed + 1 : nil
      return seed
    }
  }

  private static func add(_ report: WorldReport, to progress: inout Progress) {
    progress.worlds += 1
    progress.statistics = progress.statistics + report.statistics
    progress.trace ^= fingerprint(of: report)
    if !report.violations.isEmpty { progress.failures.append(report) }
  }
}
