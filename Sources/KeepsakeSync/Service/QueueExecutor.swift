package import Dispatch

/// Runs actors and tasks on a queue of its own, so that code which waits there for the disk, or for the cloud to stop,
/// doesn't block one of the few threads that all tasks share.
package final class QueueExecutor: SerialExecutor, TaskExecutor {
  private let queue: DispatchQueue

  /// - Parameter label: The queue's name, for debuggers.
  package init(label: String, qos: DispatchQoS = .unspecified) { queue = DispatchQueue(label: label, qos: qos) }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async {
      job.runSynchronously(isolatedTo: self.asUnownedSerialExecutor(), taskExecutor: self.asUnownedTaskExecutor())
    }
  }

  package func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }
}
