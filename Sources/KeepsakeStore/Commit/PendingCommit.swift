import Foundation
import Synchronization

/// What was handed to a store and is not yet durable: becomes a value or an error once.
///
/// Waiting blocks the thread (`wait`) or suspends the task (`value`); giving up changes nothing about the commit.
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

  /// Blocks until the commit is durable or has failed; throws `StoreError.Code.timedOut` when the time is over first.
  ///
  /// For termination handlers. Not for the game's frames.
  package func wait(within limit: Duration? = nil) throws -> Value {
    if let result { return try result.get() }
    let done = DispatchSemaphore(value: 0)
    observe { _ in done.signal() }
    if let limit {
      guard done.wait(timeout: .now() + limit.interval) == .success else {
        throw StoreError(.timedOut, "the save was not durable within \(limit); it goes on")
      }
    } else {
      done.wait()
    }
    guard let result else { throw StoreError(.io, "a save ended without a result") }
    return try result.get()
  }

  /// Gives the result; later ones change nothing.
  package func complete(_ result: Result<Value, any Error>) {
    let observers = state.withLock { state in
      guard state.result == nil else { return [] as [@Sendable (Result<Value, any Error>) -> Void] }
      state.result = result
      defer { state.observers = [] }
      return state.observers
    }
    for observer in observers { observer(result) }
  }

  /// The same commit with another value. `transform` runs where the commit ends.
  package func map<Other: Sendable>(_ transform: @escaping @Sendable (Value) throws -> Other) -> PendingCommit<Other> {
    mapResult { result in result.flatMap { value in Result { try transform(value) } } }
  }

  /// The same commit with another result. `transform` runs where the commit ends.
  package func mapResult<Other: Sendable>(
    _ transform: @escaping @Sendable (Result<Value, any Error>) -> Result<Other, any Error>
  ) -> PendingCommit<Other> {
    let other = PendingCommit<Other>()
    observe { other.complete(transform($0)) }
    return other
  }

  /// Calls `observer` with the result: now if it is known, else where the commit ends.
  package func observe(_ observer: @escaping @Sendable (Result<Value, any Error>) -> Void) {
    let result = state.withLock { state in
      if state.result == nil { state.observers.append(observer) }
      return state.result
    }
    if let result { observer(result) }
  }
}

extension Duration {
  /// In seconds, as Dispatch counts; never negative and never beyond what Dispatch can add to now.
  package var interval: Double {
    let (seconds, attoseconds) = components
    return Swift.min(Swift.max(Double(seconds) + Double(attoseconds) * 1e-18, 0), 1e9)
  }
}
