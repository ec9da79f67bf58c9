import Foundation

/// What the game's floor takes from the system, handed in so that tests can turn the clock.
package struct GameEnvironment: Sendable {
  /// The wall clock, milliseconds since 1970.
  package var nowMilliseconds: @Sendable () -> Int64
  /// A clock that only goes forward.
  package var uptime: @Sendable () -> Duration
  /// Returns when that long has passed; throws `CancellationError` when its task is cancelled before. What concerns the cloud waits
  /// by it, and nothing else does.
  package var sleep: @Sendable (Duration) async throws -> Void
  /// For pauses that have to differ from device to device, and for numbers of requests. Names of what is saved are drawn from the system
  /// whatever stands here: they have to differ from all others for ever.
  package var random: any RandomNumberGenerator & Sendable

  package init(
    nowMilliseconds: @escaping @Sendable () -> Int64, uptime: @escaping @Sendable () -> Duration,
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
    random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
  ) {
    self.nowMilliseconds = nowMilliseconds
    self.uptime = uptime
    self.sleep = sleep
    self.random = random
  }

  package static let system: GameEnvironment = {
    let start = ContinuousClock.now
    return GameEnvironment(
      nowMilliseconds: { Int64((Date().timeIntervalSince1970 * 1000).rounded()) },
      uptime: { ContinuousClock.now - start })
  }()
}
