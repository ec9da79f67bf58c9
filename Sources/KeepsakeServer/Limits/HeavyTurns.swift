#if Cloud
import Synchronization

/// The turns of requests with much work: one at a time, and after each a pause many times as long, in which everybody
/// else's requests run. So however many there are, they take only a small part of the time. Nobody waits inside the
/// server: who comes too early is told when to come back.
final class HeavyTurns: Sendable {
  private struct State {
    var isBusy = false
    var startedMilliseconds: Int64 = 0
    /// When the next one may begin.
    var nextMilliseconds: Int64 = .min
  }
  private let clock: @Sendable () -> Int64
  private let state = Mutex(State())

  init(clock: @escaping @Sendable () -> Int64) { self.clock = clock }

  /// Begins a turn; call `end` after it.
  ///
  /// - Returns: The seconds until it is worth trying again; nil if the turn has begun.
  func begin() -> Int? {
    state.withLock { state in
      let now = clock()
      // A clock that was set back by far ends the pause.
      let pause = state.nextMilliseconds.subtractingReportingOverflow(now).partialValue
      if state.isBusy { return 1 }
      if state.nextMilliseconds > now, pause <= ServerLimits.longestHeavyPauseMilliseconds {
        return Int((pause + 999) / 1000)
      }
      (state.isBusy, state.startedMilliseconds) = (true, now)
      return nil
    }
  }

  func end() {
    state.withLock { state in
      let now = clock()
      let took = max(0, now - state.startedMilliseconds)
      let pause = min(took * ServerLimits.heavyPauseFactor, ServerLimits.longestHeavyPauseMilliseconds)
      (state.isBusy, state.nextMilliseconds) = (false, now + pause)
    }
  }
}
#endif
