#if Cloud
import Foundation
import Testing

@testable import KeepsakeServer

/// Which of several servers delivers an endpoint's events.
@Suite("Leases of webhooks") struct WebhookLeaseTests {
  private let limits = WebhookLimits()
  private let one = Data([1])
  private let other = Data([2])

  @Test("what nobody holds is taken at once, and held as long as it is said")
  func taken() {
    for claim in [nil, WebhookClaim(holder: Data(), beat: 7)] {
      var lease = WebhookLease(limits, holder: one)
      #expect(lease.step(now: 1_000) == .look && !lease.maySend(now: 1_000))
      #expect(lease.looked(at: claim, now: 1_000))
      lease.took(now: 1_000)
      #expect(lease.maySend(now: 1_000) && lease.step(now: 1_000) == .nothing)
      #expect(lease.wakeMilliseconds(now: 1_000) == 1_000 + limits.claimMilliseconds)
      #expect(lease.step(now: 1_000 + limits.claimMilliseconds) == .renew)
      #expect(lease.renewed(7, now: 1_000 + limits.claimMilliseconds))
      #expect(lease.step(now: 1_000 + limits.claimMilliseconds) == .nothing)
      // The database was set back to a backup.
      #expect(!lease.renewed(7, now: 1_000 + limits.claimMilliseconds))
    }
  }

  @Test("a holder that says nothing sends nothing any more before another may take over and its requests have ended")
  func margin() {
    var lease = WebhookLease(limits, holder: one)
    lease.took(now: 0)
    var last: Int64 = 0
    for now in stride(from: 0, to: 2 * limits.leaseMilliseconds, by: 100) where lease.maySend(now: now) { last = now }
    #expect(last + Int64(limits.answerSeconds) * 1_000 < limits.leaseMilliseconds)
    // It may fail to say so for some times.
    #expect(last > 2 * limits.claimMilliseconds)
  }

  @Test("another's is taken over only after it has said nothing for long enough, whatever the first look showed")
  func silent() {
    var lease = WebhookLease(limits, holder: one)
    var claim = WebhookClaim(holder: other, beat: 1)
    for now in stride(from: 0, to: 10 * limits.leaseMilliseconds, by: Int(limits.claimMilliseconds)) {
      #expect(!lease.looked(at: claim, now: now))
      claim.beat += 1
    }
    let silent = 10 * limits.leaseMilliseconds
    #expect(!lease.looked(at: claim, now: silent))
    #expect(!lease.looked(at: claim, now: silent + limits.leaseMilliseconds - 1))
    #expect(lease.looked(at: claim, now: silent + limits.leaseMilliseconds))
    // One that was started anew counts from its own beginning.
    claim.holder = Data([3])
    #expect(!lease.looked(at: claim, now: silent + limits.leaseMilliseconds))
  }

  @Test("what was left to others isn't looked at for as long as each of them needs to take it")
  func left() {
    var lease = WebhookLease(limits, holder: one)
    lease.took(now: 0)
    lease.lost(now: 100, pause: 2 * limits.claimMilliseconds)
    #expect(!lease.isHeld && !lease.maySend(now: 100))
    #expect(lease.step(now: 2 * limits.claimMilliseconds) == .nothing)
    #expect(lease.step(now: 100 + 2 * limits.claimMilliseconds) == .look)
  }

  @Test("a webhook that only another server has isn't retired while that one says something")
  func retired() {
    let before = ["shop": WebhookClaim(holder: one, beat: 1), "log": WebhookClaim(holder: one, beat: 1)]
    let after = [
      "shop": WebhookClaim(holder: one, beat: 2), "log": WebhookClaim(holder: one, beat: 1),
      "new": WebhookClaim(holder: other, beat: 1), "left": WebhookClaim(holder: Data(), beat: 9),
      "own": WebhookClaim(holder: other, beat: 9),
    ]
    #expect(Set(WebhookCleaning.others(before, after, except: ["own"])) == ["shop", "new"])
  }

  @Test("who goes on with a failing or stopped endpoint keeps its pauses, and one request at a time")
  func resumed() {
    var breaker = WebhookBreaker(limits)
    for _ in 0..<20 { breaker.failed(now: 50_000, gone: false, isTry: true, isSuspected: false, random: 1) }
    let report = breaker.report(ahead: 1_000_000, failure: "no answer")
    #expect(report.failingSinceMilliseconds == 1_050_000 && report.failures == 20 && report.failure == "no answer")
    // By the other server's own time, which is a minute later.
    var next = WebhookBreaker(limits, after: report, now: 70_000, ahead: 1_040_000, random: 1)
    #expect(next.state(now: 70_000) == .failing && next.failingSince == 10_000)
    #expect(next.nextTry == 70_000 + limits.longestTryMilliseconds)
    #expect(!next.admits(requests: 0, now: 70_000) && next.admits(requests: 0, now: next.nextTry))
    #expect(!next.admits(requests: 1, now: next.nextTry))
    #expect(next.state(now: 10_000 + limits.stopMilliseconds) == .stopped)
    next.succeeded()
    #expect(next.state(now: 70_000) == .flowing)
    let flowing = WebhookBreaker(limits, after: WebhookReport(), now: 5, ahead: 0, random: 1)
    #expect(flowing.admits(requests: 0, now: 5) && flowing.failingSince == nil)
  }
}
#endif
