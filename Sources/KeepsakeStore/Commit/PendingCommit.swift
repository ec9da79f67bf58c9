import Foundation
import Synchronization

/// A commit that was submitted to the store and may not be durable yet. Completes once, with a value or an error.
///
/// Waiting blocks the thread (`wait`) or suspends the task (`value`). A caller that stops waiting doesn't affect the
/// commit.
package final class PendingCommit<Value: Sendable>: Sendable {
  private struct State {
    var result: Result<Value, any Error>?
    var observers: [@Sendable (Result<Value, any Error>) -> Void] = []
  }
  private let state = Mutex(State())

  package init() {}

  /// The result, if it is known.
  package var result: Result<Value, any Error>? { state.withLock { $0.result } }

  /// Suspends until the commit is durable or has failed.
  package var value: Value {
    get async throws {
      try await withCheckedThrowingContinuation { continuation in observe { continuation.resume(with: $0) } }
    }
  }

  /// Blocks until the commit is durable or has failed. For termination handlers, not for the game's frames.
  ///
  /// - Throws: The commit's error, or `StoreError.Code.timedOut` if `limit` expires first.
  package func wait(within limit: Duration? = nil) throws -> Value {
    if let result { return try result.get() }
    let done = Latch()
    observe { _ in done.open() }
    guard done.wait(within: limit) else {
      throw StoreError(
        .timedOut, "the save was not durable within \(limit ?? .longestWait); it is still being written")
    }
    guard let result else { throw StoreError(.io, "a save ended without a result") }
    return try result.get()
  }

  /// Sets the result; later calls have no effect.
  package func complete(_ result: Result<Value, any Error>) {
    let observers = state.withLock { state in
      guard state.result == nil else { return [] as [@Sendable (Result<Value, any Error>) -> Void] }
      state.result = result
      defer { state.observers = [] }
      return state.observers
    }
    for observer in observers { observer(result) }
  }

  /// Returns the same commit with a transformed value. `transform` runs when and where an observer does (`observe`).
  package func map<Other: Sendable>(_ transform: @escaping @Sendable (Value) throws -> Other) -> PendingCommit<Other> {
    mapResult { result in result.flatMap { value in Result { try transform(value) } } }
  }

  /// Returns the same commit with a transformed result. `transform` runs when and where an observer does (`observe`).
  package func mapResult<Other: Sendable>(
    _ transform: @escaping @Sendable (Result<Value, any Error>) -> Result<Other, any Error>
  ) -> PendingCommit<Other> {
    let other = PendingCommit<Other>()
    observe { other.complete(transform($0)) }
    return other
  }

  /// Calls `observer` with the result: immediately if it is known, otherwise on the thread that completes the commit.
  package func observe(_ observer: @escaping @Sendable (Result<Value, any Error>) -> Void) {
    let result = state.withLock { state in
      if state.result == nil { state.observers.append(observer) }
      return state.result
    }
    if let result { observer(result) }
  }
}

extension Duration {
  /// The duration in seconds; never negative, and never more than can be added to the current time.
  package var interval: Double {
    let (seconds, attoseconds) = components
    return Swift.min(Swift.max(Double(seconds) + Double(attoseconds) * 1e-18, 0), 1e9)
  }
}
