import KeepsakePlatform

/// Counts the users of the connections, so that they are closed only while unused.
final class ConnectionUsers: @unchecked Sendable {
  // Unchecked: `count` and `isAlone` are guarded by the condition.
  private let condition = MonotonicCondition()
  private var count = 0
  private var isAlone = false

  func enter() {
    condition.lock()
    while isAlone { condition.wait() }
    count += 1
    condition.unlock()
  }

  func leave() {
    condition.lock()
    count -= 1
    condition.broadcast()
    condition.unlock()
  }

  /// Waits until there are no users. Returns false if there still are some at `deadline`.
  func waitUntilIdle(until deadline: ContinuousClock.Instant?) -> Bool {
    condition.withLock { condition.wait(until: deadline) { count == 0 } }
  }

  /// Runs `body` while there are no users. New users are blocked only once `body` runs, so that a read within a read
  /// can't deadlock.
  func alone<Value>(_ body: () throws -> Value) throws -> Value {
    condition.lock()
    while count > 0 || isAlone { condition.wait() }
    isAlone = true
    condition.unlock()
    defer {
      condition.lock()
      isAlone = false
      condition.broadcast()
      condition.unlock()
    }
    return try body()
  }
}
