import Synchronization

/// A clock that advances only as far as a test turns it. A task that sleeps on it wakes once it has been turned far
/// enough.
package final class ManualClock: Sendable {
  private struct Sleeper {
    var deadline: Duration
    var continuation: CheckedContinuation<Void, any Error>
  }
  private struct State {
    var elapsed = Duration.zero
    var last: UInt64 = 0
    var sleepers: [UInt64: Sleeper] = [:]
  }
  private let state = Mutex(State())

  package init() {}

  /// How far it has been turned.
  package var elapsed: Duration { state.withLock { $0.elapsed } }

  /// How long each sleeper still has to sleep, shortest first.
  package var sleeps: [Duration] {
    state.withLock { state in state.sleepers.values.map { $0.deadline - state.elapsed }.sorted() }
  }

  /// Returns once the clock has been turned by `duration`; throws `CancellationError` if the task is cancelled before
  /// that.
  package func sleep(for duration: Duration) async throws { try await sleep { $0 + duration } }

  /// Returns once the clock has been turned to `deadline` in all; throws `CancellationError` if the task is cancelled
  /// before that.
  package func sleep(until deadline: Duration) async throws { try await sleep { _ in deadline } }

  private func sleep(until deadline: (_ elapsed: Duration) -> Duration) async throws {
    let id = state.withLock { state in
      state.last += 1
      return state.last
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        // If the task was cancelled before it slept, the handler found nothing to wake. So this is checked again, under
        // the lock.
        let isOver = state.withLock { state in
          let deadline = deadline(state.elapsed)
          guard deadline > state.elapsed, !Task.isCancelled else { return true }
          state.sleepers[id] = Sleeper(deadline: deadline, continuation: continuation)
          return false
        }
        if isOver { continuation.resume(with: Task.isCancelled ? .failure(CancellationError()) : .success(())) }
      }
    } onCancel: {
      state.withLock { $0.sleepers.removeValue(forKey: id) }?.continuation.resume(throwing: CancellationError())
    }
  }

  /// Turns the clock, and wakes the sleepers that are due, in the order of their deadlines.
  package func advance(by duration: Duration) { advance { $0 + duration } }

  /// Turns the clock to `elapsed` in all; does nothing if it is already past that.
  package func advance(to elapsed: Duration) { advance { max($0, elapsed) } }

  private func advance(to elapsed: (_ elapsed: Duration) -> Duration) {
    let due = state.withLock { state in
      state.elapsed = elapsed(state.elapsed)
      let due = state.sleepers.filter { $0.value.deadline <= state.elapsed }
      for id in due.keys { state.sleepers[id] = nil }
      return due.sorted { ($0.value.deadline, $0.key) < ($1.value.deadline, $1.key) }
    }
    for (_, sleeper) in due { sleeper.continuation.resume() }
  }
}
