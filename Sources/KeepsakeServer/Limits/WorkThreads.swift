#if Cloud
import Dispatch
import Synchronization

/// Threads for work that takes long, beside the few that all requests share: decoding and encoding large messages.
///
/// As many run at a time as there are processors; the others wait in a bounded queue, first come, first served.
final class WorkThreads: Sendable {
  private struct State {
    var running = 0
    var waiting: [@Sendable () -> Void] = []
  }
  private enum Next { case start, wait, refuse }
  private let maximumRunning: Int
  private let maximumWaiting: Int
  private let queue = DispatchQueue(label: "keepsake.cloud.work", attributes: .concurrent)
  private let state = Mutex(State())

  init(running: Int, waiting: Int) {
    maximumRunning = max(running, 1)
    maximumWaiting = waiting
  }

  /// Runs `work`, after waiting if necessary. Throws what it throws, or an `APIError` if too much waits already.
  func run<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      let job: @Sendable () -> Void = { continuation.resume(with: Swift.Result(catching: work)) }
      let next: Next = state.withLock { state in
        if state.running < maximumRunning {
          state.running += 1
          return .start
        }
        guard state.waiting.count < maximumWaiting else { return .refuse }
        state.waiting.append(job)
        return .wait
      }
      switch next {
      case .start: queue.async { self.drain(from: job) }
      case .wait: break
      case .refuse: continuation.resume(throwing: APIError.overBudget("decoding and encoding"))
      }
    }
  }

  private func drain(from first: @escaping @Sendable () -> Void) {
    var next: (@Sendable () -> Void)? = first
    while let job = next {
      job()
      next = state.withLock { state in
        guard !state.waiting.isEmpty else {
          state.running -= 1
          return nil
        }
        return state.waiting.removeFirst()
      }
    }
  }
}
#endif
