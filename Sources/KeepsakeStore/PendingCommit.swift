import Foundation
import Synchronization

/// What was handed to a store and is not yet durable: becomes a value or an error once.
///
/// Waiting blocks the thread (`wait`) or suspends the task (`value`); giving up changes nothing about the commit.
package final class PendingCommit<Value: Sendable>: Sendable {
  private struct State {
    var result: Result<Value, any Error>?
    var tasks: [CheckedContinuation<Value, any Error>] = []
    var threads: [DispatchSemaphore] = []
  }
  private let state = Mutex(State())

  package init() {}

  /// One that is done already.
  package convenience init(_ result: Result<Value, any Error>) {
    self.init()
    complete(result)
  }

  /// The result, if it is known.
  package var result: Result<Value, any Error>? { state.withLock { $0.result } }

  /// Suspends until the commit is durable or has failed.
  package var value: Value {
    get async throws {
      try await withCheckedThrowingContinuation { continuation in
        let result = state.withLock { state in
          if state.result == nil { state.tasks.append(continuation) }
          return state.result
        }
        if let result { continuation.resume(with: result) }
      }
    }
  }

  /// Blocks until the commit is durable or has failed; throws `StoreError.Code.timedOut` when the time is over first.
  ///
  /// For termination handlers. Not for the game's frames.
  package func wait(within limit: Duration? = nil) throws -> Value {
    let done = DispatchSemaphore(value: 0)
    let result = state.withLock { state in
      if state.result == nil { state.threads.append(done) }
      return state.result
    }
    if let result { return try result.get() }
    if let limit {
      guard done.wait(timeout: .now() + limit.interval) == .success else {
        throw StoreError(.timedOut, "the save was not durable within \(limit); it goes on")
      }
    } else {
      done.wait()
    }
    guard let result = self.result else {
      throw StoreError(.io, "a save ended without a result")
    }
    return try result.get()
  }

  /// Gives the result; later ones change nothing.
  package func complete(_ result: Result<Value, any Error>) {
    let waiting = state.withLock { state -> State in
      guard state.result == nil else { return State() }
      let waiting = state
      state = State(result: result)
      return waiting
    }
    for task in waiting.tasks { task.resume(with: result) }
    for thread in waiting.threads { thread.signal() }
  }
}

extension Duration {
  /// In seconds, as Dispatch counts; never negative and never beyond what Dispatch can add to now.
  package var interval: Double {
    let (seconds, attoseconds) = components
    return Swift.min(Swift.max(Double(seconds) + Double(attoseconds) * 1e-18, 0), 1e9)
  }
}
