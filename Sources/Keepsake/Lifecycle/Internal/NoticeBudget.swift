import Synchronization

/// How long notifications may keep their poster waiting: those that follow one another at once share one deadline, for
/// all autosaves together. The system ends an app whose main thread doesn't come back.
enum NoticeBudget {
  /// After this long without a notification, the next one has the whole deadline.
  static let quiet: Duration = .seconds(1)

  private struct Burst {
    var used: Duration = .zero
    var last: ContinuousClock.Instant
  }
  private static let bursts = Mutex<[ObjectIdentifier: Burst]>([:])

  /// One notification's part of the deadline.
  struct Share: Sendable {
    fileprivate let center: ObjectIdentifier
    fileprivate let began: ContinuousClock.Instant
    /// How long it may take.
    let limit: Duration

    /// Notes how much was used.
    func end(at now: ContinuousClock.Instant = .now) {
      bursts.withLock { bursts in
        let used = bursts[center]?.used ?? .zero
        bursts[center] = Burst(used: used + (now - began), last: now)
      }
    }
  }

  /// - Parameters:
  ///   - center: The notification centre.
  ///   - isNew: Whether the game comes back, after which everything begins anew.
  static func share(
    of deadline: Duration, at center: ObjectIdentifier, isNew: Bool, now: ContinuousClock.Instant = .now
  ) -> Share {
    let used = bursts.withLock { bursts in
      if isNew || bursts[center].map({ now - $0.last >= quiet }) ?? false { bursts[center] = nil }
      return bursts[center]?.used ?? .zero
    }
    return Share(center: center, began: now, limit: max(deadline - used, .zero))
  }
}
