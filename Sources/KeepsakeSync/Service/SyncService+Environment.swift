import Foundation

extension SyncService {
  /// Time and random numbers, passed in.
  package struct Environment: Sendable {
    /// Milliseconds since 1970.
    package var now: @Sendable () -> Int64
    package var random: any RandomNumberGenerator & Sendable
    /// Returns after this duration; throws `CancellationError` if its task is cancelled before. Every pause of a
    /// service uses it.
    package var sleep: @Sendable (Duration) async throws -> Void
    /// Whether received changes are kept back until `DeviceEngine.deliver(in:)`; called in each step.
    package var holdsArrivals: @Sendable () -> Bool
    /// Plain bytes beyond which a save is downloaded only when it is asked for; nil for no limit. Called in each step.
    package var largestDownload: @Sendable () -> Int?

    package init(
      now: @escaping @Sendable () -> Int64, random: any RandomNumberGenerator & Sendable,
      sleep: @escaping @Sendable (Duration) async throws -> Void,
      holdsArrivals: @escaping @Sendable () -> Bool = { false },
      largestDownload: @escaping @Sendable () -> Int? = { nil }
    ) {
      self.now = now
      self.random = random
      self.sleep = sleep
      self.holdsArrivals = holdsArrivals
      self.largestDownload = largestDownload
    }

    /// The device's clock and the system's random numbers.
    package static var system: Self {
      Self(
        now: { Int64(Date().timeIntervalSince1970 * 1000) }, random: SystemRandomNumberGenerator(),
        sleep: { try await Task.sleep(for: $0) })
    }
  }
}
