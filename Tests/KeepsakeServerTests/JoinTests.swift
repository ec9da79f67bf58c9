#if Cloud
import Foundation
import Keepsake
import KeepsakeServer
import Testing

/// Games, through the calls that games use, and a real server.
@Suite("Connecting and joining", .timeLimit(.minutes(5))) struct JoinTests {
  private static let level = ProgressKey<Int>.max("level", default: 1)

  @Test("a device that joins right after it connected stays the player that it joined")
  func joinAtOnce() async throws {
    try await TemporaryFolder.with { folder in
      try await LiveServer.with { server in
        let first = try GameData.open("com.example.join", at: folder.appendingPathComponent("first"))
        first.cloud.connect(.server(server.url, appKey: server.appKey))
        try first.progress.record(60, for: Self.level)
        try await first.cloud.sendNow()
        for number in 0..<20 {
          let place = folder.appendingPathComponent("device \(number)")
          let code = try await first.cloud.pairingCode()
          var joined = try GameData.open("com.example.join", at: place)
          joined.cloud.connect(.server(server.url, appKey: server.appKey))
          try await joined.cloud.join(code)
          try await joined.cloud.sendNow()
          #expect(joined.progress[Self.level] >= 60, "device \(number)")
          try joined.close()
          // And after a restart.
          joined = try GameData.open("com.example.join", at: place)
          joined.cloud.connect(.server(server.url, appKey: server.appKey))
          try joined.progress.record(61 + number, for: Self.level)
          try await joined.cloud.sendNow()
          try joined.close()
          try await first.cloud.sendNow()
          #expect(first.progress[Self.level] == 61 + number, "device \(number)")
        }
        try first.close()
      }
    }
  }

  @Test("an address that is written another way doesn't make this device a stranger")
  func addressChanges() async throws {
    try await TemporaryFolder.with { folder in
      try await LiveServer.with { server in
        let place = folder.appendingPathComponent("phone")
        var game = try GameData.open("com.example.moved", at: place)
        game.cloud.connect(.server(server.url, appKey: server.appKey))
        try game.progress.record(7, for: Self.level)
        try await game.cloud.sendNow()
        try game.close()
        game = try GameData.open("com.example.moved", at: place)
        let other = try #require(URL(string: "http://localhost:\(server.running.port)/"))
        game.cloud.connect(.server(other, appKey: server.appKey))
        try game.progress.record(8, for: Self.level)
        try await game.cloud.sendNow()
        let code = try await game.cloud.pairingCode()
        let second = try GameData.open("com.example.moved", at: folder.appendingPathComponent("tablet"))
        second.cloud.connect(.server(server.url, appKey: server.appKey))
        try await second.cloud.join(code)
        try await second.cloud.sendNow()
        #expect(second.progress[Self.level] == 8)
        try second.close()
        try game.close()
      }
    }
  }
}
#endif
