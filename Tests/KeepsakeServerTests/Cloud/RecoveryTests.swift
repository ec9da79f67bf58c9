#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync
import TestSupport
import Testing

@testable import Keepsake
@testable import KeepsakeServer

/// A player who lost every device, and what others try with recovery codes.
@Suite("Recovery codes at a server", .hangLimit) struct RecoveryTests {
  private static let level = ProgressKey("level", default: 1, rule: .max)
  private static let gems = Currency("gems")
  private static let cave = Slot<String>("cave")

  private func open(_ name: String, in folder: URL, _ server: LiveServer) throws -> GameData {
    let game = try GameData.open("com.example.recovery", at: folder.appendingPathComponent(name))
    game.cloud.connect(.server(server.url, appKey: server.appKey), deviceName: name)
    return game
  }

  private func with(_ body: (LiveServer, URL) async throws -> Void) async throws {
    try await TemporaryFolder.with { folder in
      try await LiveServer.with { try await body($0, folder) }
    }
  }

  @Test("a player whose only device is lost types the code on a new one, and has saves, values and money")
  func comesBack() async throws {
    try await with { server, folder in
      let phone = try open("phone", in: folder, server)
      #expect(try await !phone.cloud.recoveryState().canComeBack)
      try await phone.saves.save("deep", to: Self.cave)
      try phone.progress.record(9, for: Self.level)
      try phone.wallet.claim(120, Self.gems, key: "starter", for: "welcome")
      try await phone.cloud.sync()
      let written = try await phone.cloud.makeRecoveryCode()
      #expect(try await phone.cloud.recoveryState().canComeBack)
      try phone.close()
      try FileManager.default.removeItem(at: folder.appendingPathComponent("phone"))

      let bought = try open("new phone", in: folder, server)
      try bought.progress.record(2, for: Self.level)
      let next = try await bought.cloud.recover(written.lowercased())
      try await bought.cloud.sync()
      #expect(try bought.saves.load(Self.cave) == "deep" && bought.progress[Self.level] == 9)
      #expect(bought.wallet[Self.gems].total == 120)
      for lost in try await bought.cloud.devices() where !lost.isThis { try await bought.cloud.remove(lost) }
      try await bought.cloud.sync()
      // The lost device made the code that was used, and this one the code that is in force.
      let state = try await bought.cloud.recoveryState()
      #expect(state.otherDevices == 0 && state.codeCreated != nil)
      try await until("the money is free") { bought.wallet[Self.gems].spendable == 120 }
      try bought.close()

      let third = try open("third", in: folder, server)
      #expect(
        await thrownCode(\GameDataError.code) { _ = try await third.cloud.recover(written) } == .refused, "it was used")
      _ = try await third.cloud.recover(next)
      try await third.cloud.sync()
      #expect(try third.saves.load(Self.cave) == "deep")
      try third.close()
    }
  }

  @Test("a mistyped code is told without asking the server, and a new code replaces the one before")
  func replaced() async throws {
    try await with { server, folder in
      let phone = try open("phone", in: folder, server)
      let old = try await phone.cloud.makeRecoveryCode()
      let new = try await phone.cloud.makeRecoveryCode()
      let other = try GameData.open("com.example.recovery", at: folder.appendingPathComponent("other"))
      var typed = Array(new)
      typed[14] = typed[14] == "7" ? "8" : "7"
      // Not connected: it doesn't come to that.
      await #expect {
        _ = try await other.cloud.recover(String(typed))
      } throws: { error in
        (error as? GameDataError)?.code == .mistyped && "\(error)".contains("group 3")
      }
      #expect(throws: GameDataError.self) { try Cloud.checkRecoveryCode(String(typed)) }
      try Cloud.checkRecoveryCode(new)
      other.cloud.connect(.server(server.url, appKey: server.appKey))
      #expect(await thrownCode(\GameDataError.code) { _ = try await other.cloud.recover(old) } == .refused)
      _ = try await other.cloud.recover(new)
      try await other.cloud.sync()
      #expect(try await other.cloud.recoveryState().otherDevices == 1)
      for game in [phone, other] { try game.close() }
    }
  }

  @Test("a code that a removed device made is void; one that signs out itself keeps its player's code")
  func madeByRemoved() async throws {
    try await with { server, folder in
      let phone = try open("phone", in: folder, server)
      try await phone.cloud.sync()
      let stolen = try open("stolen", in: folder, server)
      try await stolen.cloud.join(try await phone.cloud.pairingCode())
      try await stolen.cloud.sync()
      let thiefs = try await stolen.cloud.makeRecoveryCode()
      let device = try #require(try await phone.cloud.devices().first { !$0.isThis })
      try await phone.cloud.remove(device)
      let thief = try open("thief", in: folder, server)
      #expect(await thrownCode(\GameDataError.code) { _ = try await thief.cloud.recover(thiefs) } == .refused)
      #expect(await thrownCode(\GameDataError.code) { _ = try await stolen.cloud.makeRecoveryCode() } == .refused)
      #expect(try await phone.cloud.recoveryState().canComeBack == false)
      for game in [phone, stolen, thief] { try game.close() }

      let place = folder.appendingPathComponent("tablet")
      func tablet() throws -> GameData {
        let game = try GameData.open("com.example.recovery", account: .named("ada"), in: place)
        game.cloud.connect(.server(server.url, appKey: server.appKey), deviceName: "tablet")
        return game
      }
      var game = try tablet()
      try game.progress.record(5, for: Self.level)
      try await game.cloud.sync()
      #expect(await thrownCode(\GameDataError.code) { try await game.signOut(forgetting: true) } == .lastDevice)
      let kept = try await game.cloud.makeRecoveryCode()
      try await game.signOut(forgetting: true)
      game = try tablet()
      _ = try await game.cloud.recover(kept)
      try await game.cloud.sync()
      #expect(game.progress[Self.level] == 5)
      try game.close()
    }
  }

  @Test("after a lost response, the same request gets the same device; another one with the used code gets nothing")
  func lostResponse() async throws {
    try await with { server, folder in
      let account = HTTPAccount(url: server.url, appKey: server.appKey)
      let phone = try await account.register(name: "phone")
      var source = SystemRandomNumberGenerator()
      let (code, next, other) = (
        RecoveryCode(using: &source), RecoveryCode(using: &source), RecoveryCode(using: &source)
      )
      try await HTTPAccount.setRecoveryCode(code, for: phone)
      try await HTTPAccount.setRecoveryCode(code, for: phone)
      let first = try await account.recover(code, next: next, name: "new")
      let again = try await account.recover(code, next: next, name: "new")
      #expect(again.device == first.device && again.container == phone.container && first.device != phone.device)
      #expect(try await HTTPAccount.devices(for: again).count == 2)
      let refused = await #expect(throws: AccountError.self) {
        try await account.recover(code, next: other, name: "replayed")
      }
      #expect(refused?.code == .codeUnknown)
      // The device that used it signs out: its token isn't given again, and the next code stays.
      try await HTTPAccount.remove(first.device, for: first)
      let gone = await #expect(throws: AccountError.self) { try await account.recover(code, next: next, name: "new") }
      #expect(gone?.code == .codeUnknown)
      let last = try await account.recover(next, next: other, name: "last")
      #expect(last.container == phone.container)
      // It is removed by another: the code that it made is void.
      try await HTTPAccount.remove(last.device, for: phone)
      for used in [next, other] {
        let refused = await #expect(throws: AccountError.self) {
          try await account.recover(used, next: code, name: "x")
        }
        #expect(refused?.code == .codeUnknown)
      }
    }
  }

  @Test("a game whose response was lost, or that ended before it had the next code, gets it by the same call")
  func sameCall() async throws {
    try await with { server, folder in
      let phone = try open("phone", in: folder, server)
      try phone.progress.record(7, for: Self.level)
      try await phone.cloud.sync()
      let written = try await phone.cloud.makeRecoveryCode()
      try phone.close()
      let code = try RecoveryCode(typed: written)

      // The request that is made and whose response doesn't come.
      var bought = try open("bought", in: folder, server)
      try await bought.cloud.sync()
      let file = RecoveryFile(in: bought.url, of: bought.core.store.base, .folder)
      let account = HTTPAccount(url: server.url, appKey: server.appKey)
      let lost = try await account.recover(code, next: try file.next(after: code), name: "bought")
      #expect(try permissions(of: bought.url.appendingPathComponent(RecoveryFile.name)) == 0o600)
      try bought.close()
      bought = try open("bought", in: folder, server)
      let next = try await bought.cloud.recover(written)
      #expect(try await bought.cloud.recover(written) == next, "also once the game had it")
      try await bought.cloud.sync()
      #expect(bought.progress[Self.level] == 7)
      let devices = try await bought.cloud.devices()
      #expect(devices.count == 2 && devices.contains { $0.isThis && $0.id == lost.device.description })
      #expect(try await bought.cloud.recoveryState().codeCreated != nil)
      // Another code doesn't make this one be forgotten, nor does too many guesses.
      var source = SystemRandomNumberGenerator()
      for _ in 0..<11 {
        #expect(
          await thrownCode(\GameDataError.code) {
            _ = try await bought.cloud.recover(RecoveryCode(using: &source).text)
          }
            == .refused)
      }
      #expect(
        await thrownCode(\GameDataError.code) { _ = try await bought.cloud.recover(written) } == .refused,
        "it has to wait")
      #expect(try file.next(after: code).text == next)
      try bought.close()
    }
  }

  private func permissions(of file: URL) throws -> Int {
    try #require(try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int)
  }

  @Test("a code that the game never got counts as none, whatever other devices there are")
  func codeNobodyHas() async throws {
    try await with { server, folder in
      let phone = try open("phone", in: folder, server)
      try await phone.cloud.sync()
      let credentials = try #require(
        try CloudFile(in: phone.url, of: phone.core.store.base, .folder).read()?.credentials)
      // The request of `makeRecoveryCode`, whose response doesn't come.
      let file = RecoveryFile(in: phone.url, of: phone.core.store.base, .folder)
      try await HTTPAccount.setRecoveryCode(try file.new(), for: credentials)
      var state = try await phone.cloud.recoveryState()
      #expect(state.isCodeLost && state.codeCreated == nil && !state.canComeBack)
      let tablet = try open("tablet", in: folder, server)
      try await tablet.cloud.join(try await phone.cloud.pairingCode())
      try await tablet.cloud.sync()
      state = try await phone.cloud.recoveryState()
      #expect(state.isCodeLost && state.otherDevices == 1 && !state.canComeBack)
      _ = try await tablet.cloud.makeRecoveryCode()
      state = try await phone.cloud.recoveryState()
      #expect(!state.isCodeLost && state.codeCreated != nil && state.canComeBack)
      for game in [phone, tablet] { try game.close() }
    }
  }

  @Test("a player's own device can't use the code, a folder has none, and nothing is left of what was refused")
  func misuse() async throws {
    try await with { server, folder in
      let phone = try open("phone", in: folder, server)
      let written = try await phone.cloud.makeRecoveryCode()
      #expect(await thrownCode(\GameDataError.code) { _ = try await phone.cloud.recover(written) } == .misuse)
      #expect(try await phone.cloud.devices().count == 1)
      let shared = folder.appendingPathComponent("shared")
      try FileManager.default.createDirectory(at: shared, withIntermediateDirectories: true)
      let away = try GameData.open("com.example.recovery", at: folder.appendingPathComponent("away"))
      away.cloud.connect(.folder(shared))
      #expect(await thrownCode(\GameDataError.code) { _ = try await away.cloud.recover(written) } == .misuse)
      #expect(await thrownCode(\GameDataError.code) { _ = try await away.cloud.makeRecoveryCode() } == .misuse)
      for game in [phone, away] { try game.close() }
    }
  }

  @Test("a code outlives the app key with which it was made, once that isn't accepted any more")
  func otherKey() async throws {
    try await TemporaryFolder.with { folder in
      let data = folder.appendingPathComponent("server")
      var server = try await LiveServer.start(data: data, appKeys: ["the-first-app-key"])
      let phone = try await HTTPAccount(url: server.url, appKey: "the-first-app-key").register(name: "phone")
      var source = SystemRandomNumberGenerator()
      let (code, next) = (RecoveryCode(using: &source), RecoveryCode(using: &source))
      try await HTTPAccount.setRecoveryCode(code, for: phone)
      try await server.stop()
      server = try await LiveServer.start(data: data, appKeys: ["the-first-app-key", "the-second-app-key"])
      var account = HTTPAccount(url: server.url, appKey: "the-second-app-key")
      let early = await #expect(throws: AccountError.self) { try await account.recover(code, next: next, name: "new") }
      #expect(early?.code == .unauthorized)
      try await server.stop()
      server = try await LiveServer.start(data: data, appKeys: ["the-second-app-key"])
      account = HTTPAccount(url: server.url, appKey: "the-second-app-key")
      let new = try await account.recover(code, next: next, name: "new")
      #expect(new.container == phone.container)
      #expect(try await account.recover(code, next: next, name: "new").device == new.device)
      #expect(try await HTTPAccount.recovery(for: new)?.digest == next.digest)
      try await server.stop()
    }
  }

  @Test("of many devices that use a code at the same time, one comes back")
  func raced() async throws {
    try await with { server, folder in
      let account = HTTPAccount(url: server.url, appKey: server.appKey)
      let phone = try await account.register(name: "phone")
      var source = SystemRandomNumberGenerator()
      var code = RecoveryCode(using: &source)
      try await HTTPAccount.setRecoveryCode(code, for: phone)
      for round in 0..<5 {
        let nexts = (0..<2).map { _ in RecoveryCode(using: &source) }
        let winners = await withTaskGroup(of: Int?.self) { [code] group in
          for (number, next) in nexts.enumerated() {
            group.addTask {
              do {
                _ = try await account.recover(code, next: next, name: "racer \(number)")
                return number
              } catch {
                return nil
              }
            }
          }
          return await group.reduce(into: [Int]()) { if let winner = $1 { $0.append(winner) } }
        }
        try #require(winners.count == 1, "round \(round): \(winners)")
        code = nexts[winners[0]]
      }
      #expect(try await HTTPAccount.devices(for: phone).count == 6)
    }
  }

  @Test("guesses are limited like those of pairing codes, and count together with them")
  func guessed() async throws {
    try await LiveServer.with { server in
      let key = ["Keepsake-App-Key": server.appKey]
      var source = SystemRandomNumberGenerator()
      let digest = RecoveryCode(using: &source).digest
      func recover(_ text: String, next: String) async throws -> Client.Answer {
        try await server.client.call(
          "POST", "/v1/recovery/join", headers: key, json: #"{"code": "\#(text)", "next": "\#(next)"}"#)
      }
      for number in 0..<9 {
        let text = number.isMultiple(of: 2) ? RecoveryCode(using: &source).text : "not a code at all"
        let wrong = try await recover(text, next: digest.description)
        #expect(wrong.status == 404 && wrong.code == "code_unknown")
      }
      // What isn't tried isn't counted.
      let code = RecoveryCode(using: &source)
      for (text, next) in [(code.text, "short"), (code.text, code.digest.description)] {
        #expect(try await recover(text, next: next).status == 400)
      }
      let paired = try await server.client.call(
        "POST", "/v1/pairing/join", headers: key, json: #"{"code": "22222222"}"#)
      #expect(paired.status == 404)
      let stopped = try await recover(code.text, next: digest.description)
      #expect(stopped.status == 429 && stopped.code == "too_many_guesses")
    }
  }

  @Test("a code of one app is none of another's, nobody can take another player's code, and no request shows one")
  func otherPlayers() async throws {
    try await LiveServer.with(appKeys: ["first-app-key", "second-app-key"]) { server in
      let account = HTTPAccount(url: server.url, appKey: "first-app-key")
      let (ada, bob) = (try await account.register(name: "ada"), try await account.register(name: "bob"))
      var source = SystemRandomNumberGenerator()
      let (code, next) = (RecoveryCode(using: &source), RecoveryCode(using: &source))
      try await HTTPAccount.setRecoveryCode(code, for: ada)
      let other = HTTPAccount(url: server.url, appKey: "second-app-key")
      let refused = await #expect(throws: AccountError.self) { try await other.recover(code, next: next, name: "x") }
      #expect(refused?.code == .unauthorized)
      await #expect(throws: AccountError.self) { try await HTTPAccount.setRecoveryCode(code, for: bob) }
      let bobs = RecoveryCode(using: &source)
      try await HTTPAccount.setRecoveryCode(bobs, for: bob)
      await #expect(throws: AccountError.self) { try await account.recover(bobs, next: code, name: "x") }
      #expect(try await HTTPAccount.recovery(for: ada)?.devices == 1)
      let shown = try await Client(server: server, token: ada.token).call("GET", "/v1/recovery")
      #expect(Set(shown.json.keys) == ["createdMilliseconds", "devices", "digest", "identities"])
      #expect(try await server.client.call("GET", "/v1/recovery").status == 401)
      #expect(try await account.recover(code, next: next, name: "x").container == ada.container)
    }
  }

  @Test("after everything of a player was deleted, the code leads nowhere")
  func deleted() async throws {
    try await with { server, folder in
      let phone = try open("phone", in: folder, server)
      try await phone.cloud.sync()
      let written = try await phone.cloud.makeRecoveryCode()
      try await phone.cloud.deleteEverythingInTheCloud()
      let bought = try open("new", in: folder, server)
      #expect(await thrownCode(\GameDataError.code) { _ = try await bought.cloud.recover(written) } == .refused)
      #expect(await thrownCode(\GameDataError.code) { _ = try await phone.cloud.makeRecoveryCode() } == .refused)
      for game in [phone, bought] { try game.close() }
    }
  }
}
#endif
