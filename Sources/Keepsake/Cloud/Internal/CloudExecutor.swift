import Dispatch

/// Runs what concerns the cloud on a queue of its own: `close` blocks its thread until the cloud has ended, and that thread
/// may be one of the few that all tasks share.
final class CloudExecutor: SerialExecutor, TaskExecutor {
  private let queue = DispatchQueue(label: "keepsake.cloud", qos: .utility)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async {
      job.runSynchronously(isolatedTo: self.asUnownedSerialExecutor(), taskExecutor: self.asUnownedTaskExecutor())
    }
  }

  func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }
}
