import Foundation

/// Runs blocking or slow work on a thread of its own: the few threads that all tests share must not wait.
package func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
  try await withCheckedThrowingContinuation { continuation in
    let thread = Thread { continuation.resume(with: Result { try body() }) }
    thread.stackSize = 8 << 20
    thread.start()
  }
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
