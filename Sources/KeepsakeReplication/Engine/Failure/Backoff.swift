/// When the engine tries again after a failure: how long it pauses, and what the pause blocks.
///
/// A failed exchange blocks everything. A failed content blocks only contents: what the cloud announces is still
/// fetched, and what is small is still sent.
struct Backoff: Sendable {
  /// What failed.
  enum Source: Hashable, Sendable {
    case exchange
    /// Exchanges succeed, but the cloud keeps asking for contents that it was sent.
    case missingContents
    case content(ContentHash)

    fileprivate var isContent: Bool { if case .content = self { true } else { false } }
  }

  private let firstDelay: Int64
  private let maximumDelay: Int64
  private let maximumRetryAfter: Int64

  /// The failure because of which nothing may begin; nil if exchanges may begin.
  private(set) var exchangeFailure: TransportFailure?
  /// The failure because of which no content may begin, though exchanges may; nil if there is none.
  private(set) var contentFailure: TransportFailure?
  /// The number of consecutive failures.
  private(set) var attempts = 0
  /// Whether the cloud has responded since the last failure. Until then an exchange has to find out, so that no large
  /// content is started in vain.
  private(set) var isReached = false
  private var lastDelay: Int64 = 0
  /// What failed and hasn't succeeded since.
  private var failing: Set<Source> = []

  init(_ options: DeviceEngine.Options) {
    firstDelay = options.firstBackoffMilliseconds
    maximumDelay = options.maximumBackoffMilliseconds
    maximumRetryAfter = options.maximumRetryAfterMilliseconds
  }

  /// Starts a pause before the next attempt: longer after each failure, and not in step with other devices.
  ///
  /// - Parameters:
  ///   - source: What failed.
  ///   - failure: Why.
  ///   - minimum: The shortest pause in milliseconds; capped at the longest that a server may ask for.
  ///   - random: Shortens the pause by up to a half. Used only if the pause is a new one.
  /// - Returns: How long to wait, in milliseconds; nil if a pause that is long enough has begun already.
  mutating func failed(
    _ source: Source, _ failure: TransportFailure, atLeast minimum: Int64,
    using random: inout some RandomNumberGenerator
  ) -> Int64? {
    failing.insert(source)
    isReached = false
    let isPaused = exchangeFailure != nil || (contentFailure != nil && source.isContent)
    if source.isContent { contentFailure = failure } else { exchangeFailure = failure }
    let minimum = min(max(0, minimum), maximumRetryAfter)
    // Requests that were in flight together fail together: that counts as one failure.
    if isPaused, minimum <= lastDelay { return nil }
    if !isPaused { attempts += 1 }
    var delay = firstDelay
    for _ in 1..<max(2, min(attempts, 32)) where attempts > 1 && delay < maximumDelay { delay *= 2 }
    delay = min(delay, maximumDelay)
    delay -= Int64(random.next() % UInt64(delay / 2 + 1))
    lastDelay = max(delay, minimum)
    return lastDelay
  }

  /// Records a success. Failures count as long as something that failed hasn't succeeded since: a content that the
  /// cloud never accepts is tried less and less often, although exchanges succeed.
  mutating func succeeded(_ source: Source) {
    isReached = true
    failing.remove(source)
    if failing.isEmpty { attempts = 0 }
  }

  /// Records that the cloud responded, although it didn't do what was requested.
  mutating func reached() { isReached = true }

  /// Ends the pauses.
  mutating func endPauses() { (exchangeFailure, contentFailure) = (nil, nil) }

  /// Ends the pause, and forgets the failures before it.
  mutating func reset() {
    endPauses()
    (attempts, failing) = (0, [])
  }
}
