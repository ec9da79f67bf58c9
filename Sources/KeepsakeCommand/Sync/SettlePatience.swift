#if Cloud
/// How long files are waited for that change all the time, and so never count as complete.
struct SettlePatience {
  private let limit: Duration
  private var end: ContinuousClock.Instant

  /// - Parameter watch: How often files are looked at, and how long they have to be unchanged, in milliseconds: at
  ///   least three times of both is waited.
  init(_ least: Duration, watch: (interval: Int, settle: Int)) {
    limit = max(least, .milliseconds(3 * (watch.interval + watch.settle)))
    end = .now + limit
  }

  /// Whether for that long nothing else happened than that files changed.
  var isOver: Bool { ContinuousClock.now >= end }

  /// To be called if anything else happened.
  mutating func restart() { end = .now + limit }
}
#endif
