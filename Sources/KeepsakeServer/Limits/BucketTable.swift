#if Cloud
import Synchronization

/// Buckets by key, bounded in number.
///
/// Only a full bucket is ever forgotten, because a new one is the same. So nobody gets rid of a debt by making the
/// table overflow. While the table is full of buckets that aren't, keys that it doesn't know share a few buckets.
final class BucketTable<Key: Hashable & Sendable>: Sendable {
  private struct State {
    var buckets: [Key: TokenBucket] = [:]
    var shared: [Int: TokenBucket] = [:]
    var sweptMilliseconds: Int64?
  }
  /// Buckets that unknown keys share while the table is full. A key always uses the same one.
  static var sharedBuckets: Int { 64 }
  /// A full table is searched for full buckets at most this often.
  private static var sweepMilliseconds: Int64 { 1_000 }

  let rate: BucketRate
  private let capacity: Int
  private let state = Mutex(State())

  init(_ rate: BucketRate, capacity: Int) {
    self.rate = rate
    self.capacity = max(capacity, 1)
  }

  /// Takes `cost` from a key's bucket, unless it has to wait.
  ///
  /// - Parameter paid: What was taken for the same thing before.
  /// - Returns: The seconds until it may; nil if it was taken.
  func take(_ cost: Int64 = 1, paid: Int64 = 0, from key: Key, now: Int64) -> Int? {
    state.withLock { state in
      if var bucket = state.buckets[key] {
        if let wait = bucket.wait(for: cost, paid: paid, rate, now: now) {
          state.buckets[key] = bucket
          return wait
        }
        bucket.take(cost)
        state.buckets[key] = bucket
        return nil
      }
      if state.buckets.count >= capacity { sweep(&state, now: now) }
      let share = state.buckets.count >= capacity ? Self.share(of: key) : nil
      var bucket = share.flatMap { state.shared[$0] } ?? TokenBucket(rate, now: now)
      let wait = bucket.wait(for: cost, paid: paid, rate, now: now)
      if wait == nil { bucket.take(cost) }
      if let share { state.shared[share] = bucket } else { state.buckets[key] = bucket }
      return wait
    }
  }

  /// Takes `cost` from a key's bucket in any case: what was found out only afterwards.
  func charge(_ cost: Int64, to key: Key, now: Int64) {
    state.withLock { state in
      if state.buckets[key] != nil {
        state.buckets[key]?.fill(rate, now: now)
        state.buckets[key]?.take(cost)
      } else if state.buckets.count < capacity {
        state.buckets[key] = TokenBucket(rate, now: now)
        state.buckets[key]?.take(cost)
      } else {
        let share = Self.share(of: key)
        state.shared[share, default: TokenBucket(rate, now: now)].fill(rate, now: now)
        state.shared[share]?.take(cost)
      }
    }
  }

  /// The number of buckets in memory.
  var count: Int { state.withLock { $0.buckets.count + $0.shared.count } }

  private func sweep(_ state: inout State, now: Int64) {
    // A clock that was set back doesn't stop the sweeps.
    if let swept = state.sweptMilliseconds, now >= swept, now - swept < Self.sweepMilliseconds { return }
    state.sweptMilliseconds = now
    state.buckets = state.buckets.filter { !$0.value.isFull(rate, now: now) }
    state.shared = state.shared.filter { !$0.value.isFull(rate, now: now) }
  }

  /// Swift's hashes have a random seed for each process, so nobody can choose whom to share a bucket with.
  private static func share(of key: Key) -> Int { Int(UInt(bitPattern: key.hashValue) % UInt(sharedBuckets)) }
}
#endif
