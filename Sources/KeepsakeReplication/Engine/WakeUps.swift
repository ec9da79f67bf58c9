/// The wake-up that the engine has requested. There is at most one: a later one replaces an earlier one.
struct WakeUps: Sendable {
  /// The requested wake-up is the poll, or comes no later than that.
  private var isPollSet = false
  /// The next wake-up is only for another step, and has no reason of its own.
  private var isForNextStep = false

  /// Handles a wake-up.
  ///
  /// - Returns: Whether it was only for another step, so that no pause has ended.
  mutating func woke() -> Bool {
    isPollSet = false
    defer { isForNextStep = false }
    return isForNextStep
  }

  /// Requests another step for work that this step had no time for.
  mutating func requestStep() { isForNextStep = true }

  /// Counts the time to the next poll from this moment, not from when the poll was requested.
  mutating func restartPoll() { isPollSet = false }

  /// Records that something else replaces the wake-up: the end of a pause, or nothing yet.
  mutating func replace() { (isPollSet, isForNextStep) = (false, false) }

  /// Records that the poll replaces the wake-up.
  mutating func replaceByPoll() { (isPollSet, isForNextStep) = (true, false) }

  /// Decides which wake-up to request at the end of a step.
  ///
  /// - Parameters:
  ///   - isPaused: The pending wake-up is the end of a pause, and resumes everything.
  ///   - isExchanging: An exchange is in flight: its response comes first.
  ///   - poll: How often to poll, in milliseconds.
  /// - Returns: Milliseconds until the wake-up; nil if none has to be requested.
  mutating func next(isPaused: Bool, isExchanging: Bool, poll: Int64) -> Int64? {
    guard !isPaused else {
      isForNextStep = false
      return nil
    }
    if isForNextStep { return 0 }
    guard !isExchanging, !isPollSet else { return nil }
    isPollSet = true
    return poll
  }
}
