import Foundation

extension SyncService {
  /// Time and chance, handed in.
  package struct Environment: Sendable {
    /// Milliseconds since 1970.
    package var now: @Sendable () -> Int64
    package var random: any RandomNumberGenerator & Sendable
    /// Returns when that long has passed; throws `CancellationError` when its task is cancelled before. Every pause of a service is one of
    /// these.
    package var sleep: @Sendable (Duration) async throws -> Void
    /// Whether what comes is kept back until `DeviceEngine.deliver(in:)`; asked in each step.
    package var holdsArrivals: @Sendable () -> Bool
    /// Plain bytes beyond which a save comes when it is asked for; nil for never. Asked in each step.
    package var largestDownload: @Sendable () -> Int?

    package init(
      now: @escaping @Sendable () -> Int64, random: any RandomNumberGenerator & Sendable,
      sleep: @escaping @Sendable (Duration) async throws -> Void, holdsArrivals: @escaping @Sendable () -> Bool = { false },
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
