/// When an autosave captures: at an interval, soon after a request, and again after a failure. Pure: the time is passed
/// in.
///
/// All times are playtime, so that a game that was stopped doesn't find everything overdue.
struct SaveSchedule {
  /// The longest span; longer ones are clamped to it. Nobody waits that long, and no sum of times overflows.
  static let longest: Duration = .seconds(100 * 365 * 86_400)
  /// How long after a failed save to try again, unless the interval is shorter: soon, but not in every frame.
  static let retry: Duration = .seconds(1)

  private let interval: Duration
  private let quiet: Duration
  private let latest: Duration
  private var due: Duration
  /// The first and the last request since the last capture.
  private var requested: (first: Duration, last: Duration)?
  private var isUrgent = false

  /// Negative spans count as zero, which means due at every check.
  init(every interval: Duration, debounce: Duration, atMost latest: Duration, now: Duration) {
    self.interval = Self.sane(interval)
    quiet = Self.sane(debounce)
    self.latest = Self.sane(latest)
    due = now + self.interval
  }

  private static func sane(_ span: Duration) -> Duration { min(max(span, .zero), longest) }

  /// Records a change that should be saved: soon, or at the next check if it is urgent.
  mutating func request(urgent: Bool, at now: Duration) {
    requested = (requested?.first ?? now, now)
    if urgent { isUrgent = true }
  }

  func isDue(at now: Duration) -> Bool {
    if isUrgent || now >= due { return true }
    guard let requested else { return false }
    return now >= requested.last + quiet || now >= requested.first + latest
  }

  /// Records a capture. It covers all earlier requests.
  mutating func captured(at now: Duration) {
    requested = nil
    isUrgent = false
    due = now + interval
  }

  /// Records that a save failed: the state that was captured, or should have been, isn't kept.
  mutating func failed(at now: Duration) { due = min(due, now + min(Self.retry, interval)) }
}
