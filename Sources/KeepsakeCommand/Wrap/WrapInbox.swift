#if Cloud
import Synchronization

/// What other tasks and threads have left for the loop of a wrapped game.
final class WrapInbox: Sendable {
  struct Letters: Sendable {
    var end: GameProcess.End?
    /// The signal that stops the command; it is never taken back.
    var stop: Int32?
  }
  private let letters = Mutex(Letters())
  let wakes: AsyncStream<Void>
  private let wake: AsyncStream<Void>.Continuation

  init() {
    (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
  }

  func post(_ change: (inout Letters) -> Void = { _ in }) {
    letters.withLock { change(&$0) }
    wake.yield()
  }

  var current: Letters { letters.withLock { $0 } }
}
#endif
