#if Cloud
import KeepsakeReplication

/// Whether an endpoint seems to be there, and how many requests it gets.
///
/// While it answers, many at a time. After some failures without a success between, one at a time, with growing pauses.
/// After a day of that, or after 410, it is stopped: one request an hour. Any success ends all that.
struct WebhookBreaker: Sendable {
  enum State: String, Sendable, Encodable {
    case flowing, failing, stopped
  }
  private let limits: WebhookLimits
  private var failures = 0
  private var isGone = false
  /// When it failed first since the last success.
  private(set) var failingSince: Int64?
  /// When the next request may go, while it isn't flowing.
  private(set) var nextTry: Int64 = 0

  init(_ limits: WebhookLimits) { self.limits = limits }

  func state(now: Int64) -> State {
    if isGone { return .stopped }
    if let failingSince, now >= failingSince.addingClamped(limits.stopMilliseconds) { return .stopped }
    return failures >= limits.failuresUntilTrying ? .failing : .flowing
  }

  /// Returns whether one more request may go.
  ///
  /// - Parameter requests: Those that are under way.
  func admits(requests: Int, now: Int64) -> Bool {
    state(now: now) == .flowing ? requests < limits.requests : requests == 0 && now >= nextTry
  }

  mutating func succeeded() { (failures, isGone, failingSince, nextTry) = (0, false, nil, 0) }

  /// - Parameters:
  ///   - isTry: Whether the request was sent to try the endpoint. What was sent before it began to fail says nothing
  ///     new, and doesn't make the pauses longer.
  ///   - isSuspected: Whether the event was refused before while others were taken: it says nothing of the endpoint.
  ///   - random: 0 to 1.
  mutating func failed(now: Int64, gone: Bool, isTry: Bool, isSuspected: Bool, random: Double) {
    guard isTry || gone && !isGone || state(now: now) == .flowing && !isSuspected else { return }
    failures += 1
    if gone { isGone = true }
    if failingSince == nil { failingSince = now }
    let pause: Int64
    switch state(now: now) {
    case .flowing: return
    case .failing:
      pause = WebhookQueue.pause(
        failures - limits.failuresUntilTrying, first: limits.firstPauseMilliseconds,
        longest: limits.longestTryMilliseconds)
    case .stopped: pause = limits.stoppedTryMilliseconds
    }
    nextTry = now.addingClamped(WebhookQueue.jittered(pause, random))
  }

  /// Has the next request go at once.
  mutating func tryNow() { nextTry = 0 }
}
#endif
