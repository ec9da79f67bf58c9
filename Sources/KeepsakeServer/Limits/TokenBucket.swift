#if Cloud
/// How fast something may happen: so much at once, and so much per second on average.
package struct BucketRate: Hashable, Sendable {
  /// The most that a bucket holds: what may happen at once after a quiet time.
  package var burst: Int64
  /// What is added in a second, up to `burst`. May be a fraction.
  package var perSecond: Double

  /// - Parameters:
  ///   - burst: At least 1.
  ///   - perSecond: Above 0.
  package init(burst: Int64, perSecond: Double) {
    self.burst = max(burst, 1)
    self.perSecond = max(perSecond, 1e-6)
  }

  /// The rate of so many in an hour, a sixth of them at once.
  package static func hourly(_ count: Int64) -> Self {
    Self(burst: max(count / 6, 1), perSecond: Double(max(count, 1)) / 3600)
  }
}

/// A bucket from which every request takes what it costs, and which fills up again as time passes.
///
/// It may be emptied below zero: a request that costs more than the burst is possible after a quiet time, and what
/// follows waits until its cost is paid. So no honest device is ever locked out by the size of one request.
struct TokenBucket: Hashable, Sendable {
  private(set) var level: Double
  private var filledMilliseconds: Int64

  /// A full bucket.
  init(_ rate: BucketRate, now: Int64) {
    level = Double(rate.burst)
    filledMilliseconds = now
  }

  /// Adds what has accrued. A clock that was set back adds nothing, and takes nothing away.
  mutating func fill(_ rate: BucketRate, now: Int64) {
    let elapsed = max(0, Double(now) - Double(filledMilliseconds))
    level = min(Double(rate.burst), level + elapsed / 1000 * rate.perSecond)
    filledMilliseconds = now
  }

  /// Whether nothing is missing: the bucket is the same as one that was never used.
  func isFull(_ rate: BucketRate, now: Int64) -> Bool {
    var filled = self
    filled.fill(rate, now: now)
    return filled.level >= Double(rate.burst)
  }

  /// Returns how many seconds, at least 1, pass until something may be taken; nil if it may be now.
  ///
  /// - Parameters:
  ///   - cost: What will be taken. A cost up to the burst has to be there as a whole; for a larger one, a full bucket
  ///     is enough.
  ///   - paid: What was taken for the same thing before.
  mutating func wait(for cost: Int64, paid: Int64 = 0, _ rate: BucketRate, now: Int64) -> Int? {
    fill(rate, now: now)
    let needed = Double(min(max(cost + paid, 1), rate.burst) - paid)
    guard level < needed else { return nil }
    return max(1, Int(min((needed - level) / rate.perSecond, 86_400).rounded(.up)))
  }

  /// Takes `cost`, whatever is there.
  mutating func take(_ cost: Int64) { level -= Double(cost) }
}
#endif
