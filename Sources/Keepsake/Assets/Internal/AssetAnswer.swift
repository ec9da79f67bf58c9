import KeepsakeStore
import Synchronization

/// A result that is set once. A caller waits for it by blocking a thread, or by suspending a task, which may be
/// cancelled.
final class AssetAnswer<Value: Sendable>: Sendable {
  private struct State {
    var result: Result<Value, any Error>?
    var listeners: [@Sendable (Result<Value, any Error>) -> Void] = []
  }
  private let state = Mutex(State())

  var isResolved: Bool { state.withLock { $0.result != nil } }

  /// Sets the result. Only the first one counts.
  func resolve(_ result: Result<Value, any Error>) {
    let listeners = state.withLock { state in
      guard state.result == nil else { return [] as [@Sendable (Result<Value, any Error>) -> Void] }
      state.result = result
      defer { state.listeners = [] }
      return state.listeners
    }
    for listener in listeners { listener(result) }
  }

  /// Blocks until there is a result. Returns nil if the limit passes first. Without a limit, only for results that the
  /// library's own threads are certain to give.
  func wait(within limit: Duration? = nil) -> Result<Value, any Error>? {
    let done = Latch()
    listen { _ in done.open() }
    guard done.wait(within: limit) else { return nil }
    return state.withLock { $0.result }
  }

  /// Suspends until there is a result. If the task is cancelled first, calls `withdraw` and throws `CancellationError`.
  func value(withdrawing withdraw: @escaping @Sendable () -> Void = {}) async throws -> Value {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in listen { continuation.resume(with: $0) } }
    } onCancel: {
      withdraw()
      resolve(.failure(CancellationError()))
    }
  }

  private func listen(_ body: @escaping @Sendable (Result<Value, any Error>) -> Void) {
    let result = state.withLock { state in
      if state.result == nil { state.listeners.append(body) }
      return state.result
    }
    if let result { body(result) }
  }
}
