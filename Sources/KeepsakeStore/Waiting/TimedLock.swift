import KeepsakePlatform

/// A lock that a caller gives up waiting for after a time limit.
package final class TimedLock: @unchecked Sendable {
  // Unchecked: `isTaken` is guarded by the condition.
  private let condition = MonotonicCondition()
  private var isTaken = false

  package init() {}

  /// Takes the lock.
  ///
  /// - Parameter limit: How long to wait; nil for no limit. Doesn't depend on the system's date.
  /// - Returns: False, without the lock, if the limit passed first.
  package func lock(within limit: Duration? = nil) -> Bool {
    let deadline = limit.map { ContinuousClock.now + min($0, .longestWait) }
    return condition.withLock {
      guard condition.wait(until: deadline, for: { !isTaken }) else { return false }
      isTaken = true
      return true
    }
  }

  package func unlock() {
    condition.withLock { isTaken = false }
    condition.broadcast()
  }

  /// Runs `body` with the lock.
  package func withLock<Value>(_ body: () throws -> Value) rethrows -> Value {
    _ = lock()
    defer { unlock() }
    return try body()
  }
}
