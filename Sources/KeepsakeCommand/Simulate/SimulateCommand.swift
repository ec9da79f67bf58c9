#if Cloud
import ArgumentParser
import Dispatch
import Foundation
import KeepsakePlatform
import KeepsakeReplication
import KeepsakeSimulation
/// `keepsake simulate`: runs whole worlds of devices and a cloud, in which everything goes wrong.
struct SimulateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "simulate",
    abstract: "Run simulated worlds of devices and a cloud, and check that nothing is lost.",
    discussion: """
      Each world is generated from its seed: a few devices, games that play on them, and one cloud. Devices crash, are \
      copied, are restored from backups, go offline and have wrong clocks; messages are lost, duplicated and delayed. \
      At the end everything is delivered and the invariants are checked. The worlds run the same engine and the same \
      acceptance as games and servers, in memory. A seed always gives the same world.

      Exit status 1 means that something was lost: the seed, the violated invariants and the end of that world's trace \
      are printed. Use a release build: a debug build takes about twenty times as long.

      With --exhaustive, it visits every state of two wallets and their bank that can be reached from a few starts, \
      with lost and delayed messages, copies, backups and removed devices, and checks each. Exit status 1 means that a \
      rule was violated: the shortest way to it is printed, step by step.
      """,
    examples: [
      "keepsake simulate --seeds 5000",
      "keepsake simulate --from 283 --trace",
      "keepsake simulate --exhaustive --start copied --depth 10",
    ])

  /// The number of lines that are shown of a failing world's trace.
  static let shownLines = 60
  /// Each thread takes room for a deep stack.
  static let mostThreads = 256

  @Option(help: "How many worlds.")
  var seeds: UInt64 = 1_000

  @Option(help: "The first seed.")
  var from: UInt64 = 1

  @Option(help: "How many threads; by default one for each processor.")
  var threads: Int?

  @Option(
    help: """
      How many operations games perform in each world, on average; with --exhaustive, how many checkpoints each device \
      makes.
      """)
  var operations: Int?

  @Option(help: "Plant a fault, to see that it is found: \(PlantedFault.names).")
  var planted: [PlantedFault] = []

  @Flag(help: "Print everything that happens in the world of --from, and run no other.")
  var trace = false

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  @OptionGroup(title: "Every state of the wallet") var exhaustive: ExhaustiveArguments

  func validate() throws {
    guard seeds > 0, from <= .max - seeds else {
      throw ValidationError(
        "--seeds takes a number that is at least 1, and --from and --seeds together at most \(UInt64.max).")
    }
    guard (1...Self.mostThreads).contains(threads ?? 1) else {
      throw ValidationError("--threads takes a number from 1 to \(Self.mostThreads).")
    }
    let range = exhaustive.isChosen ? ExhaustiveArguments.operations : 10...1_000_000
    guard operations.map(range.contains) ?? true else {
      throw ValidationError("--operations takes a number from \(range.lowerBound) to \(range.upperBound).")
    }
    guard !exhaustive.isChosen || !trace else {
      throw ValidationError("--trace shows a world, and --exhaustive runs none.")
    }
  }

  private var options: World.Options {
    var options = World.Options()
    options.operations = operations ?? options.operations
    options.faults = faults
    return options
  }

  var faults: Faults { Faults(planting: Set(planted.map(\.bug))) }
  var usedThreads: Int { threads ?? ProcessInfo.processInfo.activeProcessorCount }

  func run() async throws {
    try await CommandRun.reporting(json: json) {
      if exhaustive.isChosen { return try await visitEveryState() }
      if trace { return try show(SimulateAnswer(await SimulationRun.world(seed: from, options: options)), lines: .max) }
      let began = ContinuousClock.now
      let run = SimulationRun(seeds: from...from + seeds - 1, options: options)
      let signals = StopSignals()
      let stopping = Task {
        for await _ in signals.stream { run.stop() }
      }
      run.start(threads: usedThreads)
      try await follow(run, since: began)
      stopping.cancel()
      var answer = SimulateAnswer(run.progress, duration: ContinuousClock.now - began)
      if let first = run.progress.failures.first {
        answer.trace = await SimulationRun.world(seed: first.seed, options: options).lines
      }
      // After a failure, the worlds that are left wouldn't change the result.
      let isWhole = !answer.failures.isEmpty
      try show(answer, lines: Self.shownLines, failure: isWhole ? nil : stopped(after: run.progress.worlds))
    }
  }

  private func follow(_ run: SimulationRun, since began: ContinuousClock.Instant) async throws {
    let line = ProgressLine(json: json)
    while !run.isOver {
      let worlds = run.progress.worlds
      let rate = Double(worlds) / max((ContinuousClock.now - began) / .seconds(1), 0.001)
      line.update("\(worlds) of \(CountText.of(seeds, "world")), \(Int(rate)) a second")
      try await Task.sleep(for: .milliseconds(20))
    }
    line.clear()
  }

  private func stopped(after worlds: UInt64) -> CommandFailure? {
    guard worlds < seeds else { return nil }
    return CommandFailure(
      .temporary, "stopped after \(worlds) of \(CountText.of(seeds, "world"))",
      next: "go on with --from \(from + worlds) --seeds \(seeds - worlds)")
  }

  /// - Parameter failure: Why it isn't the whole result.
  private func show(_ answer: SimulateAnswer, lines: Int, failure: CommandFailure? = nil) throws {
    guard json else {
      Output.text(answer.text(lines: lines))
      if !answer.failures.isEmpty { throw ExitCode(1) }
      if let failure { throw failure }
      return
    }
    var answer = answer
    answer.error = failure.map(ErrorReport.Body.init)
    try Output.document(answer)
    if !answer.failures.isEmpty { throw ExitCode(1) }
    if let failure { throw ExitCode(failure.kind.rawValue) }
  }
}

/// A planted bug, given by its name.
struct PlantedFault: ExpressibleByArgument {
  let bug: PlantedBug

  static var names: String { PlantedBug.allCases.map(\.rawValue).joined(separator: ", ") }

  init?(argument: String) {
    guard let bug = PlantedBug(rawValue: argument) else { return nil }
    self.bug = bug
  }
}
#endif
