#if os(Linux)
import Foundation
import KeepsakePlatform
import Synchronization

/// The threads that call libcurl. Those that are there when the process ends are ended before it, and those that are
/// ending are waited for: otherwise the process might crash, see `LibraryThread`.
enum CurlThreads {
  private struct State {
    var running: [Int: (worker: CurlWorker, thread: LibraryThread)] = [:]
    var lastNumber = 0
    /// Those that have ended but for what is left of them: the next one that ends waits for them.
    var ended: [LibraryThread] = []
    var isEnding = false
  }
  /// More than libcurl and the callbacks need.
  private static let stackBytes = 1 << 20
  /// How long the end of the process may be delayed, by a thread that looks a name up with an old libcurl.
  private static let limit = Duration.seconds(2)
  private static let state = Mutex(State())
  /// That which the threads are of; 0 until there is any.
  private static let process = Atomic<Int32>(0)

  /// Starts a thread for a worker, which will run it. Returns whether there is one.
  static func start(_ worker: CurlWorker) -> Bool {
    // Before the thread, which would make it ready while the process ends.
    guard CurlWorker.isReady else { return false }
    return state.withLock { state in
      if state.isEnding { return false }
      state.lastNumber += 1
      let number = state.lastNumber
      let thread = LibraryThread("keepsake http", stackBytes: stackBytes) {
        worker.run()
        didRun(number)
      }
      guard let thread else { return false }
      state.running[number] = (worker, thread)
      return true
    }
  }

  private static func didRun(_ number: Int) {
    let others: [LibraryThread] = state.withLock { state in
      guard !state.isEnding, let own = state.running.removeValue(forKey: number)?.thread else { return [] }
      defer { state.ended = [own] }
      return state.ended
    }
    for thread in others { thread.join() }
  }

  /// Makes the end of the process, by `exit` or by returning from `main`, wait for the threads. Call it once libcurl is
  /// ready, and only once.
  static func endWithProcess() {
    process.store(SystemCall.processNumber, ordering: .releasing)
    atexit { CurlThreads.endAll() }
  }

  private static func endAll() {
    // A process that was forked has none of the threads, and nobody in it gives the lock back.
    guard process.load(ordering: .acquiring) == SystemCall.processNumber else { return }
    let (workers, threads) = state.withLock { state in
      state.isEnding = true
      return (state.running.values.map(\.worker), state.running.values.map(\.thread) + state.ended)
    }
    for worker in workers { worker.halt() }
    let deadline = ContinuousClock.now + limit
    for thread in threads { thread.join(until: deadline) }
  }
}
#endif
