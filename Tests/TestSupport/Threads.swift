import Foundation

/// Runs blocking or slow work on a thread of its own: the few threads that all tests share must not wait.
package func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
  try await withCheckedThrowingContinuation { continuation in
    let thread = Thread { continuation.resume(with: Result { try body() }) }
    thread.stackSize = 8 << 20
    thread.start()
  }
}

/// Runs on a thread with a small stack and waits for that thread. What recurses too deep ends the process.
///
/// - Parameter bytes: The stack's size: by default that of secondary threads on Apple's systems. Several times as
///   much under a sanitizer, see `Sanitizer.stackFactor`.
package func onSmallStack<Value: Sendable>(
  of bytes: Int = 512 << 10, _ body: @escaping @Sendable () -> Value
) -> Value {
  let result = Shared<Value?>(nil)
  let done = DispatchSemaphore(value: 0)
  let thread = Thread {
    result.value = body()
    done.signal()
  }
  thread.stackSize = Sanitizer.stackFactor * bytes
  thread.start()
  done.wait()
  guard let value = result.value else { preconditionFailure("the thread ended without a result") }
  return value
}

/// A value that threads of a test share.
package final class Shared<Value: Sendable>: @unchecked Sendable {
  // Unchecked: guarded by the lock.
  private let lock = NSLock()
  private var stored: Value

  package init(_ value: Value) { stored = value }

  package var value: Value {
    get { lock.withLock { stored } }
    set { lock.withLock { stored = newValue } }
  }
}
