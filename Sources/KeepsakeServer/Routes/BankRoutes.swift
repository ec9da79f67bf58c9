#if Cloud
import Crypto
import Foundation
import Hummingbird
import KeepsakeReplication

/// What the game's own servers order of a player's bank, with a server key.
extension CloudRoutes {
  struct Order: Decodable {
    enum Kind: String, Decodable {
      case grant, charge
    }
    var id: OperationID
    var kind: Kind
    var currency: String
    var amount: Int64
    var reason: String
    var goods: [String]?

    func order(now: Int64) -> BankOrder {
      BankOrder(
        id: id, kind: kind == .grant ? .grant : .charge, currency: currency.canonical, amount: amount, reason: reason,
        goods: (goods ?? []).map(\.canonical), madeAtMilliseconds: now)
    }
  }
  struct Refund: Decodable {
    var purchase: OperationID
    var reason: String
  }
  private struct Receipt: Decodable {
    var receipt: String
    var currency: String
    var amount: Int64
    var reason: String?
    var goods: [String]?
  }
  private struct Performed: Encodable {
    var order: BankOrder
    var alreadyDone: Bool
    var balances: [String: Int64]
    var owed: [String: Int64]
  }

  func addBankRoutes(to router: RouterGroup<CloudContext>) {
    addReleaseRoutes(to: router)
    router.get("bank/{player}") { request, context in
      let place = try await place(of: request, context)
      let (goods, orders) = (try Self.number("goods", of: request), try Self.number("orders", of: request))
      return try Response(
        json: try await storage.account(of: place.container, goodsAfter: goods ?? 0, ordersAfter: orders))
    }
    router.post("bank/{player}/orders") { request, context in
      let place = try await place(of: request, context)
      let asked = try await gate.json(Order.self, of: request, limit: ServerLimits.orderBytes)
      return try await perform(asked.order(now: clock()), at: place, in: storage)
    }
    router.post("bank/{player}/refunds") { request, context in
      let place = try await place(of: request, context)
      let asked = try await gate.json(Refund.self, of: request, limit: ServerLimits.orderBytes)
      let order = BankOrder(refunding: asked.purchase, reason: asked.reason, madeAtMilliseconds: clock())
      return try await perform(order, at: place, in: storage)
    }
    router.post("bank/{player}/receipts") { request, context in
      let place = try await place(of: request, context)
      let asked = try await gate.json(Receipt.self, of: request, limit: ServerLimits.receiptBytes)
      guard !asked.receipt.isEmpty else { throw APIError(.badRequest, .badRequest, "The receipt is empty.") }
      let receipt = ContentHash(of: Data(asked.receipt.utf8))
      let order = BankOrder(
        id: BankOrder.receiptID(receipt, of: place.app.bytes.base64EncodedString()), kind: .grant,
        currency: asked.currency.canonical, amount: asked.amount, reason: asked.reason ?? "receipt",
        goods: (asked.goods ?? []).map(\.canonical), receipt: receipt, madeAtMilliseconds: clock())
      return try await perform(order, at: place, in: storage)
    }
  }

  /// What a bank has after it was released.
  private struct Released: Encodable {
    /// Whether it had waited.
    var released: Bool
    var balances: [String: Int64]
    var owed: [String: Int64]
  }
  private struct ReleasedPage: Encodable {
    var released: Int
    var unreadable: Int
    var next: ContainerID?
  }
  private struct PagePlace: Decodable {
    var after: ContainerID?
  }

  /// Ends the wait of banks that were set back to a backup: of one player's, or of all, page by page.
  private func addReleaseRoutes(to router: RouterGroup<CloudContext>) {
    router.post("bank/{player}/release") { request, context in
      let container = try await place(of: request, context).container
      let seq = try await storage.releaseBank(of: container, rules: bankRules(of: container))
      if let seq { events.publish(seq, nil, of: container, from: nil) }
      let account = try await storage.account(of: container, goodsAfter: 0, ordersAfter: nil)
      return try Response(
        json: Released(released: seq != nil, balances: account.balances, owed: account.owed))
    }
    router.post("bank/release") { request, context in
      try checkServerKey(of: request, context)
      let place = try await gate.json(PagePlace.self, of: request, limit: ServerLimits.orderBytes)
      let page = try await storage.releaseBanks(after: place.after, rules: BankRules(epoch: storage.bankEpoch))
      for (container, seq) in page.seqs { events.publish(seq, nil, of: container, from: nil) }
      return try Response(
        json: ReleasedPage(released: page.seqs.count, unreadable: page.unreadable, next: page.next))
    }
  }

  /// Performs an order in one transaction: a receipt is marked as paid with its payment, or neither happens. So a
  /// receipt that came too late, after the player's devices had joined another player, can be posted for that one.
  ///
  /// - Parameters:
  ///   - storage: Where it is committed.
  ///   - deciding: Called with what will be committed, if nothing else about the player is committed first.
  func perform(
    _ order: BankOrder, at place: PlayerPlace, in storage: some DecidingStorage,
    deciding: @escaping @Sendable (Bank.OrderOutcome) -> Void = { _ in }
  ) async throws -> Response {
    let (now, rules) = (clock(), bankRules(of: place.container))
    var reads = ReadSet()
    reads.bank = CloudAcceptance.reads(of: order)
    let receipt = order.receipt.map { KeepsakeReplication.Receipt(app: place.app.bytes, hash: $0, operation: order.id) }
    reads.bank.receipt = receipt
    let (outcome, bank, seq) = try await storage.decide(on: place.container, reading: reads) { container in
      if let receipt, try !container.takeReceipt(receipt, for: place.container) {
        throw APIError(.conflict, .receiptUsed, "This receipt was paid to another player of this app.")
      }
      var source = SystemRandomNumberGenerator()
      let before = container.position()
      let outcome = try CloudAcceptance.perform(order, now: now, rules: rules, in: &container, using: &source)
      deciding(outcome)
      let after = container.position()
      return (outcome, Bank(try container.bank()), after == before ? UInt64?.none : after.seq)
    }
    if let seq { events.publish(seq, nil, of: place.container, from: nil) }
    var performed = Performed(
      order: outcome.order, alreadyDone: false, balances: bank.shownBalances(), owed: bank.state.debts ?? [:])
    if case .alreadyDone = outcome { performed.alreadyDone = true }
    return try Response(json: performed)
  }

  /// Throws unless the request has a server key.
  ///
  /// A right key is accepted however many wrong ones came from its address: behind a proxy, everybody has the same.
  private func checkServerKey(of request: Request, _ context: CloudContext) throws {
    guard let key = Self.bearer(of: request) else {
      throw APIError(.unauthorized, .unauthorized, "This request needs a server key in the header Authorization.")
    }
    guard try serverKeys.accepts(key) else {
      let peer = gate.client(of: request, context).network
      if let seconds = keyGuesses.begin(peer: peer, app: Self.allKeys, now: clock()) {
        throw gate.refusals.count(
          .guesses, from: peer,
          as: APIError(
            .tooManyRequests, .tooManyGuesses, "Too many wrong server keys; try again later.",
            retryAfterSeconds: seconds))
      }
      throw APIError(.unauthorized, .unauthorized, "This server doesn't accept this server key.")
    }
  }

  /// Returns where the player of the address is kept, if the request has a server key.
  private func place(of request: Request, _ context: CloudContext) async throws -> PlayerPlace {
    try checkServerKey(of: request, context)
    guard let player = context.parameters.get("player").flatMap({ PlayerID($0) }) else {
      throw APIError(.badRequest, .badRequest, "The address has to contain a player's id of 32 hexadecimal digits.")
    }
    guard var place = try await storage.place(of: player) else {
      throw APIError(.notFound, .playerUnknown, "There is no such player, or none of the player's devices is left.")
    }
    // In a shared container, the devices of each game have another right: a receipt is paid once in all of it.
    place.app = appKeys.scope(of: place.app)
    return place
  }

  /// Wrong server keys are counted together, whichever app's player they were for.
  private static var allKeys: AppID { AppID(ofKey: "") }

  static func number(_ name: String, of request: Request) throws -> UInt64? {
    guard let text = request.uri.queryParameters[Substring(name)] else { return nil }
    guard let number = UInt64(text), number <= Cursor.maximumSeq else {
      throw APIError(.badRequest, .badRequest, "The parameter \(name) has to be a number.")
    }
    return number
  }
}

extension APIError {
  /// Why a bank refused an order.
  init(_ error: BankOrderError) {
    let text = error.description
    let message = "\(text.prefix(1).uppercased())\(text.dropFirst())."
    switch error {
    case .idReused: self.init(.conflict, .orderConflict, message)
    case .invalid: self.init(.unprocessableContent, .badOrder, message)
    case .tooMuch: self.init(.unprocessableContent, .tooMuch, message)
    case .unknownPurchase: self.init(.notFound, .purchaseUnknown, message)
    case .detailsNotKept: self.init(.conflict, .purchaseForgotten, message)
    case .notCharged: self.init(.conflict, .notCharged, message)
    case .notPurchase: self.init(.unprocessableContent, .notPurchase, message)
    case .playerMoved: self.init(.conflict, .playerMoved, message)
    }
  }
}
#endif
