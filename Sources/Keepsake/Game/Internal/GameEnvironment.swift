import Foundation
package import KeepsakeReplication
package import KeepsakeSync

/// What this layer takes from the system, passed in so that tests can control the clock.
package struct GameEnvironment: Sendable {
  /// The wall clock, in milliseconds since 1970.
  package var nowMilliseconds: @Sendable () -> Int64
  /// A monotonic clock.
  package var uptime: @Sendable () -> Duration
  /// Returns after the given time; throws `CancellationError` if its task is cancelled before that. Used for all
  /// waiting that concerns the cloud, and for nothing else.
  package var sleep: @Sendable (Duration) async throws -> Void
  /// The random source for pauses that have to differ between devices, and for request numbers. Identifiers of saved
  /// data always come from the system's generator, regardless of this one, because they have to be unique forever.
  package var random: any RandomNumberGenerator & Sendable
  /// The clouds of containers that a store belonged to before, in tests whose clouds need no credentials.
  package var formerCloud: @Sendable (ContainerID) -> (any Transport)? = { _ in nil }

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
