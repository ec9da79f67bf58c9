/// When the engine tries again after a failure: how long it pauses, and what the pause holds up.
///
/// A failed exchange holds up everything. A content that failed holds up contents only: what the cloud announces is
/// still fetched, and what is small is still sent.
struct Backoff: Sendable {
  /// Whose failure it was.
  enum Source: Hashable, Sendable {
    case exchange
    case content(ContentHash)
  }

  private let firstDelay: Int64
  private let maximumDelay: Int64
  private let maximumRetryAfter: Int64

  /// The failure for which nothing may begin now; nil if exchanges may.
  private(set) var exchangeFailure: TransportFailure?
  /// The failure for which no content may begin now, though exchanges may; nil if there is none.
  private(set) var contentFailure: TransportFailure?
  /// Failures in a row.
  private(set) var attempts = 0
  /// The cloud has answered since the last failure. Before, an exchange finds out, and no large content is begun in
  /// vain.
  private(set) var isReached = false
  private var lastDelay: Int64 = 0
  /// What failed, and didn't succeed since.
  private var failing: Set<Source> = []

  init(_ options: DeviceEngine.Options) {
    firstDelay = options.firstBackoffMilliseconds
    maximumDelay = options.maximumBackoffMilliseconds
    maximumRetryAfter = options.maximumRetryAfterMilliseconds
  }

  /// Pauses before the next try: longer after each failure, and not in step with other devices.
  ///
  /// - Parameters:
  ///   - source: What failed.
  ///   - failure: Why.
  ///   - minimum: The shortest pause in milliseconds; cut to what a server may ask for.
  ///   - random: Shortens the pause by up to a half. Asked only if the pause is a new one.
  /// - Returns: How long to wait, in milliseconds; nil if a pause is on that is long enough.
  mutating func failed(
    _ source: Source, _ failure: TransportFailure, atLeast minimum: Int64, using random: inout some RandomNumberGenerator
  ) -> Int64? {
    failing.insert(source)
    isReached = false
    let isPaused = exchangeFailure != nil || (contentFailure != nil && source != .exchange)
    if source == .exchange { exchangeFailure = failure } else { contentFailure = failure }
    let minimum = min(max(0, minimum), maximumRetryAfter)
    // What was in flight together fails together: that is one failure.
    if isPaused, minimum <= lastDelay { return nil }
    if !isPaused { attempts += 1 }
    var delay = firstDelay
    for _ in 1..<max(2, min(attempts, 32)) where attempts > 1 && delay < maximumDelay { delay *= 2 }
    delay = min(delay, maximumDelay)
    delay -= Int64(random.next() % UInt64(delay / 2 + 1))
    lastDelay = max(delay, minimum)
    return lastDelay
  }

  /// Failures count as long as something fails that hasn't succeeded since: a content that the cloud never takes is
  /// tried ever more rarely, although exchanges go through.
  mutating func succeeded(_ source: Source) {
    isReached = true
    failing.remove(source)
    if failing.isEmpty { attempts = 0 }
  }

  /// The cloud answered, although it didn't do what it was asked.
  mutating func reached() { isReached = true }

  /// The pause is over.
  mutating func endPauses() { (exchangeFailure, contentFailure) = (nil, nil) }

  /// Ends the pause, and forgets the failures before it.
  mutating func reset() {
    endPauses()
    (attempts, failing) = (0, [])
  }
}
