#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Logging
import TestSupport
import Testing

@testable import KeepsakeServer

/// What a studio's backend gets, whatever it does: hours of it in a moment.
@Suite("Delivery of webhooks", .hangLimit) struct WebhookDeliveryTests {
  @Test(
    "a backend that is dead or slow for an hour loses nothing, gets all in order, and costs players no commit",
    arguments: TestStorage.single)
  func hour(_ store: TestStorage) async throws {
    try await WebhookLab.with(store) { lab in
      var lab = lab
      let players: [UInt64] = [1, 2, 3, 4, 5, 6, 7]
      for number in players { try await lab.register(number) }
      var random = SeededGenerator(seed: 3)
      let (killed, slow) = (WebhookLab.start + 10 * WebhookLab.minute, WebhookLab.start + 40 * WebhookLab.minute)
      let well = WebhookLab.start + 70 * WebhookLab.minute
      let backend: WebhookLab.Backend = { now, event in
        switch now {
        case killed..<slow: WebhookLab.Reply(status: nil, isTaken: false)
        // It takes events without saying so, answers late, or answers with an error.
        case slow..<well:
          switch (event.id.utf8.last ?? 0) % 4 {
          case 0: WebhookLab.Reply(status: nil, isTaken: true)
          case 1: WebhookLab.Reply(status: 503, milliseconds: 4_000, isTaken: false)
          default: WebhookLab.Reply(status: now % 3 == 0 ? 200 : nil, milliseconds: 9_500, isTaken: true)
          }
        default: WebhookLab.Reply()
        }
      }
      var commitsWhileDown = 0
      for step in 0..<480 {
        let before = lab.commits
        try await lab.save(players[Int(random.next() % 7)])
        #expect(lab.commits == before.map { $0 + 1 })
        try await lab.play(for: 10_000, backend)
        // Beside the saves, nothing is written while nothing is delivered.
        if (120..<180).contains(step) { commitsWhileDown += (lab.commits ?? 0) - (before ?? 0) }
      }
      #expect(lab.commits == nil || commitsWhileDown == 60)
      try await lab.play(for: WebhookLab.hour, backend)
      #expect(lab.versions == lab.saved)
      #expect(lab.received.count > 487, "some came again")
      #expect(lab.mostAtOnce <= lab.limits.requests)
      #expect(try await lab.rows().isEmpty)
      try await lab.storage.close()
    }
  }

  @Test(
    "a server that is killed while events are on their way sends them again under the same ids, in order",
    arguments: TestStorage.single)
  func restart(_ store: TestStorage) async throws {
    try await WebhookLab.with(store) { lab in
      var lab = lab
      for number in 1...3 as ClosedRange<UInt64> { try await lab.register(number) }
      for round in 0..<20 {
        for number in 1...3 as ClosedRange<UInt64> { try await lab.save(number) }
        let isKilled = round % 4 == 3
        try await lab.play(for: isKilled ? 30 : 300) { _, _ in WebhookLab.Reply(milliseconds: 70) }
        if isKilled { try await lab.restart() }
      }
      try await lab.play(for: WebhookLab.minute)
      #expect(lab.versions == lab.saved)
      #expect(lab.received.count > 63 && Set(lab.received.map(\.id)).count == 63)
      #expect(try await lab.rows().isEmpty)
      try await lab.storage.close()
    }
  }

  @Test(
    "one player's events wait for the one that the backend refuses; the others' don't", arguments: TestStorage.single)
  func oneRefused(_ store: TestStorage) async throws {
    try await WebhookLab.with(store, kinds: [.saveArrived]) { lab in
      var lab = lab
      for number in [1, 2] as [UInt64] { try await lab.register(number) }
      let refused = try await lab.save(1)
      let backend: WebhookLab.Backend = { _, event in
        let isRefused = event.data["version"] as? String == "\(refused)"
        return WebhookLab.Reply(status: isRefused ? 400 : 200, isTaken: !isRefused)
      }
      let (first, second) = ("\(WebhookLab.player(1).player)", "\(WebhookLab.player(2).player)")
      try await lab.save(1)
      for _ in 0..<46 {
        try await lab.save(2)
        try await lab.play(for: WebhookLab.hour / 2, backend)
      }
      #expect(lab.versions[first] == nil && lab.versions[second] == lab.saved[second])
      // After a day it is a dead letter, and the next one comes.
      for _ in 0..<6 {
        try await lab.save(2)
        try await lab.play(for: WebhookLab.hour / 2, backend)
      }
      #expect(lab.versions[first] == ["\(lab.saved[first]?.last ?? "")"])
      let dead = try await lab.storage.deadWebhooks(of: "shop", after: 0, limit: 9)
      #expect(dead.count == 1 && dead[0].reason == "status 400" && dead[0].player == WebhookLab.player(1).player)

      // The studio has repaired its backend.
      let id = dead[0].id
      #expect(try await lab.storage.retryWebhooks(of: "shop", [], limit: 9, auditing: nil) == 0)
      #expect(try await lab.storage.retryWebhooks(of: "shop", [id], limit: 9, auditing: nil) == 1)
      await lab.courier.notice()
      try await lab.play(for: WebhookLab.minute)
      #expect(lab.received.last?.id == "\(id)" && lab.versions[first]?.count == 2)
      #expect(try await lab.rows().isEmpty)
      try await lab.storage.close()
    }
  }

  @Test("after 410 nothing comes but one request an hour, and nothing is lost", arguments: TestStorage.single)
  func gone(_ store: TestStorage) async throws {
    try await WebhookLab.with(store) { lab in
      var lab = lab
      for number in 1...40 as ClosedRange<UInt64> { try await lab.register(number) }
      var requests: [Int64] = []
      let backend: WebhookLab.Backend = { now, _ in
        requests.append(now)
        return WebhookLab.Reply(status: 410, isTaken: false)
      }
      try await lab.play(for: 1_000, backend)
      // Those that were on their way when it said so for the first time.
      #expect((1...lab.limits.requests).contains(requests.count))
      let before = requests.count
      try await lab.play(for: 24 * WebhookLab.hour, backend)
      #expect((23...48).contains(requests.count - before))
      #expect(try await lab.courier.status().state == .stopped)
      #expect(lab.log.lines.value.contains { $0.level == .error && $0.text.contains("shop") })
      try await lab.play(for: 2 * WebhookLab.hour)
      #expect(lab.received.filter { $0.kind == "deviceAdded" }.count == 40)
      #expect(try await lab.courier.status().state == .flowing)
      #expect(try await lab.rows().isEmpty)
      try await lab.storage.close()
    }
  }

  @Test(
    "a backend that doesn't answer is tried by one request at a time, in the end once an hour",
    arguments: TestStorage.single)
  func stopping(_ store: TestStorage) async throws {
    try await WebhookLab.with(store) { lab in
      var lab = lab
      for number in 1...10 as ClosedRange<UInt64> { try await lab.register(number) }
      var requests: [Int64] = []
      let backend: WebhookLab.Backend = { now, _ in
        requests.append(now)
        return WebhookLab.Reply(status: nil, isTaken: false)
      }
      try await lab.play(for: WebhookLab.hour, backend)
      #expect(requests.count < 60)
      try await lab.play(for: 24 * WebhookLab.hour, backend)
      #expect(try await lab.courier.status().state == .stopped)
      let before = requests.count
      try await lab.play(for: 10 * WebhookLab.hour, backend)
      #expect((9...21).contains(requests.count - before))
      // It isn't the events' fault.
      #expect(try await lab.rows("dead IS NOT NULL").isEmpty)
      // Whoever has repaired it needn't wait.
      await lab.courier.retryAll()
      try await lab.play(for: WebhookLab.minute)
      #expect(try await lab.rows().isEmpty)
      try await lab.storage.close()
    }
  }

  @Test(
    "the table is bounded: what is too much or too old becomes dead letters, and these are dropped and counted",
    arguments: TestStorage.single)
  func bounds(_ store: TestStorage) async throws {
    var limits = WebhookLimits()
    (limits.waiting, limits.dead, limits.rowsAtOnce, limits.sweepEvents) = (100, 50, 16, 10)
    (limits.waitingMilliseconds, limits.deadMilliseconds) = (6 * WebhookLab.hour, 12 * WebhookLab.hour)
    try await WebhookLab.with(store, kinds: [.saveArrived], limits: limits) { lab in
      var lab = lab
      try await lab.register(1)
      let down: WebhookLab.Backend = { _, _ in WebhookLab.Reply(status: nil, isTaken: false) }
      for _ in 0..<260 {
        try await lab.save(1)
        try await lab.play(for: 100, down)
        #expect(try await lab.rows().count <= 100 + 50 + 10)
      }
      try await lab.play(for: 2 * WebhookLab.minute, down)
      var counts = try await lab.courier.status().counts
      #expect(counts.waiting == 100 && counts.dead == 50 && counts.dropped == 110)
      #expect(try await lab.rows("dead IS NOT NULL").allSatisfy { $0.reason == "too many wait" })
      // The newest ones wait, in order.
      let player = "\(WebhookLab.player(1).player)"
      try await lab.play(for: 2 * WebhookLab.hour)
      #expect(lab.versions[player] == lab.saved[player].map { Array($0.suffix(100)) })

      try await lab.save(1)
      try await lab.play(for: limits.waitingMilliseconds + WebhookLab.hour, down)
      counts = try await lab.courier.status().counts
      #expect(counts.waiting == 0 && counts.dead == 50 && counts.dropped == 111)
      #expect(try await lab.rows().last?.reason == "too old")
      try await lab.play(for: limits.deadMilliseconds + WebhookLab.hour, down)
      #expect(try await lab.rows().isEmpty)
      try await lab.storage.close()
    }
  }

  @Test(
    "a dead letter that is older than what may wait is sent again all the same, with the time at which it was made",
    arguments: TestStorage.single)
  func oldLetters(_ store: TestStorage) async throws {
    var limits = WebhookLimits()
    limits.waitingMilliseconds = 6 * WebhookLab.hour
    try await WebhookLab.with(store, kinds: [.saveArrived], limits: limits) { lab in
      var lab = lab
      try await lab.register(1)
      try await lab.save(1)
      let down: WebhookLab.Backend = { _, _ in WebhookLab.Reply(status: nil, isTaken: false) }
      try await lab.play(for: 7 * WebhookLab.hour, down)
      #expect(try await lab.rows().map(\.reason) == ["too old"])
      #expect(try await lab.storage.retryWebhooks(of: "shop", nil, limit: 9, auditing: nil) == 1)
      await lab.courier.notice()
      // It is still down, and then it isn't.
      try await lab.play(for: 2 * WebhookLab.hour, down)
      #expect(try await lab.rows("dead IS NULL").map(\.createdMilliseconds) == [WebhookLab.start])
      try await lab.play(for: 2 * WebhookLab.hour)
      #expect(lab.versions == lab.saved)
      #expect(try await lab.rows().isEmpty)
      try await lab.storage.close()
    }
  }

  @Test("one player's many events don't crowd out those of the others", arguments: TestStorage.single)
  func crowding(_ store: TestStorage) async throws {
    var limits = WebhookLimits()
    (limits.waiting, limits.dead) = (64, 1_000)
    try await WebhookLab.with(store, kinds: [.saveArrived], limits: limits) { lab in
      var lab = lab
      for number in 1...9 as ClosedRange<UInt64> { try await lab.register(number) }
      for number in 2...9 as ClosedRange<UInt64> { for _ in 0..<3 { try await lab.save(number) } }
      for _ in 0..<100 { try await lab.save(1) }
      let down: WebhookLab.Backend = { _, _ in WebhookLab.Reply(status: nil, isTaken: false) }
      try await lab.play(for: 2 * WebhookLab.minute, down)
      let dead = try await lab.rows("dead IS NOT NULL")
      #expect(dead.count == 60 && dead.allSatisfy { $0.player == WebhookLab.player(1).player })
      try await lab.play(for: WebhookLab.hour)
      var expected = lab.saved
      let player = "\(WebhookLab.player(1).player)"
      expected[player] = expected[player].map { Array($0.suffix(40)) }
      #expect(lab.versions == expected)
      try await lab.storage.close()
    }
  }

  @Test(
    "requests at a time are bounded, and so is what is in memory of many events of few players",
    arguments: TestStorage.single)
  func parallel(_ store: TestStorage) async throws {
    try await WebhookLab.with(store, kinds: [.saveArrived]) { lab in
      var lab = lab
      for number in 1...50 as ClosedRange<UInt64> {
        try await lab.register(number)
        for _ in 0..<3 { try await lab.save(number) }
      }
      try await lab.play(for: WebhookLab.minute) { _, _ in WebhookLab.Reply(milliseconds: 900) }
      #expect(lab.mostAtOnce == lab.limits.requests)
      #expect(lab.versions == lab.saved && lab.received.count == 150)
      try await lab.storage.close()
    }
  }

  @Test("pauses grow from a second to an hour, half of them by chance")
  func pauses() {
    let pauses = (1...14).map { WebhookQueue.pause($0, first: 1_000, longest: 3_600_000) }
    #expect(pauses.prefix(4) == [1_000, 2_000, 4_000, 8_000] && pauses.last == 3_600_000)
    #expect(WebhookQueue.pause(.max, first: 1_000, longest: 3_600_000) == 3_600_000)
    #expect(WebhookQueue.jittered(1_000, 0) == 500 && WebhookQueue.jittered(1_000, 1) == 1_000)
  }
}
#endif
