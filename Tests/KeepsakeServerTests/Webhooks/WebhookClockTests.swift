#if Cloud
import Foundation
import Logging
import TestSupport
import Testing

@testable import KeepsakeServer

/// Somebody, or a service of the machine, sets the server's clock.
@Suite("Webhooks and a clock that is set", .hangLimit) struct WebhookClockTests {
  private static let day = 24 * WebhookLab.hour
  private static var down: WebhookLab.Backend { { _, _ in WebhookLab.Reply(status: nil, isTaken: false) } }

  @Test("while the clock is set back by a day, events come as ever, and are removed", arguments: TestStorage.single)
  func back(_ store: TestStorage) async throws {
    try await WebhookLab.with(store) { lab in
      var lab = lab
      for number in 1...10 as ClosedRange<UInt64> { try await lab.register(number) }
      try await lab.play(for: 2 * WebhookLab.minute, Self.down)
      lab.step.value = -Self.day
      try await lab.save(1)
      try await lab.play(for: 6 * WebhookLab.minute)
      #expect(lab.versions == lab.saved && lab.received.count == 11)
      #expect(try await lab.rows().isEmpty)
      try await lab.storage.close()
    }
  }

  @Test(
    "a clock that is set forward by a month for some minutes makes nothing too old; one that stays does in the end",
    arguments: TestStorage.single)
  func forward(_ store: TestStorage) async throws {
    try await WebhookLab.with(store, kinds: [.saveArrived]) { lab in
      var lab = lab
      for number in [1, 2] as [UInt64] {
        try await lab.register(number)
        try await lab.save(number)
      }
      let first = try #require(try await lab.rows().first).number
      try await lab.storage.settleWebhooks(
        of: "shop", delivered: [], dead: [(first, "a test")], now: WebhookLab.start)
      try await lab.play(for: 2 * WebhookLab.minute, Self.down)
      lab.step.value = 31 * Self.day
      try await lab.play(for: 5 * WebhookLab.minute, Self.down)
      #expect(try await lab.rows().map(\.reason) == ["a test", nil])
      lab.step.value = 0
      try await lab.play(for: 2 * WebhookLab.hour, Self.down)
      #expect(try await lab.rows().map(\.reason) == ["a test", nil])
      #expect(lab.log.lines.value.contains { $0.level == .warning && $0.text.contains("clock was set forward") })

      lab.step.value = 8 * Self.day
      try await lab.play(for: 2 * WebhookLab.hour, Self.down)
      #expect(try await lab.rows().map(\.reason) == ["a test", "too old"])
      try await lab.storage.close()
    }
  }
}
#endif
