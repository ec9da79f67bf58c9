#if Cloud
import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// Money of shared containers over HTTP: receipts of several games, and games that may only read.
@Suite("Money in shared containers", .hangLimit) struct SharedMoneyTests {
  private static let chain = ChainID(high: 4, low: 1)

  /// An offer of a new chain that has earned once.
  private func offer(on chain: ChainID, _ amount: Int64, leavingFor receiver: ContainerID? = nil) -> WalletOffer {
    let earned = WalletOperation(
      id: OperationID(high: chain.low, low: 7), kind: .earn, currency: "gems", amount: amount, reason: "test")
    return WalletOffer(
      chain: chain, base: ChainHead(emptyChain: chain), operations: [earned], leaving: receiver)
  }

  private func exchange(_ offer: WalletOffer, _ client: Client) async throws -> ExchangeResponse {
    let request = ExchangeRequest(cursor: .start, wallet: offer, limit: 10)
    let answer = try await client.call("POST", "/v1/exchange", body: try JSONEncoder().encode(request))
    try #require(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
    return try JSONDecoder().decode(ExchangeResponse.self, from: answer.body)
  }

  private func leave(_ offer: WalletOffer, _ client: Client) async throws -> Client.Answer {
    try await client.call(
      "POST", "/v1/wallet/leave", body: try JSONEncoder().encode(LeavingRequest(offer: offer)))
  }

  private func shop(_ studio: StudioServer) throws -> Client {
    Client(url: studio.server.url, appKey: "", token: try ServerKeys(data: studio.data).create("shop"))
  }

  private func gems(_ account: Client.Account, _ shop: Client) async throws -> Int? {
    let answer = try await shop.call("GET", "/v1/bank/\(account.player)")
    return (answer.json["balances"] as? [String: Any])?["gems"] as? Int
  }

  @Test("a receipt is paid once in a shared container, whichever of its games its player has")
  func receipts() async throws {
    try await StudioServer.with { studio in
      for app in ["garden", "bakery"] { try studio.grant(app) }
      let shop = try shop(studio)
      let garden = try await studio.shared(try await studio.client("garden").register().0).account
      let bakery = try await studio.shared(try await studio.client("bakery").register().0).account
      func pay(_ account: Client.Account) async throws -> Client.Answer {
        try await shop.call(
          "POST", "/v1/bank/\(account.player)/receipts",
          json: #"{"receipt": "a receipt", "currency": "gems", "amount": 500}"#)
      }
      #expect(try await pay(garden).status == 200)
      #expect(try await pay(bakery).code == "receipt_used")
      #expect(try await pay(garden).json["alreadyDone"] as? Bool == true)
      #expect(try await gems(garden, shop) == 500)
    }
  }

  @Test("a game that may only read earns nothing, by an exchange or as one that leaves, and ends nobody else's chain")
  func readOnly() async throws {
    try await StudioServer.with { studio in
      try studio.grant("garden")
      let shop = try shop(studio)
      let garden = try await studio.client("garden").register().0
      let (mine, account) = try await studio.shared(garden)
      let (other, others) = try await studio.shared(garden)
      let (own, new) = (offer(on: Self.chain, 30), offer(on: ChainID(high: 4, low: 2), 1_000))
      #expect(try await exchange(own, mine).wallet != nil)
      #expect(try await gems(account, shop) == 30)

      try studio.grant("garden", .readOnly)
      let response = try await exchange(new, other)
      #expect(response.isReadOnly && response.wallet == nil)
      #expect(try await leave(new, other).code == "read_only")
      let leaving = offer(on: ChainID(high: 4, low: 2), 1_000, leavingFor: ContainerID(high: 9, low: 9))
      #expect(try await leave(leaving, other).code == "read_only")
      // It names a chain that isn't its own, and leaves.
      _ = try await exchange(own, other)
      #expect(try await other.call("DELETE", "/v1/devices/\(others.device)").status == 204)
      #expect(try await gems(account, shop) == 30)

      try studio.grant("garden")
      let reply = try #require(try await exchange(own, mine).wallet)
      if case .closed = reply.state { Issue.record("somebody else's chain was closed") }
      #expect(try await gems(account, shop) == 30)
    }
  }

  @Test("what a game had left before it could only read is given again, as to a device that was removed")
  func leftBefore() async throws {
    try await StudioServer.with { studio in
      try studio.grant("garden")
      let garden = try await studio.client("garden").register().0
      let mine = try await studio.shared(garden).client
      let offer = offer(on: Self.chain, 30, leavingFor: ContainerID(high: 9, low: 9))
      let first = try await leave(offer, mine)
      let voucher = try JSONDecoder().decode(LeavingResponse.self, from: first.body).reply.voucher
      #expect(voucher?.amounts == ["gems": 30])
      try studio.grant("garden", .readOnly)
      let again = try await leave(offer, mine)
      #expect(again.status == 200)
      #expect(try JSONDecoder().decode(LeavingResponse.self, from: again.body).reply.voucher == voucher)
    }
  }
}
#endif
