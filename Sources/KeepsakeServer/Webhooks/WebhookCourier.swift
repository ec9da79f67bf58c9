#if Cloud
import Foundation
import KeepsakeReplication
import Logging

/// An event on its way to an endpoint.
struct WebhookDelivery: Sendable {
  /// Which time it is that this server delivers the endpoint's events.
  var term = 0
  var pick: WebhookQueue.Pick
  var request: WebhookRequest
}

/// Brings one endpoint its events: looks them up, says which to send, and removes those that were delivered.
///
/// It sends nothing itself and never sleeps, so that tests play a day in a moment.
actor WebhookCourier {
  nonisolated let endpoint: WebhookEndpoint
  private let storage: any WebhookStorage
  private let secrets: WatchedFiles<WebhookSecrets>
  private let limits: WebhookLimits
  private let metrics: ServerMetrics
  private let logger: Logger
  private let clock: @Sendable () -> Int64
  /// Pauses and deadlines go by this one, so that nobody who sets the clock ends or prolongs them.
  private let steady: @Sendable () -> Int64
  private let random: @Sendable () -> Double

  private var queue: WebhookQueue
  private var lease: WebhookLease
  /// Counts the times that this server has held the endpoint.
  private var term = 0
  /// How often the studio has had everything sent again at once, as far as this server knows.
  private var retries: Int64 = 0
  /// The endpoint's failures before this server tried it.
  private var earlierFailures = 0
  /// When it looked for other servers' events.
  private var lookedAt: Int64?
  /// Delivered events that are still in the database, with those that have to become dead letters.
  private var delivered: Set<Int64> = []
  private var dead: [(number: Int64, reason: String)] = []
  private var unsettledSince: Int64?
  private var sweptAt: Int64?
  /// How many events had been written then.
  private var addedAtSweep = 0
  /// What the clock said then.
  private var clockAtSweep: Int64 = 0
  /// Until then, by the steady clock, nothing is too old: the clock was set, and may be wrong.
  private var agesFrom: Int64 = 0
  private var counts = WebhookCounts()
  private var lastFailure: String?
  private var state = WebhookBreaker.State.flowing
  /// After the database has failed, nothing happens until then.
  private var restsUntil: Int64 = 0

  /// - Parameters:
  ///   - clock: Returns milliseconds since 1970.
  ///   - steady: Returns milliseconds since any moment, whoever sets the clock.
  ///   - random: Returns a number from 0 to 1, for pauses.
  init(
    _ endpoint: WebhookEndpoint, storage: any WebhookStorage, limits: WebhookLimits = WebhookLimits(),
    metrics: ServerMetrics, logger: Logger, clock: @escaping @Sendable () -> Int64,
    steady: @escaping @Sendable () -> Int64 = WebhookCourier.steadyMilliseconds,
    random: @escaping @Sendable () -> Double = { Double.random(in: 0...1) }
  ) throws {
    (self.endpoint, self.storage, self.limits) = (endpoint, storage, limits)
    (self.metrics, self.logger, self.random) = (metrics, logger, random)
    (self.clock, self.steady) = (clock, steady)
    queue = WebhookQueue(limits)
    var source = SystemRandomNumberGenerator()
    lease = WebhookLease(limits, holder: OperationID(using: &source).bytes)
    secrets = try WatchedFiles([endpoint.secrets], what: "secrets of the webhook \(endpoint.name)", logger: logger) {
      try WebhookSecrets(endpoint.secrets, of: endpoint.name)
    }
  }

  private static let began = ContinuousClock.now

  /// Returns the milliseconds since the first call.
  @Sendable static func steadyMilliseconds() -> Int64 { Int64((ContinuousClock.now - began) / .milliseconds(1)) }

  // MARK: Working

  /// Does what is due, and returns what to send now. Call it from one place.
  func pass() async -> [WebhookDelivery] {
    let now = steady()
    guard now >= restsUntil else { return [] }
    do {
      let maySend = try await hold(now)
      if delivered.count >= limits.removedTogether || isDue(unsettledSince, limits.removalMilliseconds, now) {
        try await settle()
      }
      if added - addedAtSweep >= limits.sweepEvents || isHeld && (sweptAt == nil || now >= sweepsAt) {
        try await sweep(now)
      }
      // What was delivered and can't be removed must not grow without end.
      guard maySend, delivered.count < 64 * limits.removedTogether else { return [] }
      if storage.sharesWebhooks, now >= looksAt {
        lookedAt = now
        queue.notice()
      }
      try await look(now)
      return try await deliveries(now)
    } catch {
      logger.failure("Events for a webhook can't be looked up or removed now", error)
      restsUntil = now.addingClamped(limits.restMilliseconds)
      return []
    }
  }

  private var added: Int { storage.outbox?.added ?? 0 }
  private var isHeld: Bool { !storage.sharesWebhooks || lease.isHeld }
  private var sweepsAt: Int64 { (sweptAt ?? steady()).addingClamped(limits.sweepMilliseconds) }
  private var looksAt: Int64 { (lookedAt ?? .min).addingClamped(limits.lookMilliseconds) }

  private func isDue(_ since: Int64?, _ after: Int64, _ now: Int64) -> Bool {
    since.map { now >= $0.addingClamped(after) } ?? false
  }

  private func look(_ now: Int64) async throws {
    let refills = queue.refills
    let limit = queue.wantsScan(now: now) ? limits.scanned : 0
    guard limit > 0 || !refills.isEmpty else { return }
    let seen = try await storage.webhookEvents(
      of: endpoint.name, after: queue.scanned, limit: limit, refills: refills)
    if limit > 0 {
      queue.found(seen.found, isComplete: seen.found.count < limit, except: delivered)
    }
    for (lane, next) in seen.next { queue.refilled(lane, with: next) }
  }

  private func deliveries(_ now: Int64) async throws -> [WebhookDelivery] {
    var picks: [WebhookQueue.Pick] = []
    while let pick = queue.next(now: now) { picks.append(pick) }
    guard !picks.isEmpty else { return [] }
    let rows: [Int64: WebhookRow]
    do {
      let found = try await storage.webhookRows(picks.map(\.id), of: endpoint.name)
      rows = Dictionary(found.map { ($0.number, $0) }) { $1 }
    } catch {
      for pick in picks { queue.returned(pick) }
      throw error
    }
    // However long the database took: another server may be the holder before the answers come.
    if storage.sharesWebhooks, !lease.maySend(now: steady()) {
      for pick in picks { queue.returned(pick) }
      return []
    }
    return picks.compactMap { pick in
      guard let row = rows[pick.id] else {
        // Its player was deleted, or it has become a dead letter.
        queue.vanished(pick)
        return nil
      }
      return WebhookDelivery(term: term, pick: pick, request: request(row, clock()))
    }
  }

  private func request(_ row: WebhookRow, _ now: Int64) -> WebhookRequest {
    let (id, body) = (row.id.description, row.body)
    return WebhookRequest(
      endpoint: endpoint.name, url: endpoint.url,
      headers: [
        "Content-Type": "application/json", "User-Agent": "Keepsake", "Keepsake-Webhook-Id": id,
        "Keepsake-Webhook-Time": String(now),
        "Keepsake-Webhook-Signature": secrets.value.signature(id: id, milliseconds: now, body: body),
      ], body: body)
  }

  /// Takes the status of the answer to a delivery.
  func finish(_ delivery: WebhookDelivery, status: Int) {
    switch status {
    case 200..<300: finish(delivery, .accepted)
    case 410: finish(delivery, .gone)
    default: finish(delivery, .failed("status \(status)"))
    }
  }

  func finish(_ delivery: WebhookDelivery, _ answer: WebhookQueue.Answer) {
    let now = steady()
    guard delivery.term == term else {
      // It comes again from whoever holds the endpoint: its number may be another event's by now.
      if case .accepted = answer { return metrics.webhookAnswered(endpoint.name, isDelivered: true) }
      return metrics.webhookAnswered(endpoint.name, isDelivered: false)
    }
    let result = queue.answered(delivery.pick, answer, now: now, random: random())
    switch answer {
    case .accepted: (lastFailure, earlierFailures) = (nil, 0)
    case .failed(let reason): lastFailure = reason
    case .gone: lastFailure = "status 410"
    }
    metrics.webhookAnswered(endpoint.name, isDelivered: result == .delivered)
    switch result {
    case .delivered: delivered.insert(delivery.pick.id)
    case .dead(let reason):
      // Until it is one in the database, it must not be found again.
      delivered.insert(delivery.pick.id)
      dead.append((delivery.pick.id, reason))
    case .again: break
    }
    if result != .again, unsettledSince == nil { unsettledSince = now }
    note(queue.breaker.state(now: now))
  }

  /// Takes that a delivery was given up because the server stops.
  func abandon(_ delivery: WebhookDelivery) { if delivery.term == term { queue.returned(delivery.pick) } }

  private func note(_ new: WebhookBreaker.State) {
    guard new != state else { return }
    state = new
    let details: Logger.Metadata = ["webhook": "\(endpoint.name)", "failure": "\(lastFailure ?? "none")"]
    switch new {
    case .flowing: logger.notice("A webhook takes events again", metadata: details)
    case .failing: logger.warning("A webhook fails; events wait", metadata: details)
    case .stopped: logger.error("A webhook is stopped: it is tried once an hour, and events wait", metadata: details)
    }
  }

  // MARK: Several servers

  /// Says that this server holds the endpoint, or looks whether it may; nothing if no other server has the database.
  ///
  /// - Returns: Whether events may be sent now.
  private func hold(_ now: Int64) async throws -> Bool {
    guard storage.sharesWebhooks else { return true }
    if try await handOver(now) { return false }
    switch lease.step(now: now) {
    case .nothing: break
    case .renew:
      if let claim = try await storage.renewWebhooks(of: endpoint.name, by: lease.holder, report(now)) {
        if !lease.renewed(claim.beat, now: now) {
          // Numbers are given again, and what was delivered since then comes again.
          (delivered, dead, unsettledSince) = ([], [], nil)
          begin(claim, now)
        }
        if claim.retries != retries { queue.retryAll() }
        retries = claim.retries
      } else {
        logger.warning(
          "Another server delivers a webhook's events, since this one was silent for too long",
          metadata: ["webhook": "\(endpoint.name)"])
        lose(now)
      }
    case .look:
      let claim = try await storage.webhookClaims()[endpoint.name]
      guard lease.looked(at: claim, now: now),
        let taken = try await storage.takeWebhooks(of: endpoint.name, by: lease.holder, after: claim)
      else { break }
      begin(taken, now)
    }
    return lease.maySend(now: now)
  }

  /// Goes on where the holder before has stopped: what it has delivered is removed, or comes again.
  private func begin(_ claim: WebhookClaim, _ now: Int64) {
    lease.took(claim.beat, now: now)
    term += 1
    retries = claim.retries
    lastFailure = claim.report.failure
    let breaker = WebhookBreaker(limits, after: claim.report, now: now, ahead: ahead(now), random: random())
    queue = WebhookQueue(limits, breaker: breaker)
    earlierFailures = breaker.failures
    if claim.retries != claim.report.retries { queue.retryAll() }
    (state, sweptAt, lookedAt) = (breaker.state(now: now), nil, nil)
  }

  private func lose(_ now: Int64, pause: Int64 = 0) {
    lease.lost(now: now, pause: pause)
    term += 1
    queue = WebhookQueue(limits)
    metrics.set("keepsake_webhook_waiting", [("endpoint", endpoint.name)], to: 0)
  }

  /// Leaves an endpoint to the other servers if it doesn't answer this one, after a try of its own: there may be no way
  /// from here.
  private func handOver(_ now: Int64) async throws -> Bool {
    guard let taken = lease.taken, now >= taken.addingClamped(limits.handOverMilliseconds), queue.requests == 0,
      queue.breaker.state(now: now) != .flowing, queue.breaker.failures > earlierFailures
    else { return false }
    try await settle()
    try await storage.releaseWebhooks(of: endpoint.name, by: lease.holder, report(now))
    // Each other one looks within this time.
    lose(now, pause: 2 * limits.claimMilliseconds)
    return true
  }

  private func ahead(_ now: Int64) -> Int64 { clock().addingClamped(-now) }

  private func report(_ now: Int64) -> WebhookReport {
    var report = queue.breaker.report(ahead: ahead(now), failure: lastFailure)
    (report.state, report.retries) = (queue.breaker.state(now: now), retries)
    return report
  }

  /// Removes what was delivered, and lets others go on. Nothing may be under way.
  func stop() async throws {
    try await settle()
    guard storage.sharesWebhooks, lease.isHeld else { return }
    let now = steady()
    try await storage.releaseWebhooks(of: endpoint.name, by: lease.holder, report(now))
    lose(now)
  }

  // MARK: Removing

  /// Removes delivered events, and has others become dead letters.
  func settle() async throws {
    let (settled, buried) = (delivered, dead)
    guard !settled.isEmpty else { return }
    let isBuried = Set(buried.map(\.number))
    try await storage.settleWebhooks(
      of: endpoint.name, delivered: settled.subtracting(isBuried).sorted(), dead: buried, now: clock())
    // More may have come meanwhile.
    delivered.subtract(settled)
    dead.removeFirst(buried.count)
    unsettledSince = delivered.isEmpty ? nil : steady()
    if !buried.isEmpty {
      metrics.webhookDied(endpoint.name, buried.count)
      logger.warning(
        "Events for a webhook have become dead letters",
        metadata: ["webhook": "\(endpoint.name)", "count": "\(buried.count)", "reason": "\(buried[0].reason)"])
    }
  }

  /// Counts what waits, and keeps it within its bounds.
  private func sweep(_ now: Int64) async throws {
    let time = clock()
    noteStep(to: time, now)
    var hasMore = true
    while hasMore {
      counts = try await storage.webhookCounts(of: endpoint.name)
      let moved = try await storage.boundWebhooks(
        of: endpoint.name, counts, limits, now: time, isAgeing: isHeld && now >= agesFrom)
      hasMore = moved.hasMore
      metrics.webhookDied(endpoint.name, moved.buried)
      metrics.webhookDropped(endpoint.name, moved.dropped)
      if moved.buried + moved.dropped > 0 {
        logger.warning(
          "Too many events wait for a webhook, or for too long",
          metadata: [
            "webhook": "\(endpoint.name)", "deadLetters": "\(moved.buried)", "dropped": "\(moved.dropped)",
          ])
      }
    }
    if isHeld { metrics.set("keepsake_webhook_waiting", [("endpoint", endpoint.name)], to: Double(counts.waiting)) }
    (sweptAt, addedAtSweep, clockAtSweep) = (now, added, time)
  }

  /// Has nothing be too old for a while if the clock is much further than the time that has passed.
  private func noteStep(to time: Int64, _ now: Int64) {
    guard let sweptAt else { return }
    let ahead = time.addingClamped(-clockAtSweep).addingClamped(-now.addingClamped(-sweptAt))
    guard ahead > limits.clockStepMilliseconds else { return }
    agesFrom = now.addingClamped(limits.clockRestMilliseconds)
    logger.warning(
      "The clock was set forward; for an hour, no event for a webhook is too old",
      metadata: ["webhook": "\(endpoint.name)", "seconds": "\(ahead / 1_000)"])
  }

  // MARK: What others ask

  /// Whether this server delivers the endpoint's events.
  var isDelivering: Bool { isHeld }

  /// Notes that there may be new events.
  func notice() { queue.notice() }

  /// Sends everything that waits for its next attempt now.
  func retryAll() { queue.retryAll() }

  /// What the studio is shown.
  func status() async throws -> (state: WebhookBreaker.State, counts: WebhookCounts, failure: String?) {
    if !isHeld {
      let report = try await storage.webhookClaims()[endpoint.name]?.report ?? WebhookReport()
      return (report.state, try await storage.webhookCounts(of: endpoint.name), report.failure)
    }
    return (queue.breaker.state(now: steady()), try await storage.webhookCounts(of: endpoint.name), lastFailure)
  }

  /// When ``pass()`` may have something to do although nothing has happened, by the steady clock.
  func wakeMilliseconds() -> Int64 {
    let now = steady()
    let settle = unsettledSince?.addingClamped(limits.removalMilliseconds)
    var all = [settle, isHeld ? sweepsAt : nil]
    if storage.sharesWebhooks { all.append(lease.wakeMilliseconds(now: now)) }
    if !storage.sharesWebhooks || lease.maySend(now: now) {
      all.append(queue.wakeMilliseconds(now: now))
      if storage.sharesWebhooks, queue.hasRoom(now: now) { all.append(looksAt) }
    }
    let next = all.compactMap(\.self).min() ?? now.addingClamped(limits.sweepMilliseconds)
    return max(next, restsUntil)
  }
}
#endif
