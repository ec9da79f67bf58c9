#if os(Linux)
import Foundation
import Keepsake
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport
import Testing

/// A full disk and a read-only disk: acknowledged money is kept, and nothing is half done.
@Suite struct WalletDiskTests {
  static let variable = "KEEPSAKE_TEST_WALLET_DISK"

  @Test("a full disk and a read-only disk cost neither gems nor gold, and create none", .needsPrivateMounts)
  func goesOn() async throws {
    let message: String? = try await onThread {
      let (status, output) = try AutosaveDiskTests.run(
        ["sh", "-ec", "mount -t tmpfs -o size=2m keepsake /mnt; \(Self.variable)=/mnt exec \"$@\"", "sh"]
          + [CommandLine.arguments[0], "--testing-library", "swift-testing", "--filter", "WalletDiskChild"])
      return status == 0 && AutosaveDiskTests.hasPassed("WalletDiskChild", output) ? nil : output
    }
    #expect(message == nil)
  }
}

/// The test that runs on the small disk.
@Suite(.partOfAnotherTest(where: ProcessInfo.processInfo.environment[WalletDiskTests.variable] != nil))
struct WalletDiskChild {
  @Archivable struct Run: Equatable {
    var level = 1
    var purse = Purse()
    var scenery = ""
  }

  private let disk: URL
  private let clock = TestClock()
  private let slot = Slot<Run>("run")

  init() throws {
    disk = URL(fileURLWithPath: try #require(ProcessInfo.processInfo.environment[WalletDiskTests.variable]))
  }

  private func open() throws -> GameData {
    try GameData.open("com.example.space", at: disk.appendingPathComponent("data"), environment: clock.environment)
  }

  /// A run in which gold was earned, with contents that don't compress.
  private static func run(level: Int, gold: Int) throws -> Run {
    var random = SeededGenerator(seed: UInt64(level))
    var run = Run(
      level: level,
      scenery: String(decoding: (0..<40_000).map { _ in UInt8.random(in: 32...126, using: &random) }, as: UTF8.self))
    try run.purse.earn(gold, Currency("gold"))
    return run
  }

  /// Fills the disk to the last byte.
  private func fill() throws {
    let filler = disk.appendingPathComponent("filler")
    try Data().write(to: filler)
    let handle = try FileHandle(forWritingTo: filler)
    for size in [65_536, 4_096, 512, 1] {
      while (try? handle.write(contentsOf: Data(count: size))) != nil {}
    }
    try handle.close()
  }

  private func remount(_ option: String) throws {
    let ended = try ChildProcess.run(
      URL(fileURLWithPath: "/usr/bin/env"), ["mount", "-o", "remount,\(option)", disk.path])
    try #require(ended.status == 0, "\(ended.errors)")
  }

  @Test func goesOn() throws {
    var game = try open()
    let first = try Self.run(level: 1, gold: 20)
    try game.saves.capture(first, to: slot).wait()
    try game.wallet.earn(100, .gems, for: "start")
    var gems = 100
    func check(_ when: Comment) throws {
      #expect(game.wallet[.gems] == Balance(total: gems, spendable: gems, pending: 0), when)
      #expect(
        try game.wallet.ledger(newest: .max).reduce(0) { $0 + ($1.kind == .spent ? -$1.amount : $1.amount) } == gems,
        when)
    }

    try fill()
    var code: StoreError.Code?
    while code == nil, gems < 10_000 {
      code = storeErrorCode { try game.wallet.earn(1, .gems, for: "coin \(gems)") }
      if code == nil { gems += 1 }
    }
    #expect(code == .diskFull && gems < 10_000)
    try check("full")
    let quest = OperationID(high: 1, low: 2)
    for _ in 0..<3 { #expect(storeErrorCode { try game.wallet.earn(5, .gems, for: "quest", id: quest) } == .diskFull) }
    #expect(storeErrorCode { try game.wallet.spend(5, .gems, for: "potion") } == .diskFull)
    #expect(storeErrorCode { try game.wallet.claim(5, .gems, key: "daily", for: "gift") } == .diskFull)
    #expect(
      gameErrorCode { try game.wallet.spend(gems + 1, .gems, for: "castle") }
        == .insufficient(Int64(gems), of: Int64(gems))
    )
    try check("after operations that failed")

    // If the checkpoint fails, the save still has its gold, and the gems are not spent.
    var second = try Self.run(level: 2, gold: 20)
    try second.purse.spend(15, Currency("gold"))
    #expect(gameErrorCode { try second.purse.spend(6, Currency("gold")) } == .insufficient(5, of: 5))
    func buy(_ price: Int) throws -> Pending<Void> {
      try game.checkpoint { checkpoint in
        try checkpoint.save(second, to: slot)
        try checkpoint.spend(price, .gems, for: "armour")
      }
    }
    #expect(storeErrorCode { try buy(50).wait() } == .diskFull)
    // A price above the balance is reported as that, however full the disk is.
    #expect(
      gameErrorCode { try game.wallet.spend(gems + 50, .gems, for: "armour") }
        == .insufficient(Int64(gems), of: Int64(gems)))
    #expect(try game.saves.load(slot) == first && game.saves.history(of: slot).count == 1)
    try check("after a checkpoint that failed")

    try game.close()
    game = try open()
    #expect(try game.saves.load(slot) == first)
    try check("opened while full")
    #expect(storeErrorCode { try game.wallet.spend(5, .gems, for: "potion") } == .diskFull)
    try check("opened while full, after an operation that failed")

    try FileManager.default.removeItem(at: disk.appendingPathComponent("filler"))
    for _ in 0..<2 { try game.wallet.earn(5, .gems, for: "quest", id: quest) }
    gems += 5
    try buy(50).wait()
    gems -= 50
    try check("with space again")
    #expect(try game.saves.load(slot) == second)
    try game.close()

    try remount("ro")
    #expect(storeErrorCode { _ = try open() } == .notPermitted)
    try remount("rw")
    game = try open()
    #expect(game.incidents.isEmpty)
    try check("after a read-only disk")
    #expect(try game.saves.load(slot) == second)
    try game.wallet.spend(gems, .gems, for: "castle")
    gems = 0
    try check("all spent")
    try game.close()
  }
}
#endif
