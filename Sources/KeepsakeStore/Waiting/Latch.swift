import KeepsakePlatform

/// Something that happens once, and that threads wait for.
package final class Latch: @unchecked Sendable {
  // Unchecked: `isOpen` is guarded by the condition.
  private let condition = MonotonicCondition()
  private var isOpen = false

  package init() {}

  /// Lets all that wait continue, and all that will.
  package func open() {
    condition.withLock { isOpen = true }
    condition.broadcast()
  }

  /// Blocks until `open` is called.
  ///
  /// - Parameter limit: How long to wait; nil for no limit. Doesn't depend on the system's date.
  /// - Returns: False if the limit passed first.
  @discardableResult
  package func wait(within limit: Duration? = nil) -> Bool {
    let deadline = limit.map { ContinuousClock.now + min($0, .longestWait) }
    return condition.withLock { condition.wait(until: deadline) { isOpen } }
  }
}

extension Duration {
  /// Practically forever, and within what can be added to the current time.
  package static var longestWait: Duration { .seconds(1 << 30) }
}
