import Foundation
import KeepsakeReplication
import Synchronization

/// Visits every state of two devices and two banks that can be reached from a start: first those that are one step
/// away, then those that are two steps away, and so on. So the first violation that is found has the shortest way to
/// it.
///
/// Makes the steps with the same `Wallet` and `Bank` as games and servers. What is checked on the way and in the end is
/// listed in ``CheckedViolation/Rule``. The result doesn't depend on the number of threads. Keeps 24 bytes for every
/// state, and about a kilobyte for each of those that are one step further away.
package final class ExhaustiveRun: Sendable {
  /// States that are taken together; after that, what was found is added in order.
  private static let block = 4_096
  private static let chunk = 128

  private let start: ExhaustiveStart
  private let options: ExhaustiveOptions
  private let progressReport: Mutex<ExhaustiveReport>
  private let stopped = Mutex(false)
  private let ended = DispatchGroup()

  package init(start: ExhaustiveStart, options: ExhaustiveOptions = ExhaustiveOptions()) {
    self.start = start
    self.options = start.options(options)
    progressReport = Mutex(ExhaustiveReport(start: start))
  }

  /// What was found so far.
  package var progress: ExhaustiveReport { progressReport.withLock(\.self) }

  /// Begins no new block of states.
  package func stop() { stopped.withLock { $0 = true } }

  package var isStopped: Bool { stopped.withLock(\.self) }

  /// Whether the run has ended.
  package var isOver: Bool { ended.wait(timeout: .now()) == .success }

  package func begin(threads: Int) {
    ended.enter()
    let thread = Thread { [self] in
      search(threads: threads)
      ended.leave()
    }
    thread.start()
  }

  /// Calls `body` when the run has ended.
  package func whenEnded(_ body: @escaping @Sendable (ExhaustiveReport) -> Void) {
    ended.notify(queue: .global()) { [self] in body(progress) }
  }

  // MARK: The search

  private struct Found: Sendable {
    let state: CheckedState
    let digest: StateDigest
    let parent: UInt32
    let step: WalletStep
  }

  /// What a chunk of states led to.
  private struct Expansion: Sendable {
    var found: [Found] = []
    var transitions = 0
    /// The violation, the number of the state, and the step from there; nil for the state itself.
    var violation: (CheckedViolation, UInt32, WalletStep?)?
  }

  /// One for each thread.
  private final class Worker: Sendable {
    let runner: Mutex<StepRunner>
    init(_ options: ExhaustiveOptions) { runner = Mutex(StepRunner(options)) }
  }

  /// How each state was reached.
  private struct Way {
    var parents: [UInt32] = [0]
    var steps: [WalletStep] = [.pause]

    func steps(to state: UInt32) -> [WalletStep] {
      var (result, current) = ([WalletStep](), Int(state))
      while current != 0 {
        result.append(steps[current])
        current = Int(parents[current])
      }
      return result.reversed()
    }
  }

  private func search(threads: Int) {
    var frontier: [CheckedState]
    do {
      frontier = [try start.state(options)]
    } catch {
      let failure = ExhaustiveReport.Failure(violation: error, trace: ["on the way to the start"], steps: 0)
      return progressReport.withLock { $0.failure = failure }
    }
    var visited = VisitedStates()
    var way = Way()
    _ = visited.insert(frontier[0].digest)
    progressReport.withLock { $0.states = 1 }
    let mostStates = min(options.maximumStates, ExhaustiveOptions.mostStates)
    let workers = (0..<max(1, threads)).map { _ in Worker(options) }
    var (depth, firstNumber) = (0, 0)
    while !frontier.isEmpty {
      guard depth < options.maximumDepth else { return }
      var next: [CheckedState] = []
      for lower in stride(from: 0, to: frontier.count, by: Self.block) {
        guard !isStopped, visited.count < mostStates else { return }
        let block = Array(frontier[lower..<min(lower + Self.block, frontier.count)])
        for expansion in Self.expansions(of: block, from: firstNumber + lower, visited, workers) {
          guard visited.count < mostStates else { return }
          progressReport.withLock { $0.transitions += expansion.transitions }
          if let (violation, state, step) = expansion.violation {
            return fail(violation, way.steps(to: state) + [step].compactMap(\.self))
          }
          for found in expansion.found where visited.insert(found.digest) {
            way.parents.append(found.parent)
            way.steps.append(found.step)
            next.append(found.state)
          }
          progressReport.withLock { [count = visited.count] in $0.states = count }
        }
      }
      firstNumber += frontier.count
      frontier = next
      guard !frontier.isEmpty else { break }
      depth += 1
      progressReport.withLock { [depth] in $0.depth = depth }
    }
    progressReport.withLock { $0.isExhausted = true }
  }

  /// Returns what follows each chunk of states, in order.
  private static func expansions(
    of states: [CheckedState], from number: Int, _ visited: VisitedStates, _ workers: [Worker]
  ) -> [Expansion] {
    let chunks = (states.count + chunk - 1) / chunk
    let results = Mutex([Expansion?](repeating: nil, count: chunks))
    let taken = Mutex(0)
    DispatchQueue.concurrentPerform(iterations: workers.count) { index in
      workers[index].runner.withLock { runner in
        while true {
          let place = taken.withLock { taken in
            taken += 1
            return taken - 1
          }
          guard place < chunks else { return }
          let range = place * chunk..<min((place + 1) * chunk, states.count)
          let expansion = expansion(of: states[range], from: number, visited, &runner)
          results.withLock { $0[place] = expansion }
        }
      }
    }
    return results.withLock { $0.compactMap(\.self) }
  }

  private static func expansion(
    of states: ArraySlice<CheckedState>, from number: Int, _ visited: VisitedStates, _ runner: inout StepRunner
  ) -> Expansion {
    var expansion = Expansion()
    for (index, state) in zip(states.indices, states) {
      let own = UInt32(number + index)
      var current: WalletStep?
      do throws(CheckedViolation) {
        if (number + index).isMultiple(of: runner.options.restEvery) { try runner.rest(from: state) }
        for step in runner.steps(from: state) {
          current = step
          guard let next = try runner.state(after: step, from: state) else { continue }
          expansion.transitions += 1
          let digest = next.digest
          if !visited.contains(digest) {
            expansion.found.append(Found(state: next, digest: digest, parent: own, step: step))
          }
        }
      } catch {
        expansion.violation = (error, own, current)
        return expansion
      }
    }
    return expansion
  }

  // MARK: The way to a violation

  private func fail(_ violation: CheckedViolation, _ steps: [WalletStep]) {
    let failure = ExhaustiveReport.Failure(violation: violation, trace: trace(of: steps), steps: steps.count)
    progressReport.withLock {
      $0.failure = failure
      $0.depth = steps.count
    }
  }

  /// Makes the steps again, and shows the states on the way; then what delivering everything leads to.
  private func trace(of steps: [WalletStep]) -> [String] {
    var lines: [String] = []
    func add(_ title: String, _ state: CheckedState) {
      lines.append(title)
      lines += state.words.map { "    " + $0 }
    }
    var runner = StepRunner(options)
    do throws(CheckedViolation) {
      var state = try start.state(options)
      add("start: \(start.words)", state)
      for (index, step) in steps.enumerated() {
        lines.append("\(index + 1). \(step.words)")
        guard let next = try runner.state(after: step, from: state) else { continue }
        state = next
        lines += state.words.map { "    " + $0 }
      }
      lines.append("then everything is delivered:")
      try runner.rest(from: state) { add("  " + $0, $1) }
    } catch {
      lines.append("\(error.rule.rawValue): \(error.text)")
    }
    return lines
  }
}
