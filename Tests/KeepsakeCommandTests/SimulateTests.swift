#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

@testable import KeepsakeCommand

/// `keepsake simulate` runs as many simulated worlds as requested, and reports what was violated in them.
@Suite struct SimulateTests {
  @Test("the exit status is 0 if nothing is lost, 1 with a planted fault, and 64 for invalid options")
  func statuses() async {
    #expect(await status(of: SimulateCommand.self, ["--seeds", "3", "--json"]) == 0)
    #expect(await status(of: SimulateCommand.self, ["--seeds", "20", "--planted", "coverUnloaded", "--json"]) == 1)
    for arguments in [
      ["--seeds", "0"], ["--threads", "0"], ["--threads", "257"], ["--operations", "9"], ["--planted", "nothing"],
      ["--from", "\(UInt64.max)", "--seeds", "2"],
    ] {
      #expect(await status(of: SimulateCommand.self, arguments) == 64, "\(arguments)")
    }
  }

  @Test("a failing world is reported with its seed, its violations and the trace that led to them")
  func failure() async throws {
    var options = World.Options()
    options.faults = Faults(planting: [.coverUnloaded])
    let report = await SimulationRun.world(seed: 1, options: options)
    let answer = SimulateAnswer(report)
    let text = answer.text(lines: 5)
    #expect(text.hasPrefix("... the last 5 of \(report.lines.count) lines:\n"))
    #expect(
      text.contains("\nseed 1:\n  \(report.violations[0])")
        && text.contains("1 world, 1 with violations, fingerprint "))
    let json = try #require(try JSONSerialization.jsonObject(with: JSONEncoder().encode(answer)) as? [String: Any])
    #expect((json["failures"] as? [[String: Any]])?.first?["seed"] as? Int == 1)
    #expect((json["trace"] as? [String]) == report.lines && (json["counts"] as? [String: Int])?["worlds"] == 1)
  }

  @Test("a run that is stopped early reports its progress so far")
  func stops() async {
    let run = SimulationRun(seeds: 1...1_000_000)
    run.start(threads: 2)
    run.stop()
    let progress = await withCheckedContinuation { continuation in run.whenEnded { continuation.resume(returning: $0) }
    }
    #expect(progress.worlds < 1_000_000 && progress.failures.isEmpty && run.isOver)
  }
}
#endif
