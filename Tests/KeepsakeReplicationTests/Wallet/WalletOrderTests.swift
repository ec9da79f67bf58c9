import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// What a store makes of the bank's own operations, and of currencies that no device earns.
@Suite struct WalletOrderTests {
  private var random = SeededGenerator(seed: 9)
  private static let gems = BankRules(authoritative: ["gems"])

  private mutating func operation(
    _ kind: WalletOperation.Kind, _ amount: Int64, _ currency: String = "gems"
  ) -> WalletOperation {
    WalletOperation(id: OperationID(using: &random), kind: kind, currency: currency, amount: amount, reason: "test")
  }

  private mutating func wallet() -> Wallet { Wallet(WalletState(chain: ChainID(using: &random))) }

  private func orders(_ numbers: some Sequence<UInt64>, kind: BankOrder.Kind = .grant) -> [NumberedOrder] {
    numbers.map { number in
      NumberedOrder(
        number: number,
        order: BankOrder(
          id: OperationID(high: 8, low: number), kind: kind, currency: "gems", amount: 1, reason: "support"))
    }
  }

  private func reply(
    _ wallet: Wallet, _ orders: [NumberedOrder] = [], owed: [String: Int64] = [:], authoritative: [String] = []
  ) -> WalletReply {
    WalletReply(
      chain: wallet.state.chain, state: .accepted(wallet.state.head), statement: wallet.state.statement + 1,
      orders: orders, owed: owed, authoritative: authoritative)
  }

  // MARK: Orders

  @Test("orders are taken in their sequence: a gap isn't, and a bank that was set back begins again")
  mutating func sequence() {
    var wallet = wallet()
    #expect(wallet.receive(reply(wallet, orders(1...3)), using: &random).orders.map(\.id.low) == [1, 2, 3])
    #expect(wallet.state.orders == 3 && wallet.offer().orders == 3)
    #expect(wallet.receive(reply(wallet, orders(5...6)), using: &random).orders.isEmpty)
    #expect(wallet.receive(reply(wallet, orders(3...4)), using: &random).orders.isEmpty)
    #expect(wallet.state.orders == 3)
    #expect(wallet.receive(reply(wallet, orders(4...4)), using: &random).orders.count == 1)
    #expect(wallet.receive(reply(wallet, orders(1...2)), using: &random).orders.isEmpty)
    #expect(wallet.state.orders == 4)
    _ = wallet.receive(WalletReply(chain: wallet.state.chain, state: .restored, epoch: 1), using: &random)
    var again = reply(wallet, orders(1...2))
    again.epoch = 1
    #expect(wallet.receive(again, using: &random).orders.count == 2)
    #expect(wallet.state.orders == 2)
  }

  @Test("a bank that lists the same orders in turns isn't asked for more, and nothing is recorded again")
  mutating func turns() {
    var wallet = wallet()
    let most = UInt64(NumberedOrder.maximumListed)
    let lists = [orders(1...most), orders(most + 1...2 * most)]
    for list in lists { #expect(wallet.receive(reply(wallet, list), using: &random).hasMore) }
    for list in lists + lists {
      let change = wallet.receive(reply(wallet, list), using: &random)
      #expect(change.orders.isEmpty && !change.hasMore)
    }
    #expect(wallet.state.orders == 2 * most)
  }

  @Test("a new store's first orders are no news, all lists of them; those after a reply without any are")
  mutating func news() {
    let most = UInt64(NumberedOrder.maximumListed)
    var wallet = wallet()
    for list in [orders(1...most), orders(most + 1...most + 1)] {
      // A gap doesn't end it.
      #expect(wallet.receive(reply(wallet, orders(500...501)), using: &random).orders.isEmpty)
      let change = wallet.receive(reply(wallet, list), using: &random)
      #expect(change.orders.count == list.count && !change.areOrdersNews)
    }
    #expect(wallet.receive(reply(wallet, orders(most + 2...most + 2)), using: &random).areOrdersNews)
    var early = self.wallet()
    // A bank that has nothing of the player makes no statement.
    _ = early.receive(
      WalletReply(chain: early.state.chain, state: .accepted(early.state.head)), using: &random)
    #expect(early.receive(reply(early, orders(1...1)), using: &random).areOrdersNews)
    _ = early.receive(WalletReply(chain: early.state.chain, state: .restored, epoch: 1), using: &random)
    var again = reply(early, orders(1...2))
    again.epoch = 1
    #expect(early.receive(again, using: &random).areOrdersNews)
  }

  @Test("a full list of orders says that there is more")
  mutating func more() {
    var wallet = wallet()
    let most = UInt64(NumberedOrder.maximumListed)
    #expect(wallet.receive(reply(wallet, orders(1...most)), using: &random).hasMore)
    #expect(!wallet.receive(reply(wallet, orders(most + 1...most + 5)), using: &random).hasMore)
  }

  @Test("a reply with impossible orders, debts or currencies changes nothing")
  mutating func impossible() {
    let wallet = wallet()
    var invalid = orders(1...1)
    invalid[0].order.amount = 0
    let most = UInt64(NumberedOrder.maximumListed)
    let debts = (0...Wallet.maximumCurrencies).map { ("currency \($0)", Int64(1)) }
    for reply in [
      reply(wallet, invalid), reply(wallet, orders(1...most + 1)), reply(wallet, orders([1, 3])),
      reply(wallet, orders([0])), reply(wallet, orders([.max])), reply(wallet, owed: ["gems": -1]),
      reply(wallet, owed: ["": 1]), reply(wallet, owed: Dictionary(uniqueKeysWithValues: debts)),
    ] {
      var changed = wallet
      #expect(changed.receive(reply, using: &random) == Wallet.Change() && changed == wallet)
    }
    var changed = wallet
    let names = (0..<300).map { "currency \($0)" } + [""]
    _ = changed.receive(reply(wallet, authoritative: [""] + names), using: &random)
    #expect(changed.state.authoritative == Array(names.prefix(Wallet.maximumCurrencies)))
  }

  @Test("a new chain keeps orders, debts and currencies that no device earns")
  mutating func kept() {
    var wallet = wallet()
    _ = wallet.receive(reply(wallet, orders(1...3), owed: ["gems": 5], authoritative: ["gems"]), using: &random)
    let chain = wallet.state.chain
    _ = wallet.receive(WalletReply(chain: chain, state: .closed(common: wallet.state.head)), using: &random)
    #expect(wallet.state.chain != chain)
    #expect(wallet.state.orders == 3 && wallet.state.owed == ["gems": 5] && wallet.state.authoritative == ["gems"])
    #expect(!wallet.state.isCatchingUp)
  }

  @Test("what is owed is a change of the balances, so that the game looks")
  mutating func owed() {
    var wallet = wallet()
    #expect(wallet.receive(reply(wallet, owed: ["gems": 5]), using: &random).balancesChanged)
    #expect(wallet.state.owed == ["gems": 5])
    #expect(wallet.receive(reply(wallet), using: &random).balancesChanged && wallet.state.owed.isEmpty)
  }

  // MARK: Currencies that no device earns

  @Test("a device that knows such a currency refuses to make more of it, and spends it")
  mutating func refused() throws {
    var wallet = wallet()
    try wallet.perform(operation(.earn, 10))
    _ = wallet.receive(reply(wallet, authoritative: ["gems"]), using: &random)
    wallet.state.totals["gems"] = {
      var totals = WalletTotals()
      totals.granted = 10
      return totals
    }()
    let before = wallet
    let refused = WalletError.serverAuthoritative(currency: "gems")
    for operation in [
      operation(.earn, 1), operation(.claim(key: "daily"), 1),
      operation(.convert(to: "gems", received: 1), 1, "gold"),
    ] { #expect(throws: refused) { try wallet.perform(operation) } }
    let checkpoint = [operation(.spend, 1), operation(.earn, 1)]
    #expect(throws: refused) { try wallet.perform(checkpoint) }
    #expect(wallet == before)
    try wallet.perform(operation(.spend, 3))
    try wallet.perform(operation(.convert(to: "gold", received: 1), 2))
    try wallet.perform(operation(.earn, 7, "gold"))
    #expect(wallet.spendable("gems") == 5 && wallet.spendable("gold") == 8)
  }

  @Test("the bank declines what makes more of such a currency, on a chain and late, and says why")
  mutating func declined() throws {
    for isLate in [false, true] {
      var (bank, cloud) = (Bank(BankState(), rules: Self.gems), MemoryContainer(epoch: 1))
      let chain = ChainID(using: &random)
      let made = [
        operation(.earn, 10), operation(.claim(key: "daily"), 5), operation(.earn, 4, "gold"),
        operation(.convert(to: "gems", received: 1), 2, "gold"),
      ]
      var offer = WalletOffer(chain: chain, base: ChainHead(emptyChain: chain))
      if isLate { offer.late = made } else { offer.operations = made }
      let reply = try bank.answer(offer, in: &cloud)
      #expect(reply.decisions.filter { $0.verdict == .notAllowed }.map(\.id) == [made[0].id, made[1].id, made[3].id])
      #expect(reply.authoritative == ["gems"])
      #expect(bank.balance("gems") == 0 && bank.balance("gold") == 4 && !cloud.isClaimPaid("daily"))
      #expect(made.map { cloud.decision(on: $0.id)?.verdict } == [.declined, .declined, .accepted, .declined])
      #expect(try bank.answer(offer, in: &cloud).decisions == reply.decisions, "repeated because it was lost")
      #expect(cloud.decidedTwice.isEmpty)
    }
  }

  @Test("of a checkpoint that makes more of such a currency, nothing counts")
  mutating func group() throws {
    for isLate in [false, true] {
      var (bank, cloud) = (Bank(BankState(), rules: Self.gems), MemoryContainer(epoch: 1))
      let chain = ChainID(using: &random)
      let income = operation(.earn, 10, "gold")
      var made = [operation(.spend, 4, "gold"), operation(.earn, 1), operation(.claim(key: "daily"), 5, "gold")]
      for index in made.indices { made[index].group = made[0].id }
      var offer = WalletOffer(chain: chain, base: ChainHead(emptyChain: chain), operations: [income])
      if isLate { offer.late = made } else { offer.operations += made }
      let reply = try bank.answer(offer, in: &cloud)
      #expect(reply.decisions.map(\.verdict) == [.declined, .notAllowed, .declined])
      #expect(bank.balance("gold") == 10 && bank.balance("gems") == 0)
    }
  }

  @Test("a device is told what a bank didn't allow, and loses it; an order of the server brings it")
  func device() throws {
    var lab = try Lab()
    lab.rules = Self.gems
    // Before the first contact nobody has told the device.
    try lab.perform(0, .earn, 10)
    try lab.settle(0)
    #expect(lab.verdicts(0) == [.notAllowed] && lab.wallet(0).total("gems") == 0)
    #expect(throws: WalletError.serverAuthoritative(currency: "gems")) { try lab.perform(0, .earn, 10) }
    try lab.order(.grant, 8, id: 1)
    try lab.settle(0)
    #expect(lab.wallet(0).total("gems") == 8 && lab.wallet(0).spendable("gems") == 8)
    try lab.perform(0, .spend, 3)
    try lab.settle(0)
    #expect(lab.money == 5 && lab.verdicts(0) == [.notAllowed])
  }

  @Test("money of another store in such a currency is left to the bank to decline")
  mutating func parcel() throws {
    var wallet = wallet()
    wallet.state.authoritative = ["gems"]
    let operations = [operation(.earn, 5), operation(.earn, 1, "gold")]
    let parcel = WalletParcel(id: OperationID(using: &random), operations: operations)
    #expect(try wallet.receive(parcel) { _ in false }.count == 2)
    #expect(wallet.state.late.map(\.amount) == [5] && wallet.spendable("gold") == 1)
  }
}
