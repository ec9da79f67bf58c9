/// A lock with a condition to wait for, whose deadlines don't depend on the date.
///
/// On Linux, `NSCondition`, `NSLock` and `DispatchSemaphore` turn a deadline into a date: if somebody sets the clock,
/// a wait ends at once, or a day late.
package final class MonotonicCondition: @unchecked Sendable {
  // Unchecked: the two don't move, and the system's functions for them are safe from any thread.
  #if os(Windows)
  private let mutex = UnsafeMutablePointer<SRWLOCK>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<CONDITION_VARIABLE>.allocate(capacity: 1)
  #else
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  #endif
  /// One wait's longest part; the caller's loop begins the next. Within what the system's clock can count.
  private static let longestWait = Duration.seconds(3_600)

  #if os(Windows)
  package init() {
    InitializeSRWLock(mutex)
    InitializeConditionVariable(condition)
  }

  deinit {
    condition.deallocate()
    mutex.deallocate()
  }

  package func lock() { AcquireSRWLockExclusive(mutex) }

  package func unlock() { ReleaseSRWLockExclusive(mutex) }

  package func broadcast() { WakeAllConditionVariable(condition) }

  /// Waits for a signal. May also return without one: check what is waited for in a loop. The lock must be held.
  package func wait() { _ = SleepConditionVariableSRW(condition, mutex, INFINITE, 0) }

  /// Waits for a signal, or until the deadline. May also return earlier: check both in a loop. The lock must be held.
  package func wait(until deadline: ContinuousClock.Instant) {
    let left = min(max(deadline - .now, .zero), Self.longestWait).components
    // Rounded up, so that the loop doesn't turn within the last millisecond.
    let milliseconds = left.seconds * 1_000 + (left.attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    _ = SleepConditionVariableSRW(condition, mutex, DWORD(milliseconds), 0)
  }
  #else
  package init() {
    pthread_mutex_init(mutex, nil)
    #if canImport(Darwin)
    // Waits with a relative time there.
    pthread_cond_init(condition, nil)
    #else
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(condition, &attributes)
    pthread_condattr_destroy(&attributes)
    #endif
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  package func lock() { pthread_mutex_lock(mutex) }

  package func unlock() { pthread_mutex_unlock(mutex) }

  package func broadcast() { pthread_cond_broadcast(condition) }

  /// Waits for a signal. May also return without one: check what is waited for in a loop. The lock must be held.
  package func wait() { pthread_cond_wait(condition, mutex) }

  /// Waits for a signal, or until the deadline. May also return earlier: check both in a loop. The lock must be held.
  package func wait(until deadline: ContinuousClock.Instant) {
    let left = min(max(deadline - .now, .zero), Self.longestWait).components
    var time = timespec(tv_sec: Int(left.seconds), tv_nsec: Int(left.attoseconds / 1_000_000_000))
    #if canImport(Darwin)
    pthread_cond_timedwait_relative_np(condition, mutex, &time)
    #else
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    time.tv_sec += now.tv_sec
    time.tv_nsec += now.tv_nsec
    if time.tv_nsec >= 1_000_000_000 {
      time.tv_sec += 1
      time.tv_nsec -= 1_000_000_000
    }
    pthread_cond_timedwait(condition, mutex, &time)
    #endif
  }
  #endif

  package func withLock<Value>(_ body: () throws -> Value) rethrows -> Value {
    lock()
    defer { unlock() }
    return try body()
  }

  /// Waits until `isTrue` returns true, which is asked again after each signal. The lock must be held.
  ///
  /// - Parameter deadline: When to give up; nil for never.
  /// - Returns: False if it still returns false at the deadline.
  package func wait(until deadline: ContinuousClock.Instant?, for isTrue: () -> Bool) -> Bool {
    while !isTrue() {
      guard let deadline else {
        wait()
        continue
      }
      guard deadline > .now else { return false }
      wait(until: deadline)
    }
    return true
  }
}
