#if Cloud
import Foundation
import Keepsake
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// What the game's own servers order: grants, charges, refunds and receipts, over real HTTP.
@Suite("Orders of the bank, over real HTTP", .hangLimit) struct BankRouteTests {
  private static let gems = Currency("gems")

  /// A server of the game, with a server key.
  private struct Shop {
    let server: LiveServer
    let folder: URL
    let client: Client

    /// Orders for a player, and returns the answer.
    func post(_ path: String, _ player: String, _ json: String) async throws -> Client.Answer {
      try await client.call("POST", "/v1/bank/\(player)/\(path)", json: json)
    }

    func order(
      _ kind: String, _ amount: Int64, of player: String, id: UInt64 = 1, goods: [String] = []
    ) async throws -> Client.Answer {
      let id = OperationID(high: 8, low: id)
      let goods = goods.map { "\"\($0)\"" }.joined(separator: ", ")
      return try await post(
        "orders", player,
        """
        {"id": "\(id)", "kind": "\(kind)", "currency": "gems", "amount": \(amount), "reason": "support",
        "goods": [\(goods)]}
        """)
    }

    func pay(_ receipt: String, _ amount: Int64 = 500, to player: String) async throws -> Client.Answer {
      try await post("receipts", player, #"{"receipt": "\#(receipt)", "currency": "gems", "amount": \#(amount)}"#)
    }

    func account(of player: String) async throws -> Client.Answer { try await client.call("GET", "/v1/bank/\(player)") }

    func open(_ device: String) throws -> GameData {
      try GameData.open("com.example.orders", account: .named(device), in: folder.appendingPathComponent(device))
    }

    func connect(_ game: GameData) async throws {
      game.cloud.connect(.server(server.url, appKey: server.appKey), deviceName: "phone")
      try await game.cloud.sync()
    }
  }

  private func with(
    appKeys: [String] = [], authoritative: Set<String> = [], _ body: (Shop) async throws -> Void
  ) async throws {
    try await TemporaryFolder.with { folder in
      let data = folder.appendingPathComponent("server")
      let server = try await LiveServer.start(
        data: data, appKeys: appKeys, change: { $0.authoritative = authoritative })
      do {
        let key = try ServerKeys(data: data).create("shop")
        try await body(Shop(server: server, folder: folder, client: Client(server: server, token: key)))
      } catch {
        try await server.stop()
        throw error
      }
      try await server.stop()
    }
  }

  private func balance(_ answer: Client.Answer) -> Int? { (answer.json["balances"] as? [String: Any])?["gems"] as? Int }
  private func owed(_ answer: Client.Answer) -> Int? { (answer.json["owed"] as? [String: Any])?["gems"] as? Int }
  private func isRepeated(_ answer: Client.Answer) -> Bool? { answer.json["alreadyDone"] as? Bool }

  // MARK: Orders

  @Test("a grant and a charge count once, however often they are sent, and reach the player's devices at once")
  func orders() async throws {
    try await with { shop in
      let game = try shop.open("phone")
      try await shop.connect(game)
      let player = try await game.cloud.player()
      for isAgain in [false, true, true] {
        let answer = try await shop.order("grant", 100, of: player, goods: ["hat"])
        #expect(answer.status == 200 && isRepeated(answer) == isAgain && balance(answer) == 100)
      }
      // The event of the order, without a call of the game.
      try await until("the grant arrives") { game.wallet[Self.gems].total == 100 }
      #expect(try game.wallet.goods() == [Goods("hat"): 1])
      #expect(try game.wallet.ledger().map(\.kind) == [.granted])
      let notice = try #require(try game.wallet.notices().first)
      #expect(notice.verdict == .received && notice.goods == [Goods("hat")] && notice.reason == "support")

      let other = try await shop.order("grant", 101, of: player)
      #expect(other.status == 409 && other.code == "order_conflict")
      let charged = try await shop.order("charge", 130, of: player, id: 2)
      #expect(charged.status == 200 && owed(charged) == 130 && balance(charged) == 0)
      try await until("the charge arrives") { try game.wallet.owed(Self.gems) == 30 }
      #expect(game.wallet[Self.gems].total == 0)

      let account = try await shop.account(of: player)
      #expect(account.status == 200 && balance(account) == 0 && owed(account) == 30)
      #expect((account.json["goods"] as? [String: Any])?["hat"] as? Int == 1)
      let listed = try #require(account.json["orders"] as? [[String: Any]])
      #expect(listed.map { $0["number"] as? Int } == [1, 2] && account.json["orderNumber"] as? Int == 2)
      let later = try await shop.client.call("GET", "/v1/bank/\(player)?orders=1&goods=1")
      #expect((later.json["orders"] as? [[String: Any]])?.count == 1)
      #expect((later.json["goods"] as? [String: Any])?.isEmpty == true)
      try game.close()
    }
  }

  @Test("a purchase is refunded once; what the bank doesn't know, or hasn't charged, can't be")
  func refunds() async throws {
    try await with { shop in
      let game = try shop.open("phone")
      let earned = try game.wallet.earn(100, Self.gems, for: "a quest")
      let bought = try game.wallet.spend(60, Self.gems, for: "sword", goods: [Goods("sword")])
      try await shop.connect(game)
      let player = try await game.cloud.player()
      func refund(_ id: OperationID) async throws -> Client.Answer {
        try await shop.post("refunds", player, #"{"purchase": "\#(id)", "reason": "by mistake"}"#)
      }
      let unknown = try await refund(OperationID(high: 1, low: 1))
      #expect(unknown.status == 404 && unknown.code == "purchase_unknown")
      for isAgain in [false, true] {
        let answer = try await refund(bought)
        #expect(answer.status == 200 && isRepeated(answer) == isAgain && balance(answer) == 100)
      }
      let wrong = try await refund(earned)
      #expect(wrong.status == 422 && wrong.code == "not_purchase")
      try await game.cloud.sync()
      #expect(game.wallet[Self.gems].total == 100)
      #expect(try game.wallet.goods().isEmpty)
      let ledger = try game.wallet.ledger()
      #expect(ledger.map(\.kind) == [.refund(of: bought), .spent, .earned])
      #expect(ledger.map(\.status) == [.settled, .refunded, .settled])
      #expect(try game.wallet.notices().map(\.verdict) == [.takenBack])
      try game.close()
    }
  }

  @Test("what isn't an order is refused: malformed, beyond the limits, or of no known kind")
  func malformed() async throws {
    try await with { shop in
      let (_, account) = try await shop.server.client.register()
      let player = "\(account.player)"
      for amount in [0, -1, Wallet.maximumAmount + 1, .max, .min] {
        let answer = try await shop.order("grant", amount, of: player)
        #expect(answer.status == 422 && answer.code == "bad_order", "\(amount)")
      }
      let goods = try await shop.order("grant", 1, of: player, goods: [""])
      #expect(goods.status == 422)
      for kind in ["refund", "voucher", "shortfall", "earn"] {
        #expect(try await shop.order(kind, 1, of: player).status == 400)
      }
      for body in ["", "{", "[]", "{}", #"{"purchase": "x", "reason": ""}"#] {
        for path in ["orders", "refunds", "receipts"] {
          #expect(try await shop.post(path, player, body).status == 400, "\(path) \(body)")
        }
      }
      #expect(try await shop.pay("", to: player).status == 400)
      let answer = try await shop.account(of: player)
      #expect((answer.json["orders"] as? [Any])?.isEmpty == true && balance(answer) == nil)
    }
  }

  @Test("a player never has less than none of a good, whatever is charged; money that is missing is owed")
  func charges() async throws {
    try await with { shop in
      let (_, account) = try await shop.server.client.register()
      let player = "\(account.player)"
      #expect(try await shop.order("grant", 10, of: player, id: 1, goods: ["hat", "cap"]).status == 200)
      let charged = try await shop.order("charge", 15, of: player, id: 2, goods: ["hat", "hat", "shoe"])
      #expect(charged.status == 200 && balance(charged) == 0 && owed(charged) == 5)
      let granted = try await shop.order("grant", 6, of: player, id: 3, goods: ["hat"])
      #expect(balance(granted) == 1 && owed(granted) == nil)
      let goods = try await shop.account(of: player).json["goods"] as? [String: Any] ?? [:]
      #expect(goods.mapValues { $0 as? Int } == ["hat": 1, "cap": 1])
    }
  }

  // MARK: Receipts

  @Test("a receipt is paid once, and to one player of an app; another app has its own receipts")
  func receipts() async throws {
    try await with(appKeys: ["first-app-key", "second-app-key"]) { shop in
      let (_, ada) = try await shop.server.client.register("Ada")
      let (_, ben) = try await shop.server.client.register("Ben")
      let (_, other) = try await Client(url: shop.server.url, appKey: "second-app-key").register("Cid")
      for isAgain in [false, true] {
        let answer = try await shop.pay("apple-1", to: "\(ada.player)")
        #expect(answer.status == 200 && isRepeated(answer) == isAgain && balance(answer) == 500)
      }
      let changed = try await shop.pay("apple-1", 600, to: "\(ada.player)")
      #expect(changed.status == 409 && changed.code == "order_conflict")
      let stolen = try await shop.pay("apple-1", to: "\(ben.player)")
      #expect(stolen.status == 409 && stolen.code == "receipt_used")
      #expect(balance(try await shop.account(of: "\(ben.player)")) == nil)
      #expect(try await shop.pay("apple-2", to: "\(ben.player)").status == 200)
      #expect(try await shop.pay("apple-1", to: "\(other.player)").status == 200)
      // A payment that is refused leaves the receipt for another try.
      #expect(try await shop.pay("apple-3", 0, to: "\(ada.player)").status == 422)
      #expect(try await shop.pay("apple-3", to: "\(ben.player)").status == 200)
    }
  }

  @Test("a receipt of a player whose data were deleted is never paid again, and that player has no bank any more")
  func deleted() async throws {
    try await with { shop in
      let (client, ada) = try await shop.server.client.register("Ada")
      #expect(try await shop.pay("apple-1", to: "\(ada.player)").status == 200)
      #expect(try await client.call("DELETE", "/v1/player").status == 204)
      for answer in [
        try await shop.account(of: "\(ada.player)"), try await shop.order("grant", 1, of: "\(ada.player)"),
        try await shop.pay("apple-1", to: "\(ada.player)"),
      ] { #expect(answer.status == 404 && answer.code == "player_unknown") }
      let (_, again) = try await shop.server.client.register("Ada")
      #expect(try await shop.pay("apple-1", to: "\(again.player)").code == "receipt_used")
    }
  }

  @Test("two players can't be paid for one receipt at the same time")
  func race() async throws {
    try await with { shop in
      var players: [String] = []
      for _ in 0..<8 { players.append("\(try await shop.server.client.register().1.player)") }
      let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
        for player in players { group.addTask { try await shop.pay("apple-1", to: player).status } }
        return try await group.reduce(into: [Int]()) { $0.append($1) }
      }
      #expect(statuses.sorted() == [200] + Array(repeating: 409, count: 7))
    }
  }

  // MARK: Keys

  @Test("only a server key is accepted; a device's token and a removed key aren't")
  func keys() async throws {
    try await with { shop in
      let (device, account) = try await shop.server.client.register()
      let path = "/v1/bank/\(account.player)"
      for client in [shop.server.client, device, Client(server: shop.server, token: shop.server.appKey)] {
        let answer = try await client.call("GET", path)
        #expect(answer.status == 401 && answer.code == "unauthorized")
      }
      #expect(try await shop.client.call("GET", path).status == 200)
      #expect(try await shop.client.call("GET", "/v1/bank/x").status == 400)
      let unknown = try await shop.client.call("GET", "/v1/bank/\(OperationID(high: 1, low: 1))")
      #expect(unknown.status == 404 && unknown.code == "player_unknown")
      #expect(try await shop.client.call("GET", path + "?orders=x").status == 400)
      // A server key is no device.
      #expect(try await shop.client.call("POST", "/v1/pairing").status == 401)
      let keys = try ServerKeys(data: shop.folder.appendingPathComponent("server"))
      let second = Client(server: shop.server, token: try keys.create("support"))
      #expect(try await second.call("GET", path).status == 200)
      try keys.remove("shop")
      #expect(try await shop.client.call("GET", path).status == 401)
      #expect(try await second.call("GET", path).status == 200)
    }
  }

  @Test("wrong keys are limited like wrong codes; a right one is always accepted")
  func guesses() async throws {
    try await with { shop in
      let (_, account) = try await shop.server.client.register()
      let path = "/v1/bank/\(account.player)"
      let guesser = Client(server: shop.server, token: "srv_wrong")
      for _ in 0..<10 { #expect(try await guesser.call("GET", path).status == 401) }
      let stopped = try await guesser.call("GET", path)
      #expect(stopped.status == 429 && stopped.code == "too_many_guesses")
      #expect(try #require(stopped.headers["retry-after"].flatMap { Int($0) }) > 0)
      #expect(try await shop.client.call("GET", path).status == 200)
    }
  }

  @Test("the file of server keys has no key in it, and only its owner may read it")
  func file() throws {
    let folder = try TemporaryFolder()
    let keys = try ServerKeys(data: folder.url)
    #expect(try keys.names().isEmpty && !keys.accepts(""))
    let (first, second) = (try keys.create("shop"), try keys.create("support"))
    #expect(first != second)
    #expect(try keys.names() == ["shop", "support"] && keys.accepts(first) && keys.accepts(second))
    #expect(try !keys.accepts(first + "x") && !keys.accepts(String(first.dropLast())))
    let file = folder.url.appendingPathComponent("server-keys")
    #expect(try !String(contentsOf: file, encoding: .utf8).contains(first))
    let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? NSNumber
    #expect(mode?.intValue == 0o600)
    for name in ["", "two words", "shop", String(repeating: "x", count: 65), "a\nb"] {
      #expect(throws: ServerError.self) { try keys.create(name) }
    }
    try keys.remove("shop")
    #expect(throws: ServerError.self) { try keys.remove("shop") }
    #expect(try keys.names() == ["support"] && !keys.accepts(first) && keys.accepts(second))
    try Data("shop nonsense\n".utf8).write(to: file)
    #expect(throws: ServerError.self) { try keys.names() }
    #expect(throws: ServerError.self) { try ServerKeys(data: folder.url.appendingPathComponent("nowhere")) }
  }

  @Test("server keys that are created and removed at the same time are all kept, and all gone")
  func keysAtOnce() async throws {
    try await TemporaryFolder.with { folder in
      let keys = try ServerKeys(data: folder)
      let names = (0..<20).map { "shop-\($0)" }
      for removes in [false, true] {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for name in names {
            group.addTask { if removes { try keys.remove(name) } else { _ = try keys.create(name) } }
          }
          try await group.waitForAll()
        }
        #expect(try keys.names() == (removes ? [] : names.sorted()))
      }
    }
  }

  // MARK: Currencies that no device earns

  @Test("a device can't earn a currency that is the server's: what it earned before it knew is declined")
  func authoritative() async throws {
    try await with(authoritative: ["gems"]) { shop in
      let game = try shop.open("phone")
      try game.wallet.earn(100, Self.gems, for: "a cheat")
      try game.wallet.earn(5, Currency("gold"), for: "a quest")
      try await shop.connect(game)
      #expect(game.wallet[Self.gems].total == 0 && game.wallet[Currency("gold")].total == 5)
      #expect(try game.wallet.notices().map(\.verdict) == [.notAllowed])
      #expect(throws: GameDataError.self) { try game.wallet.earn(1, Self.gems, for: "a cheat") }
      #expect(try await shop.pay("apple-1", to: try await game.cloud.player()).status == 200)
      try await game.cloud.sync()
      #expect(game.wallet[Self.gems].total == 500)
      try game.wallet.spend(500, Self.gems, for: "castle")
      try game.close()
    }
  }

  @Test(
    "names of currencies that can't be are refused at the start", arguments: ["", String(repeating: "x", count: 129)])
  func invalidCurrency(name: String) async throws {
    try await TemporaryFolder.with { folder in
      _ = await #expect(throws: ServerError.self) {
        _ = try await LiveServer.start(data: folder, change: { $0.authoritative = [name] })
      }
    }
  }

  @Test("an export has the orders")
  func export() async throws {
    try await with { shop in
      let (client, account) = try await shop.server.client.register()
      #expect(try await shop.order("grant", 7, of: "\(account.player)").status == 200)
      #expect(try await shop.order("charge", 9, of: "\(account.player)", id: 2).status == 200)
      let text = String(decoding: try await client.call("GET", "/v1/export").body, as: UTF8.self)
      let lines = text.split(separator: "\n")
      #expect(lines.filter { $0.hasPrefix("{\"order\":") }.count == 2)
      #expect(lines.contains { $0.contains("\"owed\":{\"gems\":2}") })
    }
  }
}
#endif
