#if Cloud
import Foundation
import KeepsakeReplication

/// Which event is sent next to one endpoint: a pure value, without time, database or network.
///
/// Invariants:
/// - Of each lane (a player's events), at most one event is known here, the oldest that isn't delivered; the next one
///   is looked up when it was. So memory depends on how many players have events, and not on how many events.
/// - An event is under way at most once, and no other one of its lane with it.
/// - Ids were looked at in their order up to `scanned`. Whatever came before it is known, is in a lane with more, or
///   was delivered.
struct WebhookQueue: Sendable {
  /// An event that may be sent.
  struct Pick: Hashable, Sendable {
    var id: Int64
    var lane: Data
  }
  enum Answer: Sendable {
    case accepted
    case failed(String)
    /// 410: the other side wants nothing any more.
    case gone
  }
  enum Result: Hashable, Sendable {
    case delivered
    /// It becomes a dead letter, for this reason.
    case dead(String)
    /// It is sent again later.
    case again
  }
  private struct Lane: Sendable {
    var head: Int64
    /// Whether there may be further events in the database.
    var hasMore = false
    /// Since it was tried for the first time, or the endpoint came back.
    var failures = 0
    var failingSince: Int64?
    /// Failures before which the endpoint had taken something since the failure before: it is the event's own fault.
    var refusals = 0
    var successesAtFailure: Int?
    /// Whether it was refused between others that were taken. One refusal may be the first one of an outage.
    var isSuspected: Bool { refusals > 1 }
  }

  private let limits: WebhookLimits
  private var lanes: [Data: Lane] = [:]
  private var fresh: [Pick] = []
  private var firstFresh = 0
  private var waiting = WaitingPicks()
  /// Lanes whose next event has to be looked up, with the id after which.
  private(set) var refills: [Data: Int64] = [:]
  private(set) var scanned: Int64 = 0
  private(set) var requests = 0
  /// Whether the request that was sent last tries a failing endpoint; then no other is under way.
  private var isTry = false
  /// Whether an event that wasn't sent before goes first: new ones and those to be sent again take turns, so that many
  /// of either hold up none of the other.
  private var prefersFresh = false
  private(set) var breaker: WebhookBreaker
  private var successes = 0
  /// Whether there may be events after `scanned`.
  private var hasUnscanned = true

  init(_ limits: WebhookLimits, breaker: WebhookBreaker? = nil) {
    self.limits = limits
    self.breaker = breaker ?? WebhookBreaker(limits)
  }

  private var freshCount: Int { fresh.count - firstFresh }

  // MARK: Looking up

  /// Notes that there may be new events.
  mutating func notice() { hasUnscanned = true }

  /// Returns whether events after `scanned` should be looked up. While an endpoint is down, or all requests are under
  /// way, a few are enough: else each thing that players do would be looked up for nothing.
  func wantsScan(now: Int64) -> Bool { hasUnscanned && hasRoom(now: now) }

  /// Returns whether more would be looked up if there may be any.
  func hasRoom(now: Int64) -> Bool {
    let mayBegin = breaker.state(now: now) == .flowing && requests < limits.requests
    return freshCount < (mayBegin ? 4 * limits.requests : 1)
  }

  /// Takes what a scan has found, in the order of the ids.
  ///
  /// - Parameters:
  ///   - isComplete: Whether there were no more at that time.
  ///   - settled: Ids that were delivered and aren't removed yet.
  mutating func found(_ found: [Pick], isComplete: Bool, except settled: Set<Int64>) {
    if isComplete { hasUnscanned = false }
    for pick in found where pick.id > scanned {
      scanned = pick.id
      if settled.contains(pick.id) || refills[pick.lane] != nil { continue }
      if lanes[pick.lane] == nil {
        begin(pick, hasMore: false)
      } else if lanes[pick.lane]?.head != pick.id {
        lanes[pick.lane]?.hasMore = true
      }
    }
  }

  /// Takes the next event of a lane; nil if there is none.
  mutating func refilled(_ lane: Data, with next: Int64?) {
    guard refills.removeValue(forKey: lane) != nil, let next else { return }
    begin(Pick(id: next, lane: lane), hasMore: true)
  }

  private mutating func begin(_ pick: Pick, hasMore: Bool) {
    lanes[pick.lane] = Lane(head: pick.id, hasMore: hasMore)
    fresh.append(pick)
  }

  // MARK: Sending

  /// Returns the next event to send, which counts as under way from now on; nil if none may be sent now.
  mutating func next(now: Int64) -> Pick? {
    guard breaker.admits(requests: requests, now: now) else { return nil }
    // One that tries a failing endpoint is another each time: it may be only one event that the endpoint refuses.
    let isTrying = breaker.state(now: now) != .flowing
    let pick: Pick?
    if isTrying {
      pick = popFresh() ?? waiting.popDue(.max)
    } else {
      pick = prefersFresh ? popFresh() ?? waiting.popDue(now) : waiting.popDue(now) ?? popFresh()
      prefersFresh.toggle()
    }
    guard let pick else { return nil }
    requests += 1
    isTry = isTrying
    return pick
  }

  private mutating func popFresh() -> Pick? {
    guard freshCount > 0 else { return nil }
    let pick = fresh[firstFresh]
    firstFresh += 1
    if firstFresh > 1_024, 2 * firstFresh > fresh.count {
      fresh.removeFirst(firstFresh)
      firstFresh = 0
    }
    return pick
  }

  /// Takes what came of an event that was sent.
  ///
  /// - Parameter random: 0 to 1.
  mutating func answered(_ pick: Pick, _ answer: Answer, now: Int64, random: Double) -> Result {
    requests -= 1
    switch answer {
    case .accepted:
      successes += 1
      let wasFlowing = breaker.state(now: now) == .flowing
      breaker.succeeded()
      if !wasFlowing { retryUnsuspected() }
      advance(pick)
      return .delivered
    case .failed(let reason):
      breaker.failed(
        now: now, gone: false, isTry: isTry, isSuspected: lanes[pick.lane]?.isSuspected ?? false, random: random)
      return refused(pick, reason, now: now, random)
    case .gone:
      breaker.failed(now: now, gone: true, isTry: isTry, isSuspected: false, random: random)
      return refused(pick, "status 410", now: now, random)
    }
  }

  /// Takes that an event isn't there any more, or is a dead letter: it wasn't sent.
  mutating func vanished(_ pick: Pick) {
    requests -= 1
    lanes[pick.lane]?.hasMore = true
    advance(pick)
  }

  /// Takes that an event wasn't sent, or that nobody knows whether: it is the next one of its lane again.
  mutating func returned(_ pick: Pick) {
    requests -= 1
    waiting.push(pick, due: 0)
  }

  /// Has everything that waits for its next attempt be sent now.
  mutating func retryAll() {
    for lane in lanes.keys { lanes[lane]?.failures = 0 }
    waiting.makeDue { _ in true }
    breaker.tryNow()
  }

  /// Has what failed while the endpoint was down be sent now. Events that it has refused between others that it took
  /// keep their pauses: sent again each time, they would be the failures that end each return.
  private mutating func retryUnsuspected() {
    let known = lanes
    for (lane, state) in known where !state.isSuspected { lanes[lane]?.failures = 0 }
    waiting.makeDue { pick in known[pick.lane]?.isSuspected != true }
  }

  private mutating func refused(_ pick: Pick, _ reason: String, now: Int64, _ random: Double) -> Result {
    guard var lane = lanes[pick.lane] else { return .again }
    lane.failures += 1
    let since = lane.failingSince ?? now
    lane.failingSince = since
    if lane.successesAtFailure != successes { lane.refusals += 1 }
    lane.successesAtFailure = successes
    lanes[pick.lane] = lane
    if lane.refusals >= limits.giveUpRefusals, now.addingClamped(-since) >= limits.giveUpMilliseconds {
      advance(pick)
      return .dead(reason)
    }
    let pause = Self.pause(
      lane.failures, first: limits.firstPauseMilliseconds, longest: limits.longestPauseMilliseconds)
    waiting.push(pick, due: now.addingClamped(Self.jittered(pause, random)))
    return .again
  }

  private mutating func advance(_ pick: Pick) {
    guard let lane = lanes.removeValue(forKey: pick.lane) else { return }
    if lane.hasMore { refills[pick.lane] = lane.head }
  }

  // MARK: Time

  /// When there may be something to do without anything new; nil if never.
  func wakeMilliseconds(now: Int64) -> Int64? {
    if !refills.isEmpty || wantsScan(now: now) { return now }
    if breaker.state(now: now) == .flowing {
      guard requests < limits.requests else { return nil }
      return freshCount > 0 ? now : waiting.due
    }
    guard requests == 0, freshCount > 0 || waiting.due != nil else { return nil }
    return max(now, breaker.nextTry)
  }

  /// The pause after so many failures: doubled each time.
  static func pause(_ failures: Int, first: Int64, longest: Int64) -> Int64 {
    min(longest, first << Int64(min(max(0, failures - 1), 24)))
  }

  /// Half of the pause to all of it, so that those who failed together don't come back together.
  static func jittered(_ pause: Int64, _ random: Double) -> Int64 {
    pause / 2 + Int64(Double(pause - pause / 2) * min(max(0, random), 1))
  }
}

/// Events that wait for their next attempt, the one that is due first on top: a binary heap.
private struct WaitingPicks: Sendable {
  private var heap: [(due: Int64, pick: WebhookQueue.Pick)] = []

  var due: Int64? { heap.first?.due }

  private func precedes(_ left: Int, _ right: Int) -> Bool {
    (heap[left].due, heap[left].pick.id) < (heap[right].due, heap[right].pick.id)
  }

  mutating func push(_ pick: WebhookQueue.Pick, due: Int64) {
    heap.append((due, pick))
    var index = heap.count - 1
    while index > 0, precedes(index, (index - 1) / 2) {
      heap.swapAt(index, (index - 1) / 2)
      index = (index - 1) / 2
    }
  }

  mutating func popDue(_ now: Int64) -> WebhookQueue.Pick? {
    guard let top = heap.first, top.due <= now else { return nil }
    heap.swapAt(0, heap.count - 1)
    heap.removeLast()
    var index = 0
    while true {
      var least = index
      for child in [2 * index + 1, 2 * index + 2] where child < heap.count && precedes(child, least) { least = child }
      if least == index { return top.pick }
      heap.swapAt(index, least)
      index = least
    }
  }

  mutating func makeDue(where isMeant: (WebhookQueue.Pick) -> Bool) {
    // What is sorted is a heap.
    heap = heap.map { (isMeant($0.pick) ? 0 : $0.due, $0.pick) }.sorted {
      ($0.due, $0.pick.id) < ($1.due, $1.pick.id)
    }
  }
}
#endif
