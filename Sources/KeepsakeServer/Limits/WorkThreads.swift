#if Cloud
import Dispatch
import Synchronization

/// Threads for work that takes long or waits for the disk, beside the few that all requests share: decoding and
/// encoding large messages, and reading the database.
///
/// So many run at a time; the others wait in a bounded queue, first come, first served. Each runs on a serial queue,
/// which gets a thread whenever it has work: those of a concurrent queue come from one pool with a thread for each
/// processor, in which a few long jobs would keep everything else waiting.
final class WorkThreads: Sendable {
  /// What is given the number of the thread on which it runs.
  private typealias Job = @Sendable (Int) -> Void

  private struct State {
    /// The queues that do nothing now.
    var free: [Int]
    var waiting: ArraySlice<Job> = []
  }
  private enum Next {
    case start(Int)
    case wait, refuse
  }
  private let maximumWaiting: Int
  private let purpose: String
  private let queues: [DispatchQueue]
  private let state: Mutex<State>

  /// - Parameter purpose: What the work is, in words, for whom is told that there is no room for more.
  init(running: Int, waiting: Int, for purpose: String = "decoding and encoding") {
    queues = (0..<max(running, 1)).map { DispatchQueue(label: "keepsake.cloud.work.\($0)") }
    state = Mutex(State(free: Array(queues.indices)))
    maximumWaiting = waiting
    self.purpose = purpose
  }

  /// Runs `work`, after waiting if necessary. Throws what it throws, or an `APIError` if too much waits already.
  func run<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await run { _ in try work() }
  }

  /// Runs `work` with the number of its thread, from 0: for what there is one of for each thread, as nothing else runs
  /// there meanwhile.
  func run<Result: Sendable>(_ work: @escaping @Sendable (_ thread: Int) throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      let job: Job = { thread in continuation.resume(with: Swift.Result { try work(thread) }) }
      let next: Next = state.withLock { state in
        if let index = state.free.popLast() { return .start(index) }
        guard state.waiting.count < maximumWaiting else { return .refuse }
        state.waiting.append(job)
        return .wait
      }
      switch next {
      case .start(let index): queues[index].async { self.drain(from: job, on: index) }
      case .wait: break
      case .refuse: continuation.resume(throwing: APIError.overBudget(purpose))
      }
    }
  }

  private func drain(from first: @escaping Job, on index: Int) {
    var next: Job? = first
    while let job = next {
      job(index)
      next = state.withLock { state in
        guard !state.waiting.isEmpty else {
          state.free.append(index)
          return nil
        }
        return state.waiting.removeFirst()
      }
    }
  }
}
#endif
