#if os(Linux)
import Foundation
import KeepsakeSimulation
import KeepsakeStore
import TestSupport
import Testing

@testable import Keepsake

/// Programs that end without closing their data.
@Suite struct ExitTests {
  static let variable = "KEEPSAKE_TEST_EXIT"
  static let slot = Slot<Journal>("journal")

  /// Runs a program that does what `ExitChild` says under `name`, and ends.
  private func run(_ name: String, in folder: URL) async throws -> ChildProcess.Ended {
    try await onThread {
      try ChildProcess.run(
        URL(fileURLWithPath: CommandLine.arguments[0]),
        ["--testing-library", "swift-testing", "--filter", "ExitChild"],
        environment: [Self.variable: name, "KEEPSAKE_TEST_FOLDER": folder.path])
    }
  }

  @Test("what was captured and set before the program ended without closing is there at its next start", .hangLimit)
  func waits() async throws {
    for _ in 0..<(TestDepth.isDeep ? 20 : 3) {
      try await TemporaryFolder.with { folder in
        let ended = try await run("capture", in: folder)
        #expect(ended.status == 7 && !ended.errors.contains("keepsake:"), "\(ended.errors)")
        let game = try GameData.open("com.example.space", at: folder.appendingPathComponent("data"))
        defer { end(game) }
        #expect(try game.saves.load(Self.slot)?.text == ExitChild.text)
        #expect(game.preferences[ExitChild.volume] == 0.5)
      }
    }
  }

  @Test("a disk that takes longer than the limit delays the end no further, and a line says that saves are lost")
  func givesUp() async throws {
    try await TemporaryFolder.with { folder in
      let ended = try await run("hang", in: folder)
      #expect(ended.status == 7)
      #expect(ended.errors.contains("keepsake: the program ended before everything"), "\(ended.errors)")
    }
  }

  @Test("with a limit of zero, the end of the program waits for nothing")
  func switchedOff() async throws {
    try await TemporaryFolder.with { folder in
      let ended = try await run("off", in: folder)
      #expect(ended.status == 7 && !ended.errors.contains("keepsake:"), "\(ended.errors)")
    }
  }
}

/// What the programs do.
@Suite(.partOfAnotherTest(where: ProcessInfo.processInfo.environment[ExitTests.variable] != nil))
struct ExitChild {
  static let volume = PreferenceKey("volume", default: 1.0)
  /// Some megabytes that don't compress, so that they aren't saved by the time that the program ends.
  static let text: String = {
    var random = SeededGenerator(seed: 3)
    return String(decoding: (0..<4_000_000).map { _ in UInt8.random(in: 32...126, using: &random) }, as: UTF8.self)
  }()

  @Test func ends() throws {
    let environment = ProcessInfo.processInfo.environment
    let folder = URL(fileURLWithPath: try #require(environment["KEEPSAKE_TEST_FOLDER"]))
    let game = try GameData.open("com.example.space", at: folder.appendingPathComponent("data"))
    switch environment[ExitTests.variable] {
    case "capture":
      let journal = Journal(text: Self.text)
      game.preferences[Self.volume] = 0.5
      try game.saves.capture(journal, to: ExitTests.slot)
    case "hang", "off":
      GameData.exitLimit = environment[ExitTests.variable] == "off" ? .zero : .milliseconds(50)
      _ = try game.core.store.submit { _, _ in while true { Thread.sleep(forTimeInterval: 1) } }
    default: Issue.record("unknown")
    }
    exit(7)
  }
}
#endif
