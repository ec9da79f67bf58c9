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

  @Test("--exhaustive exits with 0 if no state violates a rule, with 1 if one does, and with 64 for invalid options")
  func exhaustive() async throws {
    let few = ["--exhaustive", "--json", "--start", "shared", "--deed", "spendSmall"]
    #expect(await status(of: SimulateCommand.self, few + ["--depth", "2"]) == 0)
    #expect(await status(of: SimulateCommand.self, few + ["--planted", "declineThoughCovered"]) == 1)
    for arguments in [
      ["--start", "nowhere"], ["--depth", "0"], ["--states", "0"], ["--losses", "5"], ["--operations", "9"],
      ["--batch", "501"], ["--trace"], ["--moves", "1", "--restores", "1"],
    ] {
      #expect(await status(of: SimulateCommand.self, few + arguments) == 64, "\(arguments)")
    }
    var options = ExhaustiveOptions()
    options.faults = Faults(planting: [.declineThoughCovered])
    let run = ExhaustiveRun(start: .shared, options: options)
    run.begin(threads: 2)
    let report = await withCheckedContinuation { continuation in run.whenEnded { continuation.resume(returning: $0) } }
    var answer = ExhaustiveAnswer()
    answer.add(report, duration: .seconds(1))
    #expect(answer.isFailure && answer.text.contains("\nshared, rule declined: ") && answer.text.hasPrefix("start: "))
    let json = try #require(try JSONSerialization.jsonObject(with: JSONEncoder().encode(answer)) as? [String: Any])
    #expect((json["runs"] as? [[String: Any]])?.first?["stateCount"] as? Int == report.states)
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
