#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync
import TestSupport
import Testing

@testable import Keepsake
@testable import KeepsakeServer

/// Players who sign in with identities of another service, in whole games.
@Suite("Signing in", .hangLimit) struct SignInTests {
  private static let level = ProgressKey("level", default: 1, rule: .max)
  private static let gems = Currency("gems")
  private static let cave = Slot<String>("cave")
  private let issuer = TestIssuer()

  private func open(_ name: String, in folder: URL, _ server: LiveServer) throws -> GameData {
    let game = try GameData.open("com.example.signin", at: folder.appendingPathComponent(name))
    game.cloud.connect(.server(server.url, appKey: server.appKey), deviceName: name)
    return game
  }

  private func identity(_ subject: String, _ changes: [String: Any] = [:]) throws -> SignIn {
    .token(try issuer.token(of: subject, changes), issuer: "login")
  }

  private func code(_ body: () async throws -> Void) async -> GameDataError.Code? {
    do {
      try await body()
      return nil
    } catch {
      return (error as? GameDataError)?.code
    }
  }

  private func with(
    nonce: Bool = false, singleUse: Bool = false, _ body: (LiveServer, URL) async throws -> Void
  ) async throws {
    try await TemporaryFolder.with { folder in
      var login = try issuer.configuration(in: folder)
      (login.requiresNonce, login.isSingleUse) = (nonce, singleUse)
      func change(_ configuration: inout ServerConfiguration) { configuration.identityIssuers = [login] }
      try await LiveServer.with(change: change) { try await body($0, folder) }
    }
  }

  @Test("a player whose only device is lost signs in on a new one, and has saves, values and money")
  func comesBack() async throws {
    try await with { server, folder in
      let phone = try open("phone", in: folder, server)
      try await phone.saves.save("deep", to: Self.cave)
      try phone.progress.record(9, for: Self.level)
      try phone.wallet.claim(120, Self.gems, key: "starter", for: "welcome")
      try await phone.cloud.sync()
      #expect(try await !phone.cloud.recoveryState().canComeBack)
      #expect(try await phone.cloud.signIn(identity("ada")) == .linked)
      #expect(try await phone.cloud.signIn(identity("ada")) == .linked, "it is that player's already")
      let state = try await phone.cloud.recoveryState()
      #expect(state.canComeBack && state.identities == 1)
      try phone.close()
      try FileManager.default.removeItem(at: folder.appendingPathComponent("phone"))

      let bought = try open("bought", in: folder, server)
      #expect(try await bought.cloud.signIn(identity("ada")) == .joined)
      try await bought.cloud.sync()
      #expect(try bought.saves.load(Self.cave) == "deep" && bought.progress[Self.level] == 9)
      #expect(bought.wallet[Self.gems].total == 120)
      for lost in try await bought.cloud.devices() where !lost.isThis { try await bought.cloud.remove(lost) }
      try await until("the money is free") { bought.wallet[Self.gems].spendable == 120 }
      // The one who came back has shown it last: the lost phone takes nothing away.
      #expect(try await bought.cloud.identities().map(\.issuer) == ["login"])
      try bought.close()
    }
  }

  @Test("a device whose credentials are gone is refused, and signs in as the same player again if it may join")
  func lostCredentials() async throws {
    try await with { server, folder in
      var phone = try open("phone", in: folder, server)
      try phone.progress.record(9, for: Self.level)
      #expect(try await phone.cloud.signIn(identity("ada")) == .linked)
      try await phone.cloud.sync()
      let player = try await phone.cloud.player()
      try phone.close()
      try FileManager.default.removeItem(at: folder.appendingPathComponent("phone/cloud.json"))

      phone = try open("phone", in: folder, server)
      #expect(await code { try await phone.cloud.sync() } == .refused)
      #expect(await code { try await phone.cloud.signIn(identity("ada")) } == .refused)
      #expect(
        await code { try await phone.cloud.signIn(identity("ben"), ifTaken: .join) } == .refused, "it leads to nobody")
      #expect(try await phone.cloud.signIn(identity("ada"), ifTaken: .join) == .joined)
      try await phone.cloud.sync()
      #expect(try await phone.cloud.player() == player && phone.progress[Self.level] == 9)
      #expect(phone.incidents.isEmpty)
      try phone.close()
    }
  }

  @Test("an identity of another player is a typed error, and only with the player's consent is the data of both joined")
  func taken() async throws {
    try await with { server, folder in
      let phone = try open("phone", in: folder, server)
      try await phone.saves.save("deep", to: Self.cave)
      try phone.wallet.claim(120, Self.gems, key: "starter", for: "welcome")
      try await phone.cloud.sync()
      try await phone.cloud.signIn(identity("ada"))

      let guest = try open("guest", in: folder, server)
      try guest.progress.record(5, for: Self.level)
      try guest.wallet.earn(7, Self.gems, for: "a quest")
      try await guest.cloud.sync()
      let player = try await guest.cloud.player()
      for _ in 0..<2 {
        #expect(await code { try await guest.cloud.signIn(identity("ada")) } == .identityTaken)
      }
      try await guest.cloud.sync()
      #expect(try await guest.cloud.player() == player && guest.saves.load(Self.cave) == nil)
      #expect(try await guest.cloud.identities().isEmpty)
      #expect(try await phone.cloud.devices().count == 1)

      #expect(try await guest.cloud.signIn(identity("ada"), ifTaken: .join) == .joined)
      try await guest.cloud.sync()
      #expect(try await guest.cloud.player() == phone.cloud.player())
      #expect(try guest.saves.load(Self.cave) == "deep" && guest.progress[Self.level] == 5)
      try await until("the guest's money has moved") {
        try await guest.cloud.sync()
        return guest.wallet[Self.gems].total == 127
      }
      try await phone.cloud.sync()
      #expect(phone.progress[Self.level] == 5)
      for game in [phone, guest] { try game.close() }
    }
  }

  @Test("only a device with nothing to lose joins unasked: a value or a way back of its own is asked about")
  func nothingToLose() async throws {
    try await with { server, folder in
      let phone = try open("phone", in: folder, server)
      try await phone.cloud.signIn(identity("ada"))
      // Registered long ago, and never used.
      let idle = try open("idle", in: folder, server)
      try await idle.cloud.sync()
      #expect(try await idle.cloud.signIn(identity("ada")) == .joined)
      let valued = try open("valued", in: folder, server)
      try valued.progress.record(1, for: Self.level)
      #expect(await code { try await valued.cloud.signIn(identity("ada")) } == .identityTaken)
      let coded = try open("coded", in: folder, server)
      _ = try await coded.cloud.makeRecoveryCode()
      #expect(await code { try await coded.cloud.signIn(identity("ada")) } == .identityTaken)
      let linked = try open("linked", in: folder, server)
      try await linked.cloud.signIn(identity("bob"))
      #expect(await code { try await linked.cloud.signIn(identity("ada")) } == .identityTaken)
      let paired = try open("paired", in: folder, server)
      try await paired.cloud.join(try await coded.cloud.pairingCode())
      #expect(await code { try await paired.cloud.signIn(identity("ada")) } == .identityTaken)
      #expect(try await phone.cloud.devices().count == 2)
      for game in [phone, idle, valued, coded, linked, paired] { try game.close() }
    }
  }

  @Test("a player has several identities, removes any of them, the last too, and the state says what is left")
  func several() async throws {
    try await with { server, folder in
      let phone = try open("phone", in: folder, server)
      try phone.progress.record(3, for: Self.level)
      for subject in ["ada", "ada at work"] { try await phone.cloud.signIn(identity(subject)) }
      var all = try await phone.cloud.identities()
      #expect(all.map(\.issuer) == ["login", "login"] && all[0].linked <= all[1].linked && all[0].id != all[1].id)
      #expect(try await phone.cloud.recoveryState().identities == 2)
      try await phone.cloud.unlink(all[0])
      #expect(await code { try await phone.cloud.unlink(all[0]) } == .refused)
      #expect(await code { try await phone.cloud.unlink(.init(id: "x", issuer: "", linked: .now)) } == .misuse)
      all = try await phone.cloud.identities()
      #expect(all.count == 1)
      let other = try open("other", in: folder, server)
      #expect(await code { try await other.cloud.unlink(all[0]) } == .refused, "it isn't that player's")
      #expect(try await phone.cloud.recoveryState().canComeBack)
      try await phone.cloud.unlink(all[0])
      let state = try await phone.cloud.recoveryState()
      #expect(state.identities == 0 && !state.canComeBack)
      // It leads to nobody now.
      try await phone.cloud.sync()
      #expect(try await other.cloud.signIn(identity("ada")) == .linked)
      for number in 0..<15 { try await other.cloud.signIn(identity("\(number)")) }
      #expect(await code { try await other.cloud.signIn(identity("one too many")) } == .refused)
      for game in [phone, other] { try game.close() }
    }
  }

  @Test("what a removed device has linked is void, so that a thief can't come back; who signs out comes back with it")
  func removedDevices() async throws {
    try await with { server, folder in
      let phone = try open("phone", in: folder, server)
      try phone.progress.record(3, for: Self.level)
      try await phone.cloud.sync()
      let stolen = try open("stolen", in: folder, server)
      try await stolen.cloud.join(try await phone.cloud.pairingCode())
      try await stolen.cloud.signIn(identity("thief"))
      try await stolen.cloud.signIn(identity("ada"))
      try await phone.cloud.signIn(identity("ada"))
      let device = try #require(try await phone.cloud.devices().first { !$0.isThis })
      try await phone.cloud.remove(device)
      #expect(try await phone.cloud.identities().count == 1, "that of the phone")
      let thief = try open("thief", in: folder, server)
      #expect(try await thief.cloud.signIn(identity("thief")) == .linked)
      #expect(try await thief.cloud.player() != phone.cloud.player())
      // The token of a removed device links nothing; its owner can join again, and is asked first.
      #expect(await code { try await stolen.cloud.signIn(identity("new")) } == .refused)
      #expect(await code { try await stolen.cloud.signIn(identity("ada")) } == .refused)
      #expect(await code { try await stolen.cloud.signIn(identity("new"), ifTaken: .join) } == .refused)
      #expect(try await stolen.cloud.signIn(identity("ada"), ifTaken: .join) == .joined)
      try await stolen.cloud.sync()
      #expect(try await phone.cloud.devices().count == 2)
      for game in [phone, stolen, thief] { try game.close() }

      let place = folder.appendingPathComponent("tablet")
      func tablet() throws -> GameData {
        let game = try GameData.open("com.example.signin", account: .named("eve"), in: place)
        game.cloud.connect(.server(server.url, appKey: server.appKey), deviceName: "tablet")
        return game
      }
      var game = try tablet()
      try game.progress.record(5, for: Self.level)
      try await game.cloud.sync()
      #expect(await code { try await game.signOut(forgetting: true) } == .lastDevice)
      try await game.cloud.signIn(identity("eve"))
      try await game.signOut(forgetting: true)
      game = try tablet()
      #expect(try await game.cloud.signIn(identity("eve")) == .joined)
      try await game.cloud.sync()
      #expect(game.progress[Self.level] == 5)
      try game.close()
    }
  }

  @Test("after everything of a player was deleted, the identity leads to nobody")
  func deleted() async throws {
    try await with { server, folder in
      let phone = try open("phone", in: folder, server)
      try await phone.cloud.signIn(identity("ada"))
      try await phone.cloud.deleteEverythingInTheCloud()
      let bought = try open("bought", in: folder, server)
      #expect(try await bought.cloud.signIn(identity("ada")) == .linked)
      for game in [phone, bought] { try game.close() }
    }
  }

  @Test("a game whose response was lost gets the same result by the same call")
  func lostResponse() async throws {
    try await with(singleUse: true) { server, folder in
      let phone = try open("phone", in: folder, server)
      try await phone.cloud.signIn(identity("ada"))
      let bought = try open("bought", in: folder, server)
      let again = try identity("ada")
      let held = try await bought.cloud.connection.asPlayer { $0 }
      // The requests that are made and whose responses don't come.
      _ = await #expect(throws: AccountError.self) {
        try await HTTPAccount.link(again.token, ofIssuer: "login", for: held)
      }
      let lost = try await HTTPAccount.signIn(again.token, ofIssuer: "login", name: "bought", for: held)
      #expect(try await bought.cloud.signIn(again) == .joined)
      let devices = try await bought.cloud.devices()
      #expect(devices.count == 2 && devices.contains { $0.isThis && $0.id == lost.device.description })
      for game in [phone, bought] { try game.close() }
    }
  }

  @Test("a token with a nonce works on the device that asked for it, and on no other")
  func nonce() async throws {
    try await with(nonce: true) { server, folder in
      let phone = try open("phone", in: folder, server)
      try phone.progress.record(3, for: Self.level)
      #expect(await code { try await phone.cloud.signIn(identity("ada")) } == .refused)
      let nonce = try await phone.cloud.signInNonce(issuer: "login")
      let token = try identity("ada", ["nonce": nonce])
      #expect(try await phone.cloud.signIn(token) == .linked)
      let thief = try open("thief", in: folder, server)
      #expect(await code { try await thief.cloud.signIn(token, ifTaken: .join) } == .refused)
      let bought = try open("bought", in: folder, server)
      let next = try await bought.cloud.signInNonce(issuer: "login")
      #expect(try await bought.cloud.signIn(identity("ada", ["nonce": next])) == .joined)
      // What the player has removed doesn't come back with a token that was used.
      let own = try await bought.cloud.signInNonce(issuer: "login")
      let used = try identity("eve", ["nonce": own])
      try await bought.cloud.signIn(used)
      let eve = try #require(try await bought.cloud.identities().last)
      try await bought.cloud.unlink(eve)
      #expect(await code { try await bought.cloud.signIn(used) } == .refused)
      #expect(await code { _ = try await phone.cloud.signInNonce(issuer: "nobody") } == .refused)
      for game in [phone, thief, bought] { try game.close() }
    }
  }

  @Test("a device that was removed comes back with a token for its nonce, also after the game was closed meanwhile")
  func removedWithNonce() async throws {
    try await with(nonce: true) { server, folder in
      let phone = try open("phone", in: folder, server)
      try phone.progress.record(3, for: Self.level)
      try await phone.cloud.sync()
      var tablet = try open("tablet", in: folder, server)
      try await tablet.cloud.join(try await phone.cloud.pairingCode())
      try await tablet.cloud.sync()
      let nonce = try await phone.cloud.signInNonce(issuer: "login")
      try await phone.cloud.signIn(identity("ada", ["nonce": nonce]))
      let device = try #require(try await phone.cloud.devices().first { !$0.isThis })
      try await phone.cloud.remove(device)

      let next = try await tablet.cloud.signInNonce(issuer: "login")
      try tablet.close()
      tablet = try open("tablet", in: folder, server)
      #expect(try await tablet.cloud.signInNonce(issuer: "login") != next)
      #expect(try await tablet.cloud.signIn(identity("ada", ["nonce": next]), ifTaken: .join) == .joined)
      try await tablet.cloud.sync()
      #expect(try await tablet.cloud.player() == phone.cloud.player())
      #expect(try await phone.cloud.devices().count == 2)
      for game in [phone, tablet] { try game.close() }
    }
  }

  @Test("a folder has no identities, and a server without issuers says so")
  func without() async throws {
    try await TemporaryFolder.with { folder in
      try await LiveServer.with { server in
        let game = try open("game", in: folder, server)
        #expect(await code { try await game.cloud.signIn(identity("ada")) } == .refused)
        #expect(try await game.cloud.identities().isEmpty)
        try await game.cloud.sync()
        let shared = folder.appendingPathComponent("shared")
        try FileManager.default.createDirectory(at: shared, withIntermediateDirectories: true)
        let away = try GameData.open("com.example.signin", at: folder.appendingPathComponent("away"))
        away.cloud.connect(.folder(shared))
        #expect(await code { try await away.cloud.signIn(identity("ada")) } == .misuse)
        #expect(await code { _ = try await away.cloud.identities() } == .misuse)
        for game in [game, away] { try game.close() }
      }
    }
  }
}
#endif
