#if os(Linux)
import Foundation
import Keepsake
import KeepsakeSimulation
import TestSupport
import Testing

/// The disk of a game with an autosave fills up: a file system of two MiB in a mount namespace that only a child
/// process sees.
@Suite struct AutosaveDiskTests {
  static let variable = "KEEPSAKE_TEST_AUTOSAVE_DISK"

  @Test(
    "`update` throws a typed error while the disk is full, and saves again once there is space", .needsPrivateMounts)
  func goesOn() async throws {
    let message: String? = try await onThread {
      let (status, output) = try Self.run(
        ["sh", "-ec", "mount -t tmpfs -o size=2m keepsake /mnt; \(Self.variable)=/mnt exec \"$@\"", "sh"]
          + [CommandLine.arguments[0], "--testing-library", "swift-testing", "--filter", "AutosaveDiskChild"])
      return status == 0 && Self.hasPassed("AutosaveDiskChild", output) ? nil : output
    }
    #expect(message == nil)
  }

  /// Whether a suite of one test ran and passed. The count alone doesn't show it: it includes tests that were skipped.
  static func hasPassed(_ suite: String, _ output: String) -> Bool {
    output.contains("Suite \(suite) passed after") && output.contains("Test run with 1 test in 1 suite passed after")
  }

  static func run(_ command: [String]) throws -> (status: Int32, output: String) {
    let ended = try PrivateMounts.run(command)
    return (ended.status, ended.text + ended.errors)
  }
}

/// The test that runs on the small disk.
@Suite(.partOfAnotherTest(where: ProcessInfo.processInfo.environment[AutosaveDiskTests.variable] != nil))
struct AutosaveDiskChild {
  @Test func goesOn() throws {
    let disk = URL(fileURLWithPath: try #require(ProcessInfo.processInfo.environment[AutosaveDiskTests.variable]))
    let clock = TestClock()
    let game = try GameData.open(
      "com.example.space", at: disk.appendingPathComponent("data"), environment: clock.environment)
    var level = 0
    // 100 kB that don't compress, different for each level.
    let autosave = Autosave(
      game, to: Slot<Journal>("journal"), every: .seconds(30), atSignals: .ignored, within: Patience.limit
    ) {
      var random = SeededGenerator(seed: UInt64(level))
      return Journal(
        text: "\(level):"
          + String(decoding: (0..<100_000).map { _ in UInt8.random(in: 32...126, using: &random) }, as: UTF8.self))
    }
    func saved() throws -> Int? {
      try game.saves.load(Slot<Journal>("journal")).flatMap { Int($0.text.prefix { $0 != ":" }) }
    }
    /// Updates after some time has passed. Returns the error of a save that was due, or nil if it succeeded.
    func tick(after span: Duration) throws -> StoreError.Code? {
      clock.advance(by: span)
      try autosave.update()
      // Reading the history waits for the capture; the next update throws if it failed.
      _ = try game.saves.history(of: "journal")
      return storeErrorCode { try autosave.update() }
    }
    level = 1
    #expect(try tick(after: .seconds(30)) == nil && saved() == 1)

    let filler = disk.appendingPathComponent("filler")
    try Data().write(to: filler)
    let handle = try FileHandle(forWritingTo: filler)
    for size in [65_536, 4_096, 512, 1] {
      // Until it is full.
      while (try? handle.write(contentsOf: Data(count: size))) != nil {}
    }
    try handle.close()
    level = 2
    #expect(try tick(after: .seconds(30)) == .diskFull)
    #expect(try tick(after: .seconds(1)) == .diskFull, "tried again a second later")
    #expect(storeErrorCode { try autosave.suspend() } == .diskFull)
    #expect(try autosave.isSuspended && saved() == 1)
    autosave.resume()
    try FileManager.default.removeItem(at: filler)
    #expect(try tick(after: .seconds(1)) == nil && saved() == 2)
    try game.close()
  }
}
#endif
