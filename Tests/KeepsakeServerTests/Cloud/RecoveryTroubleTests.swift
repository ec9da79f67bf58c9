#if Cloud
import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import Keepsake

/// What is not as it should be when recovery codes are made and used: this device's file of them, or the server.
@Suite("Recovery codes and trouble", .hangLimit) struct RecoveryTroubleTests {
  private static let level = ProgressKey("level", default: 1, rule: .max)

  private func with(_ body: (LiveServer, URL) async throws -> Void) async throws {
    try await TemporaryFolder.with { folder in
      try await LiveServer.with { try await body($0, folder) }
    }
  }

  @Test("a damaged file of recovery codes is set aside with an incident, and codes are made and used as without one")
  func damagedFile() async throws {
    try await with { server, folder in
      func open(_ name: String) throws -> GameData {
        let game = try GameData.open("com.example.recovery", at: folder.appendingPathComponent(name))
        game.cloud.connect(.server(server.url, appKey: server.appKey), deviceName: name)
        return game
      }
      let phone = try open("phone")
      try phone.progress.record(3, for: Self.level)
      try await phone.cloud.sync()
      let bought = try open("bought")
      for (number, bytes) in [Data("[{".utf8), Data(count: 1 << 17)].enumerated() {
        for game in [phone, bought] {
          try bytes.write(to: game.url.appendingPathComponent(RecoveryFile.name))
          try #require(game.incidents.count(where: { $0.kind == .unreadable }) == number)
        }
        let written = try await phone.cloud.makeRecoveryCode()
        #expect(try await phone.cloud.recoveryState().canComeBack)
        // A code of nobody, so that the device can use one again in the next round.
        var source = SystemRandomNumberGenerator()
        let wrong = RecoveryCode(using: &source).text
        #expect(await thrownCode(\GameDataError.code) { _ = try await bought.cloud.recover(wrong) } == .refused)
        for game in [phone, bought] {
          let incidents = game.incidents.filter { $0.kind == .unreadable }
          #expect(incidents.count == number + 1)
          let message = try #require(incidents.last?.message)
          #expect(message.contains(RecoveryFile.name) && message.contains("/damaged/"))
          let aside = try FileManager.default.contentsOfDirectory(
            atPath: game.url.appendingPathComponent("damaged").path)
          #expect(aside.count == number + 1)
          let kept = try aside.map {
            try Data(contentsOf: game.url.appendingPathComponent("damaged/\($0)/\(RecoveryFile.name)"))
          }
          #expect(kept.contains(bytes))
        }
        if number == 1 {
          let next = try await bought.cloud.recover(written)
          #expect(try await bought.cloud.recover(written) == next)
          try await bought.cloud.sync()
          #expect(bought.progress[Self.level] == 3)
        }
      }
      for game in [phone, bought] { try game.close() }
    }
  }

  @Test("a file of recovery codes of a newer release is refused and left alone; one without a format is of the first")
  func formats() async throws {
    try await with { server, folder in
      let game = try GameData.open("com.example.recovery", at: folder.appendingPathComponent("phone"))
      game.cloud.connect(.server(server.url, appKey: server.appKey), deviceName: "phone")
      try await game.cloud.sync()
      let file = game.url.appendingPathComponent(RecoveryFile.name)
      var source = SystemRandomNumberGenerator()
      let (code, next) = (RecoveryCode(using: &source), RecoveryCode(using: &source))
      for text in [#"{"format": 2, "codes": []}"#, #"{"format": 2, "sealed": "x"}"#] {
        try Data(text.utf8).write(to: file)
        let refused = await #expect(throws: StoreError.self) { _ = try await game.cloud.makeRecoveryCode() }
        #expect(refused?.code == .newerFormat && refused?.message.contains(RecoveryFile.name) == true, "\(text)")
        #expect(await thrownCode(\StoreError.code) { _ = try await game.cloud.recover(code.text) } == .newerFormat)
        #expect(try Data(contentsOf: file) == Data(text.utf8))
      }
      #expect(game.incidents.isEmpty)
      #expect(try await game.cloud.recoveryState().codeCreated == nil, "none was made")

      let entry = """
        {"used": "\(code.digest)", "digest": "\(next.digest)", "code": "\(next.text)", "isKnown": false}
        """
      let codes = RecoveryFile(in: game.url, of: game.core.store.base, .folder)
      for text in ["[\(entry)]", #"{"codes": [\#(entry)]}"#, #"{"format": 1, "codes": [\#(entry)]}"#] {
        try Data(text.utf8).write(to: file)
        #expect(try codes.next(after: code) == next, "\(text)")
      }
      _ = try await game.cloud.makeRecoveryCode()
      let object = try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any]
      #expect(object?["format"] as? Int == 1 && (object?["codes"] as? [Any])?.count == 2)
      try game.close()
    }
  }

  @Test("a server that is older than recovery codes: the state says so, and making or using one is refused, saying why")
  func olderServer() async throws {
    try await TemporaryFolder.with { folder in
      let (device, other) = (String(repeating: "0", count: 31) + "a", String(repeating: "b", count: 32))
      let server = try CannedServer { head, _ in
        if head.hasPrefix("POST /v1/devices ") { return .registered(as: 10) }
        if head.hasPrefix("GET /v1/devices ") {
          func listed(_ id: String, _ isThis: Bool) -> String {
            #"{"device": "\#(id)", "name": "x", "createdMilliseconds": 1, "seenMilliseconds": 1, "isThis": \#(isThis)}"#
          }
          return .http("200 OK", body: #"{"devices": [\#(listed(device, true)), \#(listed(other, false))]}"#)
        }
        return .http(
          "404 Not Found", body: #"{"error": {"code": "not_found", "message": "There is nothing at this address."}}"#)
      }
      defer { server.stop() }
      let game = try GameData.open("com.example.recovery", at: folder.appendingPathComponent("phone"))
      game.cloud.connect(.server(server.url, appKey: "an-app-key"), deviceName: "phone")
      let state = try await game.cloud.recoveryState()
      #expect(!state.supportsCodes && state.codeCreated == nil && !state.isCodeLost)
      #expect(state.otherDevices == 1 && state.canComeBack)
      var source = SystemRandomNumberGenerator()
      let typed = RecoveryCode(using: &source).text
      for work in [{ try await game.cloud.makeRecoveryCode() }, { try await game.cloud.recover(typed) }] {
        let refused = await #expect(throws: GameDataError.self) { _ = try await work() }
        #expect(refused?.code == .refused && refused?.message.contains("doesn't know recovery codes") == true)
      }
      try game.close()
    }
  }
}
#endif
