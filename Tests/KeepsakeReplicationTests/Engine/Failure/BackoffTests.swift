import Foundation
import KeepsakeSimulation
import Testing

@testable import KeepsakeReplication

/// How long the engine pauses after failures, and what a pause holds up.
struct BackoffTests {
  private let failure = TransportFailure(.interrupted, "test")
  private let content = Backoff.Source.content(ContentHash(of: Data([1])))

  private func options() -> DeviceEngine.Options {
    var options = DeviceEngine.Options()
    options.firstBackoffMilliseconds = 100
    options.maximumBackoffMilliseconds = 1_000
    options.maximumRetryAfterMilliseconds = 5_000
    return options
  }

  @Test("pauses double with each failure up to the longest, and each is shortened by at most a half")
  func pausesGrow() throws {
    var random = SeededGenerator(seed: 5)
    for _ in 0..<50 {
      var backoff = Backoff(options())
      for longest in [100, 200, 400, 800, 1_000, 1_000] as [Int64] {
        let pause = backoff.failed(.exchange, failure, atLeast: 0, using: &random)
        let delay = try #require(pause)
        #expect((longest / 2...longest).contains(delay))
        backoff.endPauses()
      }
      #expect(backoff.attempts == 6)
    }
  }

  @Test("a pause is as long as the server asks for, up to a maximum")
  func serversAskForTime() {
    var random = SeededGenerator(seed: 5)
    var backoff = Backoff(options())
    #expect(backoff.failed(.exchange, failure, atLeast: 3_000, using: &random) == 3_000)
    backoff.endPauses()
    #expect(backoff.failed(.exchange, failure, atLeast: 60_000, using: &random) == 5_000)
  }

  @Test("failures during a pause count as the same one, and only a longer delay that the server asks for extends it")
  func failsTogether() {
    var random = SeededGenerator(seed: 5)
    var backoff = Backoff(options())
    #expect(backoff.failed(content, failure, atLeast: 0, using: &random) != nil)
    #expect(backoff.failed(.content(ContentHash(of: Data([2]))), failure, atLeast: 0, using: &random) == nil)
    #expect(backoff.attempts == 1)
    #expect(backoff.failed(content, failure, atLeast: 2_000, using: &random) == 2_000)
    #expect(backoff.attempts == 1)
  }

  @Test("a failed content pauses only contents; an exchange that then fails is another failure")
  func contentsAlone() {
    var random = SeededGenerator(seed: 5)
    var backoff = Backoff(options())
    _ = backoff.failed(content, failure, atLeast: 0, using: &random)
    #expect(backoff.exchangeFailure == nil && backoff.contentFailure == failure)
    #expect(backoff.failed(.exchange, failure, atLeast: 0, using: &random) != nil)
    #expect(backoff.exchangeFailure == failure && backoff.attempts == 2)
  }

  @Test("failures are counted until everything that failed has succeeded")
  func successes() {
    var random = SeededGenerator(seed: 5)
    var backoff = Backoff(options())
    _ = backoff.failed(content, failure, atLeast: 0, using: &random)
    #expect(!backoff.isReached)
    backoff.endPauses()
    _ = backoff.failed(.exchange, failure, atLeast: 0, using: &random)
    backoff.succeeded(.exchange)
    #expect(backoff.isReached && backoff.attempts == 2)
    backoff.succeeded(content)
    #expect(backoff.attempts == 0)
  }

  @Test("a reset ends the pause and forgets what failed, but doesn't claim that the cloud was reached")
  func reset() {
    var random = SeededGenerator(seed: 5)
    var backoff = Backoff(options())
    _ = backoff.failed(.exchange, failure, atLeast: 0, using: &random)
    _ = backoff.failed(content, failure, atLeast: 0, using: &random)
    backoff.reset()
    #expect(
      backoff.exchangeFailure == nil && backoff.contentFailure == nil && backoff.attempts == 0 && !backoff.isReached)
    _ = backoff.failed(.exchange, failure, atLeast: 0, using: &random)
    backoff.succeeded(.exchange)
    #expect(backoff.attempts == 0)
  }

  @Test("devices that fail together don't try again together")
  func notInStep() {
    let pauses = (0..<20 as Range<UInt64>).map { seed in
      var random = SeededGenerator(seed: seed)
      var backoff = Backoff(options())
      return backoff.failed(.exchange, failure, atLeast: 0, using: &random)
    }
    #expect(Set(pauses).count > 10)
  }

  @Test("after a failure the cloud counts as reached from its next response on, whether or not that is a success")
  func reached() {
    var random = SeededGenerator(seed: 5)
    var backoff = Backoff(options())
    backoff.succeeded(.exchange)
    _ = backoff.failed(content, failure, atLeast: 0, using: &random)
    #expect(!backoff.isReached)
    backoff.reached()
    #expect(backoff.isReached && backoff.attempts == 1)
  }
}
