import KeepsakeSimulation
import TestSupport
import Testing

@Suite(.hangLimit) struct ManualClockTests {
  let clock = ManualClock()

  private func until(sleepers count: Int) async throws {
    try await TestSupport.until("\(count) sleep") { clock.sleeps.count == count }
  }

  @Test("a task that sleeps by a manual clock wakes once the clock was advanced far enough, and not before")
  func wakes() async throws {
    let tasks = [3, 1, 2].map { seconds in
      Task { [clock] in
        try await clock.sleep(for: .seconds(seconds))
        return clock.elapsed
      }
    }
    try await until(sleepers: 3)
    clock.advance(by: .milliseconds(999))
    #expect(clock.sleeps == [.milliseconds(1), .milliseconds(1_001), .milliseconds(2_001)])
    clock.advance(by: .milliseconds(1))
    #expect(try await tasks[1].value == .seconds(1))
    #expect(clock.sleeps == [.seconds(1), .seconds(2)])
    clock.advance(by: .seconds(5))
    for task in tasks { _ = try await task.value }
    #expect(clock.sleeps.isEmpty)
    // Sleeping for no time returns at once.
    try await clock.sleep(for: .zero)
  }

  @Test("a cancelled sleep throws at once and leaves no sleeper behind, even if it was cancelled before it began")
  func cancels() async throws {
    let sleeping = Task { [clock] in try await clock.sleep(for: .seconds(1)) }
    try await until(sleepers: 1)
    sleeping.cancel()
    await #expect(throws: CancellationError.self) { try await sleeping.value }
    let late = Task { [clock] in
      while !Task.isCancelled { await Task.yield() }
      try await clock.sleep(for: .seconds(1))
    }
    late.cancel()
    await #expect(throws: CancellationError.self) { try await late.value }
    #expect(clock.sleeps.isEmpty)
  }
}
