import Foundation
import KeepsakeStore
import Synchronization

/// What somebody waits for, given once: by blocking a thread, or by suspending a task, which may be cancelled.
final class AssetAnswer<Value: Sendable>: Sendable {
  private struct State {
    var result: Result<Value, any Error>?
    var listeners: [@Sendable (Result<Value, any Error>) -> Void] = []
  }
  private let state = Mutex(State())

  var isResolved: Bool { state.withLock { $0.result != nil } }

  /// The first result counts; later ones change nothing.
  func resolve(_ result: Result<Value, any Error>) {
    let listeners = state.withLock { state in
      guard state.result == nil else { return [] as [@Sendable (Result<Value, any Error>) -> Void] }
      state.result = result
      defer { state.listeners = [] }
      return state.listeners
    }
    for listener in listeners { listener(result) }
  }

  /// Blocks; nil if the time is over first. Without a limit for what the library's own threads are sure to end.
  func wait(within limit: Duration? = nil) -> Result<Value, any Error>? {
    let done = DispatchSemaphore(value: 0)
    listen { _ in done.signal() }
    if let limit {
      guard done.wait(timeout: .now() + limit.interval) == .success else { return nil }
    } else {
      done.wait()
    }
    return state.withLock { $0.result }
  }

  /// Suspends. `withdraw` is called if the task is cancelled first, which throws `CancellationError`.
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
