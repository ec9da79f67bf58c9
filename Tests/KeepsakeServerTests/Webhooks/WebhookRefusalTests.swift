#if Cloud
import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// Events that a backend refuses for good, beside those of other players.
@Suite("Refused webhooks", .hangLimit) struct WebhookRefusalTests {
  @Test(
    "however many players' events are refused for good, the others' come at once, and these are sent ever less often",
    arguments: [8, 12, 16] as [UInt64], TestStorage.single)
  func manyRefused(_ count: UInt64, _ store: TestStorage) async throws {
    try await WebhookLab.with(store, kinds: [.saveArrived]) { lab in
      var lab = lab
      let others = (101...120) as ClosedRange<UInt64>
      for number in Array(1...count) + Array(others) { try await lab.register(number) }
      for number in 1...count { try await lab.save(number) }
      let refused = Set((1...count).map { "\(WebhookLab.player($0).player)" })
      func taken() -> Bool { lab.versions == lab.saved.filter { !refused.contains($0.key) } }
      var refusals = 0
      let backend: WebhookLab.Backend = { _, event in
        guard refused.contains(event.player ?? "") else { return WebhookLab.Reply() }
        refusals += 1
        return WebhookLab.Reply(status: 400, isTaken: false)
      }
      // Where events get their order when they are looked for, these are the first, too.
      if lab.storage.sharesWebhooks { try await lab.play(for: 1, backend) }
      for _ in 0..<4 {
        for _ in 0..<3 { for number in others { try await lab.save(number) } }
        try await lab.play(for: 5_000, backend)
        #expect(taken())
        try await lab.play(for: WebhookLab.minute - 5_000, backend)
      }
      #expect(refusals <= 12 * Int(count))

      // After an hour without an answer, what was refused before keeps its pauses.
      for number in others { try await lab.save(number) }
      try await lab.play(for: WebhookLab.hour) { _, _ in WebhookLab.Reply(status: nil, isTaken: false) }
      refusals = 0
      try await lab.play(for: WebhookLab.hour / 2, backend)
      #expect(taken())
      #expect(refusals <= 4 * Int(count))
      try await lab.storage.close()
    }
  }

  @Test("while all requests are under way and an event waits, no more are looked up; when one ends, they are")
  func full() {
    var limits = WebhookLimits()
    limits.requests = 2
    var queue = WebhookQueue(limits)
    let picks = (1...3).map { WebhookQueue.Pick(id: Int64($0), lane: Data([$0])) }
    queue.found(Array(picks[..<2]), isComplete: true, except: [])
    let under = [queue.next(now: 0), queue.next(now: 0)].compactMap(\.self)
    queue.notice()
    #expect(under == Array(picks[..<2]) && queue.wantsScan(now: 0), "nothing waits")
    queue.found([picks[2]], isComplete: true, except: [])
    queue.notice()
    #expect(!queue.wantsScan(now: 0) && queue.wakeMilliseconds(now: 0) == nil)
    #expect(queue.answered(under[0], .accepted, now: 0, random: 0) == .delivered)
    #expect(queue.wantsScan(now: 0) && queue.next(now: 0) == picks[2])
  }

  @Test("new events and those that are sent again take turns")
  func turns() {
    var limits = WebhookLimits()
    limits.requests = 4
    var queue = WebhookQueue(limits)
    func picks(_ ids: ClosedRange<UInt8>) -> [WebhookQueue.Pick] {
      ids.map { WebhookQueue.Pick(id: Int64($0), lane: Data([$0])) }
    }
    queue.found(picks(1...4), isComplete: true, except: [])
    for _ in 0..<4 {
      guard let pick = queue.next(now: 0) else { break }
      #expect(queue.answered(pick, .failed("status 400"), now: 0, random: 1) == .again)
    }
    queue.found(picks(5...8), isComplete: true, except: [])
    let ids = (0..<4).compactMap { _ in queue.next(now: WebhookLab.minute)?.id }
    #expect(ids.count == 4 && ids.filter { $0 > 4 }.count == 2)
  }
}
#endif
