/// The wake-up that the engine has asked for. There is one at most: a later one replaces an earlier one.
struct WakeUps: Sendable {
  /// It is the poll, or something that comes no later.
  private var isPollSet = false
  /// It is for another step, without a reason of its own.
  private var isForNextStep = false

  /// The wake-up came.
  ///
  /// - Returns: Whether it was only for another step, and so no pause is over.
  mutating func woke() -> Bool {
    isPollSet = false
    defer { isForNextStep = false }
    return isForNextStep
  }

  /// Work is left that this step had no time for.
  mutating func requestStep() { isForNextStep = true }

  /// The poll counts from now on, not from when it was asked for.
  mutating func restartPoll() { isPollSet = false }

  /// Something else was asked for in its place: the end of a pause, or nothing yet.
  mutating func replace() { (isPollSet, isForNextStep) = (false, false) }

  /// The poll was asked for in its place.
  mutating func replaceByPoll() { (isPollSet, isForNextStep) = (true, false) }

  /// What to ask for at the end of a step.
  ///
  /// - Parameters:
  ///   - isPaused: The wake-up that is coming is the end of a pause, and goes on with everything.
  ///   - isExchanging: An exchange is in flight: its answer comes first.
  ///   - poll: How often to poll, in milliseconds.
  /// - Returns: Milliseconds until the wake-up; nil if none has to be asked for.
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
