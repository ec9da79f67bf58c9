#if os(Linux)
import Foundation
import KeepsakeSimulation
import KeepsakeStore
import Synchronization
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

  @Test("a save that fails while the program ends is a line on standard error, with slot and reason", .hangLimit)
  func fails() async throws {
    try await TemporaryFolder.with { folder in
      let ended = try await run("fail", in: folder)
      #expect(ended.status == 7)
      let lines = ended.errors.split(separator: "\n").filter { $0.hasPrefix("keepsake: ") }
      #expect(lines.count == 1, "\(ended.errors)")
      #expect(lines.first?.hasPrefix("keepsake: the slot \"journal\": ") == true, "\(ended.errors)")
      #expect(lines.first?.contains("removed") == true, "\(ended.errors)")
    }
  }

  @Test("preferences that could not be saved are tried once more when the program ends", .hangLimit)
  func triesAgain() async throws {
    try await TemporaryFolder.with { folder in
      let ended = try await run("again", in: folder)
      #expect(ended.status == 7 && !ended.errors.contains("keepsake:"), "\(ended.errors)")
      let game = try GameData.open("com.example.space", at: folder.appendingPathComponent("data"))
      defer { end(game) }
      #expect(game.preferences[ExitChild.volume] == 0.5)
    }
  }

  @Test("preferences that can't be saved when the program ends either are a line on standard error", .hangLimit)
  func failsAgain() async throws {
    try await TemporaryFolder.with { folder in
      let ended = try await run("fail again", in: folder)
      #expect(ended.status == 7)
      let lines = ended.errors.split(separator: "\n").filter { $0.hasPrefix("keepsake: ") }
      #expect(
        lines.count == 1 && lines.first?.hasPrefix("keepsake: preferences could not be saved: ") == true,
        "\(ended.errors)")
    }
  }

  @Test("after data whose folder was removed is closed, nothing says that preferences are tried again", .hangLimit)
  func closedAfterRemoval() async throws {
    try await TemporaryFolder.with { folder in
      let ended = try await run("closed", in: folder)
      #expect(ended.status == 7 && !ended.errors.contains("tried again"), "\(ended.errors)")
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
    let data = folder.appendingPathComponent("data")
    let game = try GameData.open("com.example.space", at: data)
    switch environment[ExitTests.variable] {
    case "capture":
      let journal = Journal(text: Self.text)
      game.preferences[Self.volume] = 0.5
      try game.saves.capture(journal, to: ExitTests.slot)
    case "hang", "off":
      GameData.exitLimit = environment[ExitTests.variable] == "off" ? .zero : .milliseconds(50)
      _ = try game.core.store.submit { _, _ in while true { Thread.sleep(forTimeInterval: 1) } }
    case "fail":
      _ = try game.core.store.submit { _, _ in
        while !ExitWork.isEnding { Thread.sleep(forTimeInterval: 0.001) }
        try FileManager.default.removeItem(at: data)
      }
      try game.saves.capture(Journal(text: "late"), to: ExitTests.slot)
    case "again", "fail again", "closed":
      let kept = folder.appendingPathComponent("kept")
      try FileManager.default.moveItem(at: data, to: kept)
      game.preferences[Self.volume] = 0.5
      // Until the commit that this scheduled has failed.
      while game.preferences.table.withLock({ $0.isScheduled }) { Thread.sleep(forTimeInterval: 0.001) }
      game.preferences.queue.sync {}
      #expect(storeErrorCode { try game.core.store.base.drain() } == .removed)
      if environment[ExitTests.variable] == "again" { try FileManager.default.moveItem(at: kept, to: data) }
      if environment[ExitTests.variable] == "closed" {
        let isRemoved = storeErrorCode { try game.close() } == .removed
        let hasNoPromise = game.incidents.contains { $0.message.hasPrefix("preferences could not be saved: ") }
        withExtendedLifetime(game) { exit(isRemoved && hasNoPromise ? 7 : 8) }
      }
    default: Issue.record("unknown")
    }
    exit(7)
  }
}
#endif
