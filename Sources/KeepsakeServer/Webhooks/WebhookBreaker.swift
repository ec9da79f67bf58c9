#if Cloud
import KeepsakeReplication

/// Whether an endpoint seems to be there, and how many requests it gets.
///
/// While it answers, many at a time. After some failures without a success between, one at a time, with growing pauses.
/// After a day of that, or after 410, it is stopped: one request an hour. Any success ends all that.
struct WebhookBreaker: Sendable {
  enum State: String, Sendable, Codable {
    case flowing, failing, stopped
  }
  private let limits: WebhookLimits
  /// Without a success between.
  private(set) var failures = 0
  private var isGone = false
  /// When it failed first since the last success.
  private(set) var failingSince: Int64?
  /// When the next request may go, while it isn't flowing.
  private(set) var nextTry: Int64 = 0

  init(_ limits: WebhookLimits) { self.limits = limits }

  /// Goes on after another server has.
  ///
  /// - Parameters:
  ///   - ahead: By how much the server's clock is ahead of the time by which pauses go.
  ///   - random: 0 to 1.
  init(_ limits: WebhookLimits, after report: WebhookReport, now: Int64, ahead: Int64, random: Double) {
    self.limits = limits
    (failures, isGone) = (report.failures, report.isGone)
    failingSince = report.failingSinceMilliseconds.map { min(now, $0.addingClamped(-ahead)) }
    if failures > 0 || isGone { failingSince = failingSince ?? now }
    nextTry = now.addingClamped(WebhookQueue.jittered(pause(now: now), random))
  }

  func report(ahead: Int64, failure: String?) -> WebhookReport {
    WebhookReport(
      failures: failures, failingSinceMilliseconds: failingSince?.addingClamped(ahead), isGone: isGone,
      failure: failure)
  }

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
    if state(now: now) != .flowing { nextTry = now.addingClamped(WebhookQueue.jittered(pause(now: now), random)) }
  }

  private func pause(now: Int64) -> Int64 {
    switch state(now: now) {
    case .flowing: 0
    case .failing:
      WebhookQueue.pause(
        failures - limits.failuresUntilTrying, first: limits.firstPauseMilliseconds,
        longest: limits.longestTryMilliseconds)
    case .stopped: limits.stoppedTryMilliseconds
    }
  }

  /// Has the next request go at once.
  mutating func tryNow() { nextTry = 0 }
}
#endif
