import Dispatch

/// Runs an actor on a queue of its own: transactions wait for the disk, and the threads that all tasks share must not.
final class SyncExecutor: SerialExecutor {
  private let queue = DispatchQueue(label: "keepsake.sync")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }

  func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }
}
