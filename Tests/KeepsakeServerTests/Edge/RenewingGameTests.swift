#if Cloud
import Foundation
import Keepsake
import KeepsakeServer
import Synchronization
import TestSupport
import Testing

/// Games whose tokens are renewed, through the public API and a real server.
@Suite("Games and the age of their tokens", .hangLimit) struct RenewingGameTests {
  private static let level = ProgressKey("level", default: 1, rule: .max)

  private func token(in folder: URL) throws -> String {
    let bytes = try Data(contentsOf: folder.appendingPathComponent("cloud.json"))
    let object = try #require(JSONSerialization.jsonObject(with: bytes) as? [String: Any])
    return try #require((object["credentials"] as? [String: Any])?["token"] as? String)
  }

  @Test("a game stores new tokens, and comes back to its player after years, and after its app key was revoked")
  func years() async throws {
    let clock = Shared<Int64>(1_700_000_000_000)
    try await TemporaryFolder.with { folder in
      let keys = folder.appendingPathComponent("keys")
      try Data("first-app-key\nsecond-app-key\n".utf8).write(to: keys)
      let server = try await LiveServer.start(
        data: folder.appendingPathComponent("server"), clock: { clock.value }, change: { $0.appKeysFile = keys })
      let home = folder.appendingPathComponent("game")
      func play(_ appKey: String, reaching level: Int) async throws -> String {
        let game = try GameData.open("com.example.years", at: home)
        game.cloud.connect(.server(server.url, appKey: appKey))
        try game.progress.record(level, for: Self.level)
        do {
          try await game.cloud.sync()
        } catch {
          // The next one opens the same folder: not before it is free, however busy the machine is.
          try game.close()
          throw error
        }
        try game.close()
        return try token(in: home)
      }
      var tokens = [try await play("first-app-key", reaching: 2)]
      for (days, level) in [(300, 3), (2_000, 4)] {
        clock.value += Int64(days) * 86_400_000
        tokens.append(try await play("first-app-key", reaching: level))
      }
      try Data("second-app-key\n".utf8).write(to: keys, options: .atomic)
      await #expect { _ = try await play("first-app-key", reaching: 5) } throws: { error in
        (error as? GameDataError)?.code == .refused
      }
      #expect(try token(in: home) == tokens.last)
      // An update of the game has the current key.
      tokens.append(try await play("second-app-key", reaching: 6))
      #expect(Set(tokens).count == 4)

      let other = try GameData.open("com.example.years", at: folder.appendingPathComponent("other"))
      other.cloud.connect(.server(server.url, appKey: "second-app-key"))
      let game = try GameData.open("com.example.years", at: home)
      game.cloud.connect(.server(server.url, appKey: "second-app-key"))
      try await other.cloud.join(try await game.cloud.pairingCode())
      try await other.cloud.sync()
      #expect(other.progress[Self.level] == 6, "it is still the same player")
      try game.close()
      try other.close()
      try await server.stop()
    }
  }
}
#endif
