#if Cloud
import Synchronization

/// What other tasks and threads have left for a loop, which waits for it.
final class Inbox<Letters: Sendable>: Sendable {
  private let letters: Mutex<Letters>
  /// An element whenever something was left since the last one.
  let wakes: AsyncStream<Void>
  private let wake: AsyncStream<Void>.Continuation

  init(_ letters: Letters) {
    self.letters = Mutex(letters)
    (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
  }

  func post(_ change: (inout Letters) -> Void = { _ in }) {
    letters.withLock { change(&$0) }
    wake.yield()
  }

  var current: Letters { letters.withLock { $0 } }

  /// Returns everything, and leaves what `rest` makes of it.
  func take(leaving rest: (Letters) -> Letters) -> Letters {
    letters.withLock { letters in
      let taken = letters
      letters = rest(taken)
      return taken
    }
  }
}
#endif
