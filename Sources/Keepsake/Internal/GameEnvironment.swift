import Foundation

/// What the game's floor takes from the system, handed in so that tests can turn the clock.
package struct GameEnvironment: Sendable {
  /// The wall clock, milliseconds since 1970.
  package var nowMilliseconds: @Sendable () -> Int64
  /// A clock that only goes forward.
  package var uptime: @Sendable () -> Duration

  package init(nowMilliseconds: @escaping @Sendable () -> Int64, uptime: @escaping @Sendable () -> Duration) {
    self.nowMilliseconds = nowMilliseconds
    self.uptime = uptime
  }

  package static let system: GameEnvironment = {
    let start = ContinuousClock.now
    return GameEnvironment(
      nowMilliseconds: { Int64((Date().timeIntervalSince1970 * 1000).rounded()) },
      uptime: { ContinuousClock.now - start })
  }()
}
