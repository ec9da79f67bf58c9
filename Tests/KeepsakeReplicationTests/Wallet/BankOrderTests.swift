import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// The bank's own operations: each counts once, and whatever a device had in its hands is settled with them.
@Suite struct BankOrderTests {
  private static let chain = ChainID(high: 0, low: 1)

  private func operation(
    _ kind: WalletOperation.Kind, _ amount: Int64, _ number: UInt64, goods: [String] = []
  ) -> WalletOperation {
    WalletOperation(
      id: OperationID(high: 7, low: number), kind: kind, currency: "gems", amount: amount, reason: "test", goods: goods)
  }

  private func order(
    _ kind: BankOrder.Kind, _ amount: Int64, _ number: UInt64 = 1, currency: String = "gems", goods: [String] = []
  ) -> BankOrder {
    BankOrder(
      id: OperationID(high: 8, low: number), kind: kind, currency: currency, amount: amount, reason: "support",
      goods: goods)
  }

  private func offer(
    _ operations: [WalletOperation] = [], late: [WalletOperation] = [], chain: ChainID = chain
  ) -> WalletOffer {
    WalletOffer(chain: chain, base: ChainHead(emptyChain: chain), operations: operations, late: late)
  }

  private func objection(_ body: () throws -> Void) -> BankOrderError? {
    do {
      try body()
      return nil
    } catch {
      return error as? BankOrderError
    }
  }

  // MARK: Grants

  @Test("a grant reaches a player whose bank was never used, with its goods, and each device once")
  func grant() throws {
    var lab = try Lab(devices: 2)
    for index in [0, 1] { try lab.settle(index) }
    let before = lab.cloud.position()
    try lab.order(.grant, 60, id: 1, goods: ["hat", "hat"])
    #expect(lab.cloud.position().seq == before.seq + 1, "devices that listen fetch")
    #expect(lab.money == 60 && lab.cloud.bank().pool == ["gems": 60])
    for index in [0, 1, 0, 1] { try lab.settle(index) }
    for index in [0, 1] {
      #expect(lab.wallet(index).total("gems") == 60)
      #expect(lab.devices[index].storage.orders.map(\.amount) == [60])
      #expect(lab.devices[index].storage.goods().counts == ["hat": 2])
      #expect(lab.wallet(index).state.orders == 1)
    }
    #expect(lab.wallet(0).spendable("gems") + lab.wallet(1).spendable("gems") > 0)
  }

  @Test("an order that is repeated changes nothing; another one with its id, or with that of an operation, is refused")
  func repeated() throws {
    var lab = try Lab()
    try lab.settle(0)
    let earned = try lab.perform(0, .earn, 5)
    try lab.settle(0)
    let done = try lab.order(.grant, 60, id: 1)
    #expect(done == .done(NumberedOrder(number: 1, order: done.order)))
    let position = lab.cloud.position()
    #expect(try lab.order(.grant, 60, id: 1) == .alreadyDone(done.order))
    #expect(lab.cloud.position() == position && lab.money == 65)
    for (kind, amount, goods) in [
      (BankOrder.Kind.grant, Int64(61), [String]()), (.charge, 60, []), (.grant, 60, ["x"]),
    ] {
      #expect(throws: BankOrderError.idReused(done.order.id)) {
        try lab.order(kind, amount, id: 1, goods: goods)
      }
    }
    var other = order(.grant, 5)
    other.id = earned.id
    #expect(throws: BankOrderError.idReused(earned.id)) {
      try CloudAcceptance.perform(other, now: 0, in: &lab.cloud, using: &lab.random)
    }
    #expect(lab.money == 65 && lab.cloud.orders.count == 1)
  }

  @Test("more orders than one reply lists come one after the other, each once")
  func many() throws {
    var lab = try Lab()
    try lab.settle(0)
    let count = NumberedOrder.maximumListed * 2 + 1
    for number in 1...count { try lab.order(.grant, 1, id: UInt64(number)) }
    try lab.settle(0)
    #expect(lab.devices[0].storage.orders.map(\.id.low) == (1...count).map { UInt64($0) })
    #expect(lab.wallet(0).state.orders == UInt64(count) && lab.wallet(0).total("gems") == Int64(count))
  }

  // MARK: Charges and debts

  @Test("a charge takes from the pool, then from what devices return; the rest is owed, and later earnings pay it")
  func debt() throws {
    var lab = try Lab()
    try lab.settle(0)
    try lab.perform(0, .earn, 30)
    try lab.settle(0)
    try lab.order(.charge, 50, id: 1)
    #expect(lab.cloud.bank().debts == ["gems": 50] && lab.money == 30)
    try lab.settle(0)
    #expect(lab.cloud.bank().debts == ["gems": 20] && lab.money == 0)
    #expect(lab.wallet(0).state.owed == ["gems": 20] && lab.wallet(0).total("gems") == 0)
    #expect(lab.wallet(0).spendable("gems") == 0)
    try lab.perform(0, .earn, 25)
    try lab.settle(0)
    #expect(lab.cloud.bank().debts == nil && lab.money == 5)
    #expect(lab.wallet(0).state.owed.isEmpty && lab.wallet(0).total("gems") == 5)
    #expect(lab.wallet(0).spendable("gems") == 5)
  }

  @Test("a charge takes goods, but not more than there are")
  func chargedGoods() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    _ = try bank.perform(order(.grant, 10, 1, goods: ["hat"]), in: &cloud)
    _ = try bank.perform(order(.charge, 4, 2, goods: ["hat", "hat", "cap"]), in: &cloud)
    let counts = Dictionary(uniqueKeysWithValues: cloud.goods(changedAfter: 0, limit: 9).map { ($0.name, $0.count) })
    #expect(counts == ["hat": 0, "cap": 0])
    #expect(bank.state.pool == ["gems": 6] && bank.state.debts == nil)
    _ = try bank.perform(order(.grant, 1, 3, goods: ["hat"]), in: &cloud)
    #expect(cloud.goods(changedAfter: 2, limit: 9).map(\.count) == [1])
  }

  @Test("a late spend isn't covered by money that is owed, and one that waits is declined when it is owed")
  func lateSpend() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    _ = try bank.answer(offer([operation(.earn, 100, 1)]), in: &cloud)
    _ = try bank.perform(order(.charge, 60), in: &cloud)
    let late = [operation(.spend, 41, 2), operation(.spend, 40, 3)]
    let reply = try bank.answer(offer(late: late, chain: ChainID(high: 0, low: 2)), in: &cloud)
    #expect(reply.decisions.map(\.verdict) == [.declined, .waiting])
    #expect(reply.balances == ["gems": 0] && reply.owed == ["gems": 60])
    _ = try bank.perform(order(.charge, 1, 2), in: &cloud)
    #expect(cloud.decision(on: late[1].id)?.verdict == .declined && bank.state.waiting.isEmpty)
    #expect(bank.balance("gems") == 100 && bank.state.debts == ["gems": 61])
  }

  @Test("nothing is granted of what is owed, and a debt is paid before what waits")
  func debtFirst() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    _ = try bank.answer(offer([operation(.earn, 100, 1)]), in: &cloud)
    _ = try bank.perform(order(.charge, 30), in: &cloud)
    _ = try bank.answer(offer(late: [operation(.spend, 50, 2)], chain: ChainID(high: 0, low: 2)), in: &cloud)
    _ = try bank.perform(order(.grant, 40, 2), in: &cloud)
    #expect(bank.state.debts == nil && bank.state.pool == ["gems": 10])
    #expect(cloud.decision(on: operation(.spend, 50, 2).id)?.verdict == .waiting)
    let other = try bank.answer(offer(chain: ChainID(high: 0, low: 2)), in: &cloud)
    #expect((other.totals["gems"]?.rights ?? 0) == 0 && other.balances == ["gems": 60])
  }

  @Test("other devices learn of an order")
  func concerns() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    for (number, kind) in [(UInt64(1), BankOrder.Kind.grant), (2, .charge)] {
      let before = bank.state
      _ = try bank.perform(order(kind, 5, number), in: &cloud)
      #expect(bank.state.concernsOthers(since: before))
    }
  }

  // MARK: Refunds

  @Test("a refund returns the money and takes the goods, once, whoever orders it")
  func refund() throws {
    var lab = try Lab(devices: 2)
    try lab.settle(0)
    try lab.perform(0, .earn, 100)
    var bought = lab.operation(.spend, 60)
    bought.goods = ["sword"]
    try lab.commit(0, CommitDraft(wallet: [bought]))
    try lab.settle(0)
    #expect(lab.money == 40 && lab.devices[0].storage.goods().counts == ["sword": 1])
    let refund = try lab.refund(bought.id).order
    #expect(refund.amount == 60 && refund.goods == ["sword"] && refund.currency == "gems")
    #expect(refund.id == BankOrder.refundID(of: bought.id))
    var again = BankOrder(refunding: bought.id, reason: "for another reason", madeAtMilliseconds: 5)
    #expect(
      try CloudAcceptance.perform(again, now: 9, in: &lab.cloud, using: &lab.random) == .alreadyDone(refund))
    #expect(lab.money == 100)
    for index in [0, 1, 0] { try lab.settle(index) }
    for index in [0, 1] {
      #expect(lab.wallet(index).total("gems") == 100 && lab.devices[index].storage.goods().counts == [:])
      #expect(lab.devices[index].storage.orders == [refund])
    }
    again.id = OperationID(high: 1, low: 1)
    #expect(throws: BankOrderError.self) {
      try CloudAcceptance.perform(again, now: 9, in: &lab.cloud, using: &lab.random)
    }
    #expect(lab.money == 100)
  }

  @Test("only a purchase that was charged and is known can be refunded")
  func noRefund() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    let (earned, declined) = (operation(.earn, 100, 1), operation(.spend, 101, 2))
    let (claimed, waiting) = (operation(.claim(key: "daily"), 5, 3), operation(.spend, 50, 4))
    _ = try bank.answer(offer([earned, claimed]), in: &cloud)
    _ = try bank.answer(offer(late: [waiting, declined], chain: ChainID(high: 0, low: 2)), in: &cloud)
    let unknown = OperationID(high: 7, low: 99)
    let before = bank.state
    for (id, expected) in [
      (earned.id, BankOrderError.notPurchase(earned.id)), (claimed.id, .notPurchase(claimed.id)),
      (declined.id, .notCharged(declined.id, .declined)), (waiting.id, .notCharged(waiting.id, .waiting)),
      (unknown, .unknownPurchase(unknown)),
    ] {
      #expect(
        objection { _ = try bank.perform(BankOrder(refunding: id, reason: ""), in: &cloud) } == expected)
    }
    #expect(bank.state == before && cloud.orders.isEmpty)
  }

  @Test("a receipt is paid once; for another amount it is another order under the same id")
  func receipt() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    let receipt = ContentHash(of: Data("receipt".utf8))
    var paid = order(.grant, 60)
    (paid.id, paid.receipt) = (BankOrder.receiptID(receipt, of: "game"), receipt)
    let done = try bank.perform(paid, in: &cloud)
    #expect(done == .done(NumberedOrder(number: 1, order: paid)))
    #expect(try bank.perform(paid, in: &cloud) == .alreadyDone(paid) && bank.balance("gems") == 60)
    paid.amount = 61
    #expect(objection { _ = try bank.perform(paid, in: &cloud) } == .idReused(paid.id))
    #expect(bank.balance("gems") == 60 && cloud.orders.count == 1)
  }

  // MARK: Limits

  @Test(
    "an order's amount and texts have the limits of a device's operations",
    arguments: [0, -1, Wallet.maximumAmount + 1, .max, .min])
  func amounts(amount: Int64) {
    for kind in [BankOrder.Kind.grant, .charge] {
      #expect(throws: BankOrderError.self) { try order(kind, amount).check() }
    }
  }

  @Test("names, reasons and goods of an order are limited")
  func texts() {
    func isRefused(_ change: (inout BankOrder) -> Void) -> Bool {
      var order = order(.grant, 1)
      change(&order)
      return objection { try order.check() } != nil
    }
    #expect(!isRefused { _ in })
    #expect(isRefused { $0.currency = "" })
    #expect(isRefused { $0.currency = String(repeating: "x", count: 129) })
    #expect(isRefused { $0.reason = String(repeating: "x", count: 513) })
    #expect(isRefused { $0.goods = Array(repeating: "hat", count: 65) })
    #expect(isRefused { $0.goods = ["hat", ""] })
  }

  @Test("neither money nor debts become too great, and a player has at most 256 currencies")
  func overflow() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    let tooMuch = BankOrderError.tooMuch(currency: "gems")
    bank.state.pool["gems"] = Wallet.maximumTotal
    #expect(objection { _ = try bank.perform(order(.grant, 1), in: &cloud) } == tooMuch)
    bank.state.pool = [:]
    bank.state.debts = ["gems": Wallet.maximumTotal]
    #expect(objection { _ = try bank.perform(order(.charge, 1), in: &cloud) } == tooMuch)
    bank.state.debts = nil
    for number in 0..<Wallet.maximumCurrencies { bank.state.pool["currency \(number)"] = 1 }
    for kind in [BankOrder.Kind.grant, .charge] {
      #expect(objection { _ = try bank.perform(order(kind, 1), in: &cloud) } == tooMuch)
    }
    #expect(cloud.orders.isEmpty && bank.state.orderNumber == nil && bank.state.debts == nil)
    _ = try bank.perform(order(.charge, 3, currency: "currency 7"), in: &cloud)
    #expect(bank.state.debts == ["currency 7": 2] && bank.state.pool["currency 7"] == 0)
  }

  @Test("the ids of refunds and receipts follow from what they are for, and never meet")
  func ids() throws {
    let (first, second) = (OperationID(high: 1, low: 2), OperationID(high: 2, low: 1))
    let receipt = ContentHash(of: Data("receipt".utf8))
    let ids = [
      BankOrder.refundID(of: first), BankOrder.refundID(of: second), BankOrder.receiptID(receipt, of: "game"),
      BankOrder.receiptID(receipt, of: "other"),
    ]
    #expect(Set(ids).count == 4 && ids[0] == BankOrder.refundID(of: first))
    var order = order(.grant, 5, goods: ["hat"])
    order.receipt = receipt
    let data = try JSONEncoder().encode(NumberedOrder(number: 3, order: order))
    #expect(try JSONDecoder().decode(NumberedOrder.self, from: data) == NumberedOrder(number: 3, order: order))
  }

  // MARK: Planted bugs

  @Test("a bank with a planted bug refunds twice, or pays a receipt twice")
  func planted() throws {
    for bug in [PlantedBug.refundTwice, .payReceiptTwice] {
      var (bank, cloud) = (Bank(BankState(), faults: Faults(planting: [bug])), MemoryContainer(epoch: 1))
      let bought = operation(.spend, 60, 2)
      _ = try bank.answer(offer([operation(.earn, 60, 1), bought]), in: &cloud)
      var paid = order(.grant, 60)
      paid.receipt = ContentHash(of: Data("receipt".utf8))
      let twice = bug == .refundTwice ? BankOrder(refunding: bought.id, reason: "") : paid
      let once = bug == .refundTwice ? paid : BankOrder(refunding: bought.id, reason: "")
      for order in [twice, once, twice, once] { _ = try bank.perform(order, in: &cloud) }
      #expect(bank.balance("gems") == 180, "\(bug): the one twice, the other once")
    }
  }
}
