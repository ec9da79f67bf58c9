#if Cloud
import Dispatch
import Synchronization

/// Threads for work that takes long or waits for the disk, beside the few that all requests share: decoding and encoding
/// large messages, and reading the database.
///
/// So many run at a time; the others wait in a bounded queue, first come, first served.
final class WorkThreads: Sendable {
  private struct State {
    var running = 0
    var waiting: ArraySlice<@Sendable () -> Void> = []
  }
  private enum Next { case start, wait, refuse }
  private let maximumRunning: Int
  private let maximumWaiting: Int
  private let purpose: String
  private let queue = DispatchQueue(label: "keepsake.cloud.work", attributes: .concurrent)
  private let state = Mutex(State())

  /// - Parameter purpose: What the work is, in words, for whom is told that there is no room for more.
  init(running: Int, waiting: Int, for purpose: String = "decoding and encoding") {
    maximumRunning = max(running, 1)
    maximumWaiting = waiting
    self.purpose = purpose
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
      case .refuse: continuation.resume(throwing: APIError.overBudget(purpose))
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
