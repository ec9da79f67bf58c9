#if Cloud
import HummingbirdCore
import Logging
import NIOCore

/// A connection whose requests are handled on the thread that reads and writes it. On another one, each request would
/// change threads twice more, which takes as long as handling a small one.
struct LoopChannel<Base: ServerChildChannel>: ServerChildChannel {
  typealias Value = Base.Value

  var base: Base

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
    base.setup(channel: channel, logger: logger)
  }

  func handle(value: Value, logger: Logger) async {
    await withTaskExecutorPreference(LoopExecutor(value.channel.eventLoop)) {
      await base.handle(value: value, logger: logger)
    }
  }
}

/// Runs tasks on the thread of an event loop.
private final class LoopExecutor: TaskExecutor {
  private let loop: any EventLoop

  init(_ loop: any EventLoop) { self.loop = loop }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
#endif
