/// When an autosave captures: at an interval, soon after it was asked to, and again after a failure. Pure: the time is handed in.
///
/// Times are those that the game was played, so that a game which was stopped doesn't find everything overdue.
struct SaveSchedule {
  /// Longer spans count as this: nobody waits for it, and no sum of times overflows.
  static let longest: Duration = .seconds(100 * 365 * 86_400)
  /// A save that failed is tried again after this, or after the interval if that is shorter: soon, but not in every frame.
  static let retry: Duration = .seconds(1)

  private let interval: Duration
  private let quiet: Duration
  private let latest: Duration
  private var due: Duration
  /// The first and the last request since the last capture.
  private var requested: (first: Duration, last: Duration)?
  private var isUrgent = false

  /// Spans below zero count as zero, which means: each time it is looked at.
  init(every interval: Duration, debounce: Duration, atMost latest: Duration, now: Duration) {
    self.interval = Self.sane(interval)
    quiet = Self.sane(debounce)
    self.latest = Self.sane(latest)
    due = now + self.interval
  }

  private static func sane(_ span: Duration) -> Duration { min(max(span, .zero), longest) }

  /// Something changed that should be saved: soon, or the next time it is looked at.
  mutating func request(urgent: Bool, at now: Duration) {
    requested = (requested?.first ?? now, now)
    if urgent { isUrgent = true }
  }

  func isDue(at now: Duration) -> Bool {
    if isUrgent || now >= due { return true }
    guard let requested else { return false }
    return now >= requested.last + quiet || now >= requested.first + latest
  }

  /// A capture is made: whatever was asked for is in it.
  mutating func captured(at now: Duration) {
    requested = nil
    isUrgent = false
    due = now + interval
  }

  /// What was captured, or should have been, isn't kept.
  mutating func failed(at now: Duration) { due = min(due, now + min(Self.retry, interval)) }
}
