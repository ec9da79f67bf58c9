#if Cloud
/// How long files are waited for that change all the time, and so never count as complete.
///
/// Looks count besides the time: when the whole machine stands still for a while, no file has had a chance.
struct SettlePatience {
  private let limit: Duration
  private let leastLooks: Int
  private var end: ContinuousClock.Instant
  private var looks = 0

  /// - Parameter watch: How often files are looked at, and how long they have to be unchanged, in milliseconds: at
  ///   least three times of both is waited.
  init(_ least: Duration, watch: (interval: Int, settle: Int)) {
    limit = max(least, .milliseconds(3 * (watch.interval + watch.settle)))
    // While it waits, a command looks as often as the shorter of the two.
    leastLooks = 2 + 2 * watch.settle / max(1, min(watch.interval, watch.settle))
    end = .now + limit
  }

  /// Whether for that long nothing else happened than that files changed.
  var isOver: Bool { looks >= leastLooks && ContinuousClock.now >= end }

  /// To be called after each look at the files.
  mutating func looked() { looks += 1 }

  /// To be called if anything else happened.
  mutating func restart() { (end, looks) = (.now + limit, 0) }
}
#endif
