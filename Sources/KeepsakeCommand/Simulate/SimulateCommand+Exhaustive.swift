#if Cloud
import ArgumentParser
import Foundation
import KeepsakeReplication
import KeepsakeSimulation

// `keepsake simulate --exhaustive`.
extension SimulateCommand {
  func visitEveryState() async throws {
    var options = exhaustive.options()
    options.operations = operations ?? options.operations
    options.faults = faults
    let starts = exhaustive.start.isEmpty ? ExhaustiveStart.allCases : exhaustive.start
    let runs = starts.map { [options] in ExhaustiveRun(start: $0, options: options) }
    let signals = StopSignals { _ in
      for run in runs { run.stop() }
    }
    var answer = ExhaustiveAnswer()
    for run in runs where !run.isStopped && !answer.isFailure {
      let began = ContinuousClock.now
      run.begin(threads: usedThreads)
      try await follow(run, since: began)
      answer.add(run.progress, duration: ContinuousClock.now - began)
    }
    withExtendedLifetime(signals) {}
    var failure: CommandFailure?
    if runs.contains(where: \.isStopped) {
      failure = CommandFailure(.temporary, "stopped before it was done", next: "name starts that are left with --start")
      answer.error = failure.map(ErrorReport.Body.init)
    }
    if json { try Output.document(answer) } else { Output.text(answer.text(on: .standardOutput())) }
    if answer.isFailure { throw ExitCode(1) }
    guard let failure else { return }
    if json { throw ExitCode(failure.kind.rawValue) }
    throw failure
  }

  private func follow(_ run: ExhaustiveRun, since began: ContinuousClock.Instant) async throws {
    let line = ProgressLine(json: json)
    while !run.isOver {
      let progress = run.progress
      let rate = Double(progress.states) / max((ContinuousClock.now - began) / .seconds(1), 0.001)
      let states = CountText.of(progress.states, "state")
      line.update("\(progress.start.rawValue): depth \(progress.depth), \(states), \(Int(rate)) a second")
      try await Task.sleep(for: .milliseconds(20))
    }
    line.clear()
  }
}

/// The result of `keepsake simulate --exhaustive`.
struct ExhaustiveAnswer: Encodable {
  struct Run: Encodable {
    var start: String
    var stateCount: Int
    var transitionCount: Int
    var depth: Int
    /// Whether every state within the limits was visited.
    var exhausted: Bool
    var durationMilliseconds: Double
    var rule: String?
    var violation: String?
    /// The shortest way to the violation, and the states on it.
    var trace: [String] = []
  }

  private(set) var runs: [Run] = []
  /// Why not all of them were run to their end.
  var error: ErrorReport.Body?

  var isFailure: Bool { runs.contains { $0.rule != nil } }

  mutating func add(_ report: ExhaustiveReport, duration: Duration) {
    runs.append(
      Run(
        start: report.start.rawValue, stateCount: report.states, transitionCount: report.transitions,
        depth: report.depth, exhausted: report.isExhausted, durationMilliseconds: duration / .milliseconds(1),
        rule: report.failure?.violation.rule.rawValue,
        violation: report.failure?.violation.text, trace: report.failure?.trace ?? []))
  }

  var text: String { text(on: .plain) }

  func text(on terminal: Terminal) -> String {
    var parts: [String] = []
    for run in runs {
      guard let rule = run.rule, let violation = run.violation else { continue }
      parts += run.trace + ["", "\(run.start), rule \(rule): \(violation)", ""]
    }
    let rows = runs.map { run in
      [
        run.start, "\(run.stateCount)", "\(run.transitionCount)", "\(run.depth)",
        run.exhausted ? "yes" : run.rule == nil ? "no" : "violation",
        String(format: "%.1f", run.durationMilliseconds / 1_000),
        "\(Int(Double(run.stateCount) / max(run.durationMilliseconds / 1_000, 0.001)))",
      ]
    }
    let header = ["start", "states", "transitions", "depth", "exhausted", "seconds", "states a second"]
    return (parts + [TextTable.text(header, rows, on: terminal)]).joined(separator: "\n")
  }
}
#endif
