import Dispatch

/// Stops another thread at a point of its work until the test lets it continue.
package struct Gate: Sendable {
  private let arrived = DispatchSemaphore(value: 0)
  private let opened = DispatchSemaphore(value: 0)

  package init() {}

  /// Called on the thread to stop: reports its arrival, then blocks until `open()`.
  package func pass() {
    arrived.signal()
    opened.wait()
  }

  /// Blocks until a thread has arrived at the gate.
  package func waitForArrival() { arrived.wait() }

  /// Lets one thread continue, also one that has yet to arrive.
  package func open() { opened.signal() }
}
