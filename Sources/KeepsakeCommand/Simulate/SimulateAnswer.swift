#if Cloud
import KeepsakeSimulation
import KeepsakeReplication

/// The result of `keepsake simulate`.
struct SimulateAnswer: Encodable {
  struct Failure: Encodable {
    var seed: UInt64
    var violations: [String]
  }

  var worldCount: UInt64
  /// Nil for a single world that was only shown.
  var durationMilliseconds: Double?
  /// Of all worlds, in hexadecimal digits: the same seeds give the same fingerprint.
  var fingerprint: String
  /// How often each thing happened, in all worlds together.
  var counts: [String: Int]
  var failures: [Failure]
  /// What happened in the world that is shown: the first one that failed, or the one asked for.
  var trace: [String] = []
  /// Why not all worlds were run.
  var error: ErrorReport.Body?
  /// The names in `counts`, in order.
  private var names: [String] = []

  private enum CodingKeys: CodingKey {
    case worldCount, durationMilliseconds, fingerprint, counts, failures, trace, error
  }

  init(_ progress: SimulationRun.Progress, duration: Duration?) {
    worldCount = progress.worlds
    durationMilliseconds = duration.map { $0 / .milliseconds(1) }
    fingerprint = String(progress.trace, radix: 16)
    counts = Dictionary(progress.statistics.counts.map { ($0.name, $0.count) }, uniquingKeysWith: { $0 + $1 })
    names = progress.statistics.counts.map(\.name)
    failures = progress.failures.map { Failure(seed: $0.seed, violations: $0.violations) }
  }

  init(_ world: WorldReport) {
    var progress = SimulationRun.Progress()
    progress.worlds = 1
    (progress.statistics, progress.trace) = (world.statistics, world.trace)
    progress.failures = world.violations.isEmpty ? [] : [world]
    self.init(progress, duration: nil)
    trace = world.lines
  }

  /// - Parameter lines: The number of lines that are shown from the end of the trace.
  func text(lines: Int) -> String {
    var parts = trace.suffix(lines).map { Printable.text($0) }
    if trace.count > lines { parts.insert("... the last \(lines) of \(CountText.of(trace.count, "line")):", at: 0) }
    if !parts.isEmpty { parts.append("") }
    for failure in failures {
      parts.append("seed \(failure.seed):")
      parts += failure.violations.map { "  " + Printable.text($0) }
    }
    parts.append(names.map { "\($0) \(counts[$0] ?? 0)" }.joined(separator: ", "))
    let rate =
      durationMilliseconds.map {
        ", \(Int($0 / 1_000 + 0.5)) s, \(Int(Double(worldCount) / max($0 / 1_000, 0.001))) a second"
      } ?? ""
    parts.append(
      "\(CountText.of(worldCount, "world"))\(rate), \(failures.count) with violations, fingerprint \(fingerprint)")
    return parts.joined(separator: "\n")
  }
}
#endif
