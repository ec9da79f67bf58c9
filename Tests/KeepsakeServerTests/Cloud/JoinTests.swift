#if Cloud
import Foundation
import Keepsake
import KeepsakeServer
import TestSupport
import Testing

/// Games that connect and join a player, through the public API and a real server.
@Suite("Connecting and joining", .hangLimit) struct JoinTests {
  private static let level = ProgressKey("level", default: 1, rule: .max)

  @Test("a device that joins a player right after connecting remains with that player, also after a restart")
  func joinAtOnce() async throws {
    try await TemporaryFolder.with { folder in
      try await LiveServer.with { server in
        let first = try GameData.open("com.example.join", at: folder.appendingPathComponent("first"))
        first.cloud.connect(.server(server.url, appKey: server.appKey))
        try first.progress.record(60, for: Self.level)
        try await first.cloud.sync()
        for number in 0..<20 {
          let place = folder.appendingPathComponent("device \(number)")
          let code = try await first.cloud.pairingCode()
          var joined = try GameData.open("com.example.join", at: place)
          joined.cloud.connect(.server(server.url, appKey: server.appKey))
          try await joined.cloud.join(code)
          try await joined.cloud.sync()
          #expect(joined.progress[Self.level] >= 60, "device \(number)")
          try joined.close()
          // And after a restart.
          joined = try GameData.open("com.example.join", at: place)
          joined.cloud.connect(.server(server.url, appKey: server.appKey))
          try joined.progress.record(61 + number, for: Self.level)
          try await joined.cloud.sync()
          try joined.close()
          try await first.cloud.sync()
          #expect(first.progress[Self.level] == 61 + number, "device \(number)")
        }
        try first.close()
      }
    }
  }

  @Test(
    "the values that a guest set or reset are replaced at once by those of the player it joins, also after a restart")
  func guestGivesWay() async throws {
    let hat = ProgressKey("hat", default: "none", rule: .latest)
    try await TemporaryFolder.with { folder in
      try await LiveServer.with { server in
        func open(_ name: String) throws -> GameData {
          let game = try GameData.open("com.example.guest", at: folder.appendingPathComponent(name))
          game.cloud.connect(.server(server.url, appKey: server.appKey))
          return game
        }
        let player = try open("player")
        // A value that was set before the device's first fetch ranks no higher than the guest's values.
        try await player.cloud.sync()
        try player.progress.record(60, for: Self.level)
        try player.progress.set("crown", for: hat)
        try await player.cloud.sync()

        var guest = try open("guest")
        try await guest.cloud.sync()
        try guest.progress.record(9, for: Self.level)
        try await guest.progress.reset(Self.level, to: 2).value
        try await guest.progress.set("cap", for: hat).value
        try await guest.cloud.sync()
        #expect(guest.progress[Self.level] == 2 && guest.progress[hat] == "cap")

        try await guest.cloud.join(try await player.cloud.pairingCode())
        try await guest.cloud.sync()
        #expect(guest.progress[Self.level] == 60 && guest.progress[hat] == "crown")
        // From here on, changes apply to the joined player's values.
        try await guest.progress.record(61, for: Self.level).value
        #expect(guest.progress[Self.level] == 61)
        try guest.close()
        guest = try open("guest")
        #expect(guest.progress[Self.level] == 61 && guest.progress[hat] == "crown")
        try await guest.cloud.sync()
        try await player.cloud.sync()
        #expect(player.progress[Self.level] == 61 && player.progress[hat] == "crown")
        try guest.close()
        try player.close()
      }
    }
  }

  @Test("a device keeps its player when the server's URL is written differently")
  func addressChanges() async throws {
    try await TemporaryFolder.with { folder in
      try await LiveServer.with { server in
        let place = folder.appendingPathComponent("phone")
        var game = try GameData.open("com.example.moved", at: place)
        game.cloud.connect(.server(server.url, appKey: server.appKey))
        try game.progress.record(7, for: Self.level)
        try await game.cloud.sync()
        try game.close()
        game = try GameData.open("com.example.moved", at: place)
        let other = try #require(URL(string: "http://localhost:\(server.running.port)/"))
        game.cloud.connect(.server(other, appKey: server.appKey))
        try game.progress.record(8, for: Self.level)
        try await game.cloud.sync()
        let code = try await game.cloud.pairingCode()
        let second = try GameData.open("com.example.moved", at: folder.appendingPathComponent("tablet"))
        second.cloud.connect(.server(server.url, appKey: server.appKey))
        try await second.cloud.join(code)
        try await second.cloud.sync()
        #expect(second.progress[Self.level] == 8)
        try second.close()
        try game.close()
      }
    }
  }
}
#endif
