import KeepsakeReplication
import KeepsakeSimulation
import TestSupport
import Testing

/// Every state of two wallets and their banks that can be reached in so many steps.
@Suite(.serialized) struct ExhaustiveTests {
  private func report(
    _ start: ExhaustiveStart, _ options: ExhaustiveOptions, threads: Int = 2
  ) async -> ExhaustiveReport {
    let run = ExhaustiveRun(start: start, options: options)
    run.begin(threads: threads)
    return await withCheckedContinuation { continuation in run.whenEnded { continuation.resume(returning: $0) } }
  }

  /// Options under which nothing happens but exchanges.
  private static func options(_ deeds: [WalletDeed], _ change: (inout ExhaustiveOptions) -> Void) -> ExhaustiveOptions {
    var options = ExhaustiveOptions()
    options.deeds = deeds
    (options.losses, options.copies, options.removals, options.needs) = (0, 0, 0, 0)
    change(&options)
    return options
  }

  @Test("No state within reach violates a rule", arguments: ExhaustiveStart.allCases)
  func nothingIsViolated(start: ExhaustiveStart) async {
    var options = ExhaustiveOptions()
    options.maximumStates = TestDepth.walletStates
    let report = await report(start, options)
    if let failure = report.failure {
      Issue.record("\(failure.violation.rule): \(failure.violation.text)\n\(failure.trace.joined(separator: "\n"))")
    }
    print("exhaustive \(start.rawValue): \(report.states) states, \(report.transitions) steps, depth \(report.depth)")
    #expect(report.states >= TestDepth.walletStates && report.depth >= 2)
  }

  @Test(
    "Nor does one with a bank that is set back to a backup, whether or not it is told",
    arguments: ExhaustiveStart.allCases)
  func restoresViolateNothing(start: ExhaustiveStart) async {
    var options = ExhaustiveOptions()
    options.maximumStates = TestDepth.walletStates
    (options.restores, options.hasRawBackups) = (1, true)
    // Few ways to go, so that a restore and what comes after it are within reach.
    (options.operations, options.copies, options.removals) = (1, 0, 1)
    options.deeds = [.earn, .spendLarge, .claim]
    let report = await report(start, options)
    if let failure = report.failure {
      Issue.record("\(failure.violation.rule): \(failure.violation.text)\n\(failure.trace.joined(separator: "\n"))")
    }
    print("restores \(start.rawValue): \(report.states) states, \(report.transitions) steps, depth \(report.depth)")
    #expect(report.isExhausted || report.states >= TestDepth.walletStates)
  }

  @Test("Every state of a small plan with a restored bank is visited, and no state violates a rule")
  func restoresAreExhausted() async {
    let report = await report(
      .shared, Self.options([.earn]) { ($0.operations, $0.restores, $0.hasRawBackups) = (1, 1, true) })
    #expect(report.isExhausted && report.failure == nil && report.states > 100)
  }

  @Test("Every state of a small plan is visited, and no state violates a rule")
  func isExhausted() async {
    let report = await report(.empty, Self.options([.earn, .spendSmall]) { $0.operations = 1 })
    #expect(report.isExhausted && report.failure == nil && report.states > 50)
    let shared = await self.report(.shared, Self.options([.spendSmall]) { ($0.operations, $0.losses) = (1, 1) })
    #expect(shared.isExhausted && shared.failure == nil && shared.states > 100)
  }

  @Test("Devices that join other players, and adopted guests, violate no rule", arguments: ExhaustiveStart.allCases)
  func devicesMove(start: ExhaustiveStart) async {
    let options = Self.options([.earn, .spendLarge]) { options in
      (options.losses, options.copies, options.moves) = (1, 1, 2)
      options.maximumStates = TestDepth.walletStates
    }
    let report = await report(start, options)
    if let failure = report.failure {
      Issue.record("\(failure.violation.rule): \(failure.violation.text)\n\(failure.trace.joined(separator: "\n"))")
    }
    #expect(report.states >= TestDepth.walletStates || report.isExhausted)
  }

  /// A planted bug, and a start and steps that lead to it soon.
  struct Plan: Sendable, CustomTestStringConvertible {
    var bug: PlantedBug
    var start = ExhaustiveStart.shared
    var options: ExhaustiveOptions
    var rule: CheckedViolation.Rule
    var testDescription: String { bug.rawValue }
  }

  static let plans = [
    Plan(
      bug: .ignoreHeadBeyondBatch, start: .long, options: options([.spendSmall]) { $0.copies = 1 }, rule: .nothingLeft),
    Plan(bug: .chargeLateTwice, options: options([.earn]) { ($0.losses, $0.removals) = (1, 1) }, rule: .decidedOnce),
    Plan(bug: .declineThoughCovered, options: options([.spendSmall]) { $0.removals = 1 }, rule: .declined),
    Plan(bug: .splitLateGroup, options: options([.bundle]) { $0.removals = 1 }, rule: .groups),
    Plan(
      bug: .takeOldStatement,
      options: options([.spendLarge]) { ($0.losses, $0.needs, $0.hasLateReplies) = (1, 1, true) }, rule: .deviceRights),
    Plan(bug: .countUnshownChain, start: .forked, options: options([]) { $0.copies = 1 }, rule: .stranded),
    Plan(bug: .removedChainKeepsRights, options: options([]) { $0.removals = 1 }, rule: .money),
    Plan(bug: .forgetWaiting, options: options([.spendSmall]) { $0.removals = 1 }, rule: .ledger),
    Plan(
      bug: .frozenBankGrants, options: options([]) { ($0.needs, $0.restores) = (2, 1) }, rule: .restored),
    Plan(
      bug: .forgetProof, options: options([.spendLarge]) { ($0.operations, $0.needs, $0.restores) = (1, 1, 1) },
      rule: .restored),
    Plan(bug: .recallWhatIsSpent, options: options([.spendSmall, .claim]) { $0.needs = 2 }, rule: .needs),
    Plan(bug: .offerToSecondBank, start: .guest, options: options([]) { $0.moves = 1 }, rule: .decidedOnce),
    Plan(
      bug: .payVoucherTwice, start: .guest, options: options([]) { ($0.losses, $0.moves) = (1, 1) },
      rule: .decidedOnce),
    Plan(bug: .payClaimAfterAdoption, start: .guest, options: options([]) { $0.moves = 1 }, rule: .claimPaidOnce),
  ]

  @Test("A planted bug is found with the steps that lead to it, which violate nothing without it", arguments: plans)
  func plantedBugsAreFound(plan: Plan) async throws {
    var options = plan.options
    options.faults = Faults(planting: [plan.bug])
    let found = await report(plan.start, options)
    let failure = try #require(found.failure)
    #expect(failure.violation.rule == plan.rule)
    #expect(failure.trace.first?.hasPrefix("start: ") == true)
    #expect(failure.trace.last == "\(plan.rule.rawValue): \(failure.violation.text)")
    var healthy = plan.options
    healthy.maximumDepth = failure.steps + 1
    let report = await report(plan.start, healthy)
    #expect(report.failure == nil)
  }

  @Test("The result doesn't depend on the number of threads")
  func sameOnThreads() async {
    var options = ExhaustiveOptions()
    options.maximumStates = 3_000
    let (one, three) = (await report(.shared, options, threads: 1), await report(.shared, options, threads: 3))
    #expect(one == three && one.states >= 3_000)
    options.maximumStates = 30_000
    options.faults = Faults(planting: [.chargeLateTwice])
    let (first, second) = (await report(.shared, options, threads: 1), await report(.shared, options, threads: 3))
    #expect(first == second && first.failure != nil)
  }

  @Test("A run that is stopped begins nothing more")
  func stops() async {
    let run = ExhaustiveRun(start: .empty)
    run.stop()
    run.begin(threads: 2)
    let report = await withCheckedContinuation { continuation in
      run.whenEnded { continuation.resume(returning: $0) }
    }
    #expect(report.states == 1 && !report.isExhausted && report.failure == nil)
  }
}
