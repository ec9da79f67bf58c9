#if Cloud
import Foundation
import Keepsake
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer
@testable import KeepsakeSync

/// Money that follows a device to another player, over real HTTP.
@Suite("Leaving a player, over real HTTP", .hangLimit) struct LeavingTests {
  private static let gems = Currency("gems")
  private static let chain = ChainID(high: 0, low: 1)

  private func open(
    _ account: Account = .guest, on device: String, in folder: URL, _ server: LiveServer
  ) throws -> GameData {
    let game = try GameData.open("com.example.leaving", account: account, in: folder.appendingPathComponent(device))
    game.cloud.connect(.server(server.url, appKey: server.appKey), deviceName: device)
    return game
  }

  private func has(_ game: GameData, _ total: Int) -> Bool {
    game.wallet[Self.gems].total == total && game.wallet[Self.gems].pending == 0
  }

  @Test("a device that joins by code brings its money, once, and its gift is never paid again")
  func joins() async throws {
    try await TemporaryFolder.with { folder in
      try await LiveServer.with { server in
        let player = try open(.named("ada"), on: "phone", in: folder, server)
        try player.wallet.earn(10, Self.gems, for: "a quest")
        try await player.cloud.sync()
        var guest = try open(on: "tablet", in: folder, server)
        try guest.wallet.earn(100, Self.gems, for: "a quest")
        try guest.wallet.claim(30, Self.gems, key: "starter", for: "welcome")
        try await guest.cloud.sync()
        try guest.wallet.earn(5, Self.gems, for: "not told yet")
        try await guest.cloud.join(try await player.cloud.pairingCode())
        try await until("the money") { has(guest, 145) }
        try await guest.cloud.sync()
        try await player.cloud.sync()
        try player.wallet.claim(30, Self.gems, key: "starter", for: "welcome")
        try await player.cloud.sync()
        #expect(has(player, 145) && player.wallet[Self.gems].spendable < 145)
        // Nothing more comes after a restart, and no token of the player before is kept.
        try guest.close()
        guest = try open(on: "tablet", in: folder, server)
        try await guest.cloud.sync()
        #expect(has(guest, 145))
        try await until("the credentials to go") {
          try FormerFile(of: guest).containers.count <= 1
        }
        try guest.close()
        try player.close()
      }
    }
  }

  /// The kept credentials.
  private struct FormerFile {
    var containers: [String] = []

    init(of game: GameData) throws {
      let file = game.url.appendingPathComponent("former-clouds.json")
      guard FileManager.default.fileExists(atPath: file.path) else { return }
      let list = try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [[String: Any]]
      containers = (list ?? []).compactMap { $0["container"] as? String }
    }
  }

  @Test("an account that adopts a connected guest gets its money from the guest's bank")
  func adopts() async throws {
    try await TemporaryFolder.with { folder in
      try await LiveServer.with { server in
        let guest = try open(on: "phone", in: folder, server)
        try guest.wallet.earn(100, Self.gems, for: "a quest")
        try await guest.cloud.sync()
        try guest.wallet.spend(40, Self.gems, for: "a sword")
        try guest.close()
        let ada = try open(.named("ada"), on: "phone", in: folder, server)
        try ada.wallet.earn(7, Self.gems, for: "a quest")
        try await ada.cloud.sync()
        let adoption = try ada.adopt(.guest, emptying: true)
        #expect(adoption.pendingMoney == [Self.gems: 60] && adoption.isEmptied)
        try await until("the money") { has(ada, 67) }
        #expect(ada.wallet[Self.gems].spendable == 67)
        try ada.close()
      }
    }
  }

  // MARK: The route itself

  private func account(_ name: String, _ server: LiveServer) async throws -> CloudCredentials {
    try await HTTPAccount(url: server.url, appKey: server.appKey).register(name: name)
  }

  private func offer(_ amount: Int64, leavingFor receiver: ContainerID) -> WalletOffer {
    let earned = WalletOperation(
      id: OperationID(high: 7, low: 7), kind: .earn, currency: "gems", amount: amount, reason: "test")
    return WalletOffer(
      chain: Self.chain, base: ChainHead(emptyChain: Self.chain), operations: [earned], leaving: receiver)
  }

  private func reply(_ answer: LeavingAnswer) throws -> WalletReply {
    guard case .reply(let reply) = answer else { throw NoReply() }
    return reply
  }
  private struct NoReply: Error {}

  private func show(_ voucher: WalletVoucher, _ credentials: CloudCredentials) async throws -> WalletReply {
    let chain = ChainID(high: 0, low: 2)
    let offer = WalletOffer(chain: chain, base: ChainHead(emptyChain: chain), vouchers: [voucher])
    let response = try await HTTPTransport(credentials).exchange(
      ExchangeRequest(cursor: .start, wallet: offer, limit: 10))
    return try #require(response.wallet)
  }

  @Test("a bank gives the same voucher again after a lost response and a restart, and another one pays it once")
  func again() async throws {
    try await TemporaryFolder.with { folder in
      var server = try await LiveServer.start(data: folder)
      do {
        let (old, new) = (try await account("Old", server), try await account("New", server))
        let offer = offer(100, leavingFor: new.container)
        let first = try reply(try await HTTPTransport(old).leave(with: offer))
        let voucher = try #require(first.voucher)
        #expect(voucher.amounts == ["gems": 100] && voucher.receiver == new.container)
        let port = server.running.port
        try await server.stop()
        server = try await LiveServer.start(data: folder, port: port)
        #expect(try reply(try await HTTPTransport(old).leave(with: offer)) == first)
        for _ in 1...2 {
          let shown = try await show(voucher, new)
          #expect(shown.takenVouchers == [Self.chain] && shown.balances == ["gems": 100])
        }
        #expect(try await show(voucher, old).declinedVouchers == [Self.chain], "it isn't for this bank")
        var changed = voucher
        changed.amounts = ["gems": 1_000]
        #expect(try await show(changed, new).declinedVouchers == [Self.chain])
      } catch {
        try await server.stop()
        throw error
      }
      try await server.stop()
    }
  }

  @Test("a device that was removed after it had left gets its voucher again, and nothing else")
  func removedAfterwards() async throws {
    try await LiveServer.with { server in
      let (old, new) = (try await account("Old", server), try await account("New", server))
      let code = try await HTTPAccount.pairingCode(for: old).code
      let tablet = try await HTTPAccount(url: server.url, appKey: server.appKey).join(code: code, name: "Tablet")
      var offer = offer(100, leavingFor: new.container)
      let first = try reply(try await HTTPTransport(old).leave(with: offer))
      #expect(first.voucher?.amounts == ["gems": 100])
      try await HTTPAccount.remove(old.device, for: tablet)
      #expect(try reply(try await HTTPTransport(old).leave(with: offer)) == first, "the first response was lost")
      (offer.chain, offer.base) = (ChainID(high: 0, low: 7), ChainHead(emptyChain: ChainID(high: 0, low: 7)))
      guard case .retired = try await HTTPTransport(old).leave(with: offer) else {
        Issue.record("a removed device left with another chain")
        return
      }
    }
  }

  @Test("a receipt that comes after the player's device has joined another player isn't taken, and can be paid there")
  func receipts() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder)
      do {
        let (old, new) = (try await account("Old", server), try await account("New", server))
        _ = try await HTTPTransport(old).leave(with: offer(100, leavingFor: new.container))
        let shop = Client(server: server, token: try ServerKeys(data: folder).create("shop"))
        func pay(_ player: PlayerID) async throws -> Client.Answer {
          try await shop.call(
            "POST", "/v1/bank/\(player)/receipts", json: #"{"receipt": "paid", "currency": "gems", "amount": 50}"#)
        }
        let refused = try await pay(old.player)
        #expect(refused.status == 409 && refused.code == "player_moved")
        #expect(try await pay(new.player).status == 200)
        #expect(try await pay(old.player).code == "receipt_used")
      } catch {
        try await server.stop()
        throw error
      }
      try await server.stop()
    }
  }

  @Test("a device that was removed from its former player is refused for good; a wrong token isn't")
  func removed() async throws {
    try await LiveServer.with { server in
      let (old, new) = (try await account("Old", server), try await account("New", server))
      let code = try await HTTPAccount.pairingCode(for: old).code
      let tablet = try await HTTPAccount(url: server.url, appKey: server.appKey).join(code: code, name: "Tablet")
      let offer = offer(100, leavingFor: new.container)
      try await HTTPAccount.remove(old.device, for: tablet)
      guard case .retired = try await HTTPTransport(old).leave(with: offer) else {
        Issue.record("a removed device left")
        return
      }
      var unknown = tablet
      unknown.token = String(tablet.token.reversed())
      await #expect {
        _ = try await HTTPTransport(unknown).leave(with: offer)
      } throws: { ($0 as? TransportFailure)?.kind == .unauthorized }
    }
  }
}
#endif
