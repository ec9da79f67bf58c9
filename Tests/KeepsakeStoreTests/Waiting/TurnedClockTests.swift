#if os(Linux)
import Foundation
import TestSupport
import Testing

@testable import KeepsakeStore

/// Somebody sets the system's clock while the game waits for its disk.
@Suite struct TurnedClockTests {
  static let variable = "KEEPSAKE_CLOCK_OFFSET"

  @Test("time limits don't depend on the date: not with the clock a day back, not a day ahead", arguments: [-1, 1])
  func turned(days: Int) async throws {
    let folder = try TemporaryFolder()
    let message: String? = try await onThread {
      let library = folder.url.appendingPathComponent("clock.so").path
      let source = Repository.root.appendingPathComponent("Scripts/shims/clock.c").path
      let built = try ChildProcess.run(
        URL(fileURLWithPath: "/usr/bin/env"), ["clang", "-shared", "-fPIC", "-O1", source, "-o", library])
      guard built.status == 0 else { return built.errors }
      let ended = try ChildProcess.run(
        URL(fileURLWithPath: CommandLine.arguments[0]),
        ["--testing-library", "swift-testing", "--filter", "TurnedClockChild"],
        environment: ["LD_PRELOAD": library, Self.variable: "\(days * 86_400)"])
      let output = ended.text + ended.errors
      return ended.status == 0 && output.contains("Suite TurnedClockChild passed after") ? nil : output
    }
    #expect(message == nil)
  }
}

/// The tests that run with another date than the system's.
@Suite(
  .serialized, .hangLimit,
  .partOfAnotherTest(where: ProcessInfo.processInfo.environment[TurnedClockTests.variable] != nil))
struct TurnedClockChild {
  /// Far longer than anything here takes, and far shorter than a day.
  private static let limit = Duration.seconds(60)
  private static let pause = 0.3

  @Test func dateIsTurned() throws {
    let folder = try TemporaryFolder()
    let file = folder.url.appendingPathComponent("file")
    try Data().write(to: file)
    let written = Double(StoreFiles.modified(file)) / 1e9
    #expect(abs(Date().timeIntervalSince1970 - written) > 80_000)
  }

  @Test func waitsForCommit() throws {
    let folder = try TemporaryFolder()
    let store = try Store.open(at: folder.store)
    let pending = try store.submit { _, _ in Thread.sleep(forTimeInterval: Self.pause) }
    try pending.wait(within: Self.limit)
    let slow = try store.submit { _, _ in Thread.sleep(forTimeInterval: Self.pause) }
    let error = #expect(throws: StoreError.self) { try slow.wait(within: .milliseconds(20)) }
    #expect(error?.code == .timedOut)
    try store.close(within: Self.limit)
  }

  @Test func waitsForRoom() throws {
    let folder = try TemporaryFolder()
    let store = try Store.open(at: folder.store)
    _ = try store.submit { _, _ in Thread.sleep(forTimeInterval: Self.pause) }
    for _ in 0..<2 * CommitQueue.maximumWaiting { _ = try store.submit(within: Self.limit) { _, _ in } }
    try store.close(within: Self.limit)
  }

  @Test func closesRecords() throws {
    let folder = try TemporaryFolder()
    let records = try RecordsDatabase.open(in: folder.url) { Issue.record("\($0)") }
    let isReading = Latch()
    let reading = WatchedThread {
      try records.reading { _ in
        isReading.open()
        Thread.sleep(forTimeInterval: Self.pause)
      }
    }
    isReading.wait()
    let error = #expect(throws: StoreError.self) { try records.close(within: .milliseconds(20)) }
    #expect(error?.code == .timedOut)
    try records.close(within: Self.limit)
    try reading.value()
  }

  @Test func locks() throws {
    let lock = TimedLock()
    #expect(lock.lock())
    #expect(!lock.lock(within: .milliseconds(20)))
    let waiting = WatchedThread { lock.lock(within: Self.limit) }
    #expect(waiting.waitUntilBlocked())
    lock.unlock()
    #expect(try waiting.value())
  }
}
#endif
