import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// What a bank doesn't believe of a device that says that the bank was set back.
@Suite struct BankTrustTests {
  private static let chain = ChainID(high: 0, low: 1)
  private static let container = ContainerID(high: 1, low: 1)
  private static let other = ContainerID(high: 2, low: 2)
  private static let seal = BankSeal(bank: container, keys: [Data("secret".utf8)])

  private var bank = Bank(BankState(), rules: BankRules(authoritative: ["gems"], seal: seal))
  private var cloud = MemoryContainer(epoch: 1)

  private static func operation(
    _ kind: WalletOperation.Kind, _ amount: Int64, _ number: UInt64, _ currency: String, goods: [String] = []
  ) -> WalletOperation {
    WalletOperation(
      id: OperationID(high: 7, low: number), kind: kind, currency: currency, amount: amount, reason: "test",
      goods: goods)
  }

  /// Earns a coin, and returns an offer that shows the statement of it.
  private mutating func shown(proving: UInt64, epoch: UInt64 = 0) throws -> WalletOffer {
    let earning = Self.operation(.earn, 1, 1, "coins")
    let empty = ChainHead(emptyChain: Self.chain)
    let reply = try bank.answer(WalletOffer(chain: Self.chain, base: empty, operations: [earning]), in: &cloud)
    let head = empty.appending(earning)
    #expect(reply.state == .accepted(head))
    let proof = WalletStatement(
      epoch: reply.epoch, number: reply.statement, head: head, totals: reply.totals, code: reply.code)
    return WalletOffer(
      chain: Self.chain, base: head, statement: reply.statement, epoch: epoch, proving: proving, proof: proof)
  }

  @Test("an epoch that a device makes up freezes nothing, and makes the bank trust no spend")
  mutating func madeUpEpoch() throws {
    var offer = try shown(proving: 0, epoch: 1)
    offer.late = [Self.operation(.spend, 1_000, 2, "gems", goods: ["sword"])]
    offer.again = 1
    let reply = try bank.answer(offer, in: &cloud)
    #expect(reply.epoch == 0 && reply.decisions.map(\.verdict) == [.declined])
    #expect(!bank.isFrozen && bank.state.orderNumber == nil && bank.state.goodsNumber == 0)
  }

  @Test(
    "a statement of an earlier epoch makes the bank trust four chains that follow, for copies, and no other"
  )
  mutating func oldStatement() throws {
    var offer = try shown(proving: 1)
    bank.setBack(to: 1)
    _ = try bank.answer(offer, in: &cloud)
    #expect(!bank.isFrozen)
    (offer.follows, offer.statement, offer.again) = (Self.chain, 0, 1)
    for number in 2...5 as ClosedRange<UInt64> {
      let next = ChainID(high: 0, low: number)
      (offer.chain, offer.base) = (next, ChainHead(emptyChain: next))
      offer.late = [Self.operation(.earn, 5, number, "coins")]
      #expect(try bank.answer(offer, in: &cloud).decisions.map(\.verdict) == [.accepted])
    }
    let last = ChainID(high: 0, low: 6)
    (offer.chain, offer.base) = (last, ChainHead(emptyChain: last))
    offer.late = [Self.operation(.spend, 1_000, 6, "gems", goods: ["sword"])]
    #expect(try bank.answer(offer, in: &cloud).decisions.map(\.verdict) == [.declined])
    #expect(bank.state.orderNumber == nil && bank.state.goodsNumber == 0)
  }

  @Test("what a device says that was settled brings no more currencies, and no more money, than a player can have")
  mutating func limits() throws {
    var offer = try shown(proving: 1)
    bank.setBack(to: 1)
    let count = UInt64(Wallet.maximumBatch)
    offer.late = (1...count).map { Self.operation($0 % 2 == 0 ? .earn : .spend, 5, 10 + $0, "c\($0)") }
    offer.again = .max
    _ = try bank.answer(offer, in: &cloud)
    #expect(bank.currencies.count == Wallet.maximumCurrencies)
    bank.state.pool["coins"] = Wallet.maximumTotal - 1
    offer.late = [Self.operation(.earn, Wallet.maximumAmount, 1_000, "coins")]
    #expect(try bank.answer(offer, in: &cloud).decisions.map(\.verdict) == [.declined])
    #expect(bank.balance("coins") == Wallet.maximumTotal)
  }

  /// Brings operations that come after the offer's head, and shows the statement of them in the offer.
  private mutating func bring(_ operations: [WalletOperation], _ offer: inout WalletOffer) throws {
    var next = offer
    (next.proving, next.proof, next.operations) = (nil, nil, operations)
    let reply = try bank.answer(next, in: &cloud)
    let head = operations.reduce(offer.base) { $0.appending($1) }
    #expect(reply.state == .accepted(head))
    offer.statement = reply.statement
    offer.proof = WalletStatement(
      epoch: reply.epoch, number: reply.statement, head: head, totals: reply.totals, code: reply.code)
  }

  @Test("a store that never reports is trusted for as many operations as a ledger keeps, also on chains that follow")
  mutating func trustEnds() throws {
    var offer = try shown(proving: 1)
    bank.setBack(to: 1)
    offer.again = .max
    let (most, batch) = (UInt64(Bank.maximumTrusted), UInt64(Wallet.maximumBatch))
    func spends(_ first: UInt64) -> [WalletOperation] {
      (first..<first + batch).map { Self.operation(.spend, 1, 10 + $0, "gems") }
    }
    for first in stride(from: 0, to: most, by: Wallet.maximumBatch) {
      offer.late = spends(first)
      for _ in 0..<2 {
        // Once more, because the response was lost.
        let reply = try bank.answer(offer, in: &cloud)
        #expect(reply.decisions.count == Wallet.maximumBatch)
        #expect(reply.decisions.allSatisfy { $0.verdict == .accepted })
      }
    }
    #expect(bank.isFrozen && bank.state.trusted == 0 && bank.state.missing == ["gems": Int64(most)])
    offer.late = spends(most)
    #expect(try bank.answer(offer, in: &cloud).decisions.isEmpty)
    let next = ChainID(high: 0, low: 2)
    var following = WalletOffer(
      chain: next, follows: Self.chain, base: ChainHead(emptyChain: next), proving: 1, proof: offer.proof)
    (following.late, following.again) = (spends(most), Wallet.maximumBatch)
    #expect(try bank.answer(following, in: &cloud).decisions.isEmpty)
    // The bank is open now.
    #expect(!bank.isFrozen && bank.state.trusted == nil)
    #expect(try bank.answer(following, in: &cloud).decisions.allSatisfy { $0.verdict == .declined })
    #expect(cloud.orders.map(\.amount) == [Int64(most)])
  }

  @Test("other operations in place of those that a statement counts are trusted in nothing", arguments: [1, 2])
  mutating func otherOperations(batch: Int) throws {
    var offer = try shown(proving: 1)
    let backup = (bank.state, cloud)
    try bring([Self.operation(.earn, 1, 2, "coins"), Self.operation(.earn, 1, 3, "coins")], &offer)
    (bank.state, cloud) = backup
    bank.setBack(to: 1)
    let other = [Self.operation(.earn, 1_000, 8, "gems"), Self.operation(.spend, 500, 9, "gems", goods: ["sword"])]
    for _ in 0..<3 {
      let known = bank.state.chains[Self.chain]?.head.count ?? 0
      offer.operations = Array(other.prefix(max(batch, Int(known))))
      _ = try bank.answer(offer, in: &cloud)
    }
    #expect(other.map { cloud.decision(on: $0.id)?.verdict } == [.declined, .declined])
    #expect(bank.balance("gems") == 0 && bank.state.goodsNumber == 0 && bank.state.missing == nil)
    #expect(bank.state.orderNumber == nil && bank.state.chains[Self.chain]?.restored == nil)
  }

  @Test(
    "what was earned before its currency became the servers' own counts again, if the offer leads to the statement",
    arguments: [true, false])
  mutating func becameAuthoritative(isWhole: Bool) throws {
    bank = Bank(BankState(), rules: BankRules(seal: Self.seal))
    var offer = try shown(proving: 1)
    let backup = (bank.state, cloud)
    let made = [Self.operation(.earn, 10, 2, "gems"), Self.operation(.earn, 1, 3, "coins")]
    try bring(made, &offer)
    bank = Bank(backup.0, rules: BankRules(authoritative: ["gems"], seal: Self.seal))
    cloud = backup.1
    bank.setBack(to: 1)
    offer.operations = isWhole ? made : [made[0]]
    _ = try bank.answer(offer, in: &cloud)
    #expect(bank.balance("gems") == (isWhole ? 10 : 0))
  }

  @Test("chains that a device says it follows are recorded only if it shows a statement", arguments: [true, false])
  mutating func madeUpChains(isProven: Bool) throws {
    let shown = try shown(proving: 1)
    bank.setBack(to: 1)
    let next = ChainID(high: 0, low: 2)
    var offer = WalletOffer(
      chain: next, follows: Self.chain, base: ChainHead(emptyChain: next), proving: 1, proof: shown.proof,
      ancestors: (10...25).map { ChainID(high: 0, low: $0) })
    if !isProven { offer.proof?.number += 1 }
    _ = try bank.answer(offer, in: &cloud)
    #expect(bank.state.chains[next] != nil && cloud.closedChain(Self.chain) != nil)
    #expect(bank.state.closedChains == (isProven ? 17 : 1))
    #expect((cloud.closedChain(offer.ancestors[15]) != nil) == isProven)
  }

  @Test("a statement of where a chain was says nothing of its totals, and lets its store skip nothing")
  mutating func headOnly() throws {
    var offer = try shown(proving: 1)
    let backup = (bank.state, cloud)
    try bring([Self.operation(.spend, 1, 2, "coins", goods: ["hat"])], &offer)
    var forked = offer
    (forked.proving, forked.proof) = (nil, nil)
    forked.operations = [Self.operation(.earn, 1, 8, "coins")]
    let reply = try bank.answer(forked, in: &cloud)
    let proof = try #require(reply.proof)
    #expect(reply.state == .closed(common: offer.base) && proof.head == offer.proof?.head)
    #expect(proof.isOfHead == true && proof.totals.isEmpty && Self.seal.isValid(proof, on: Self.chain))
    var statement = proof
    statement.isOfHead = nil
    #expect(!Self.seal.isValid(statement, on: Self.chain))
    (bank.state, cloud) = backup
    bank.setBack(to: 1)
    (offer.proof, offer.skipsLost, offer.base, offer.operations) = (proof, true, proof.head, [])
    let before = bank.state
    let answer = try bank.answer(offer, in: &cloud)
    #expect(answer.state == .from(head: before.chains[Self.chain]!.head, common: nil))
    #expect(bank.state == before && bank.isFrozen)
  }

  @Test("a store stays as long as a voucher that it shows can't be paid")
  mutating func unpaidVoucher() throws {
    _ = try shown(proving: 0)
    bank.state.pool["coins"] = Wallet.maximumTotal - 1
    let voucher = Self.seal.signed(
      WalletVoucher(
        bank: Self.other, chain: ChainID(high: 0, low: 9), receiver: Self.container, amounts: ["coins": 5]))
    let next = ChainID(high: 0, low: 3)
    let leaving = WalletOffer(
      chain: next, base: ChainHead(emptyChain: next), vouchers: [voucher], leaving: Self.other)
    let reply = try bank.answer(leaving, in: &cloud)
    #expect(reply.voucher == nil && reply.takenVouchers.isEmpty && reply.declinedVouchers.isEmpty)
    #expect(bank.state.chains[next] != nil)
  }
}
