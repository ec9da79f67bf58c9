#if Cloud && os(Linux)
import Foundation
import Keepsake
import TestSupport
import Testing

/// After a write, a player's devices must soon stop exchanging messages.
@Suite("Quiet devices over HTTP", .serialized, .hangLimit)
struct QuietTests {
  private static let level = ProgressKey("level", default: 0, rule: .max)
  private static let mostExchanges = 2

  @Test("after a write each device makes at most two exchanges, and then polls only once a minute")
  func threeDevices() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await ServerProcess.start(data: folder.appendingPathComponent("server"))
      let phone = try await PlayedDevice.playing("phone", in: folder, to: server.port)
      let tablet = try await PlayedDevice.playing("tablet", in: folder, to: server.port, with: phone)
      let console = try await PlayedDevice.playing("console", in: folder, to: server.port, with: phone)
      let devices = [phone, tablet, console]
      var lines: [String] = []
      let writes: [(String, @Sendable (GameData) async throws -> Void)] = [
        ("a value", { try await $0.progress.record(1, for: Self.level).value }),
        ("a small save", { try await $0.saves.save(Chapter(1, bytes: 900), to: Slot("small")) }),
        ("a save inside the exchange", { try await $0.saves.save(Chapter(2, bytes: 100_000), to: Slot("middle")) }),
        ("a save in parts", { try await $0.saves.save(Chapter(3, bytes: 2_500_000), to: Slot("large")) }),
        ("a delete", { try $0.saves.delete(Slot<Chapter>("middle")) }),
        (
          "a checkpoint",
          { game in
            try await game.checkpoint {
              try $0.record(2, for: Self.level)
              try $0.save(Chapter(4, bytes: 700_000), to: Slot("large"))
              try $0.save(Chapter(5, bytes: 300), to: Slot("small"))
            }.value
          }
        ),
      ]
      for (what, write) in writes {
        try await settle(devices)
        let (before, place) = (devices.map(\.proxy.exchanges), try phone.place)
        try await write(phone.game)
        try await phone.until("sending \(what)") { try $0.isQuiet && $0.place.seq > place.seq }
        // On a busy machine a status is updated later than what it describes.
        for device in devices { try await device.until("showing \(what)") { try Seen(on: $0) == Seen(on: phone) } }
        try await settle(devices)
        let counts = zip(devices, before).map { $0.proxy.exchanges - $1 }
        lines.append("\(what): \(counts)")
        for (device, count) in zip(devices, counts) {
          #expect(count <= Self.mostExchanges, "\(what): \(device.name) made \(count) exchanges")
        }
        #expect(counts[0] >= 1, "\(what) was sent by no exchange")
        let isSame = try devices.allSatisfy { try Seen(on: $0) == Seen(on: phone) }
        #expect(isSame, "\(what)")
      }
      // From here on each device makes an exchange when its minute is over, and only then.
      for minute in 1...3 {
        let before = devices.map(\.proxy.counts)
        for device in devices { try await device.poll() }
        try await settle(devices)
        for (device, before) in zip(devices, before) {
          var expected = before
          expected["POST /v1/exchange", default: 0] += 1
          #expect(device.proxy.counts == expected, "minute \(minute), \(device.name)")
        }
      }
      print("exchanges of phone, tablet and console after one write of the phone: " + lines.joined(separator: "; "))
      for device in devices { try device.close() }
      await server.end(by: SIGTERM)
    }
  }
}
#endif
