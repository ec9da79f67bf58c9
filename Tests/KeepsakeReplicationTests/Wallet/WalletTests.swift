import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

@Suite struct WalletTests {
  @Test("What one device earned can be spent on the other while both are offline")
  func rightsAreShared() throws {
    var lab = try Lab.rich()
    #expect(lab.wallet(0).total("gems") == 100)
    #expect(lab.wallet(1).total("gems") == 100)
    // Each has a third, and so has the bank, for the one that needs it.
    #expect(lab.wallet(0).spendable("gems") == 34 && lab.wallet(1).spendable("gems") == 34)
    #expect(lab.cloud.bank().pool == ["gems": 32])
    try lab.perform(1, .spend, 34)
    #expect(lab.wallet(1).total("gems") == 66)
    try lab.settle(1)
    #expect(lab.money == 66)
  }

  @Test("Two offline devices can't spend the same money")
  func noOverdraft() throws {
    var lab = try Lab.rich()
    try lab.perform(0, .spend, 34)
    try lab.perform(1, .spend, 34)
    let refused = WalletError.insufficientRights(currency: "gems", spendable: 0, balance: 66)
    #expect(throws: refused) { try lab.perform(0, .spend, 1) }
    #expect(
      refused.description
        == "only 0 gems can be spent here now, of 66 in all: the rest is reserved for the player's other devices")
    let everything = WalletError.insufficientRights(currency: "gems", spendable: 5, balance: 5)
    #expect(everything.description == "only 5 gems can be spent here now, of 5 in all")
    try lab.settle(0)
    try lab.settle(1)
    #expect(lab.money == 32)
    #expect(lab.cloud.decisions.values.filter { $0.verdict == .declined }.isEmpty)
  }

  @Test("A quest that several devices finished pays once")
  func claimsPayOnce() throws {
    var lab = try Lab(devices: 2)
    try lab.settle(0)
    try lab.perform(0, .claim(key: "quest"), 30)
    try lab.perform(1, .claim(key: "quest"), 30)
    #expect(lab.wallet(0).pending("gems") == 30)
    try lab.settle(0)
    try lab.settle(1)
    try lab.settle(0)
    #expect(lab.money == 30)
    #expect(lab.wallet(0).pending("gems") == 0)
    #expect(lab.wallet(0).total("gems") == 30)
    #expect(lab.wallet(1).total("gems") == 30)
    // Claimed again on the same device, at once and much later.
    try lab.perform(0, .claim(key: "quest"), 30)
    #expect(lab.wallet(0).pending("gems") == 0)
    #expect(lab.verdicts(1) == [.declined])
  }

  @Test("A purchase that is retried, on the same or on another device, is paid once")
  func operationsCountOnce() throws {
    var lab = try Lab.rich()
    let spend = try lab.perform(0, .spend, 10)
    try lab.commit(0, CommitDraft(wallet: [spend]))
    #expect(lab.wallet(0).spendable("gems") == 24)
    try lab.settle(0)
    try lab.commit(0, CommitDraft(wallet: [spend]))
    // On the other device, too.
    try lab.commit(1, CommitDraft(wallet: [spend]))
    try lab.settle(1)
    try lab.settle(0)
    try lab.settle(1)
    #expect(lab.money == 90)
    #expect(lab.wallet(0).total("gems") == 90)
    #expect(lab.wallet(1).total("gems") == 90)
  }

  @Test("another operation under a known identifier is refused on the device, and at the bank")
  func reusedIdentifiers() throws {
    var lab = try Lab.rich()
    let hat = try lab.perform(0, .spend, 5)
    var castle = hat
    castle.amount = 20
    #expect(throws: WalletError.idReused(hat.id)) { try lab.commit(0, CommitDraft(wallet: [castle])) }
    try lab.settle(0)
    #expect(throws: WalletError.idReused(hat.id)) { try lab.commit(0, CommitDraft(wallet: [castle])) }
    // The other device can't know it.
    try lab.commit(1, CommitDraft(wallet: [castle]))
    #expect(lab.wallet(1).total("gems") == 80)
    for _ in 0..<3 { for index in 0..<2 { try lab.settle(index) } }
    #expect(lab.money == 95 && lab.verdicts(1) == [.idReused])
    for index in 0..<2 { #expect(lab.wallet(index).total("gems") == 95) }
  }

  @Test("an operation is known by its identifier however many came after it")
  func oldIdentifiers() throws {
    var lab = try Lab()
    try lab.settle(0)
    let first = try lab.perform(0, .earn, 5)
    for _ in 0..<600 { try lab.perform(0, .earn, 1) }
    try lab.settle(0)
    try lab.commit(0, CommitDraft(wallet: [first]))
    try lab.settle(0)
    #expect(lab.money == 605 && lab.wallet(0).total("gems") == 605)
  }

  @Test("a response about another chain, or with an older statement, doesn't change the wallet")
  func staleReplies() throws {
    var lab = try Lab.rich()
    var wallet = lab.wallet(0)
    let own = wallet.state.acknowledged
    var random = SeededGenerator(seed: 1)
    try wallet.perform(lab.operation(.spend, 1))
    let before = wallet
    let replies = [
      WalletReply(chain: ChainID(high: 1, low: 1), state: .closed(common: own)),
      WalletReply(
        chain: wallet.state.chain, state: .accepted(wallet.state.head), statement: wallet.state.statement - 1),
      WalletReply(
        chain: wallet.state.chain, state: .accepted(ChainHead(count: own.count + 1, hash: own.hash)), statement: 99),
      WalletReply(
        chain: wallet.state.chain, state: .accepted(wallet.state.head), statement: 99, balances: ["gems": -1]),
    ]
    for reply in replies {
      #expect(wallet.receive(reply, using: &random) == Wallet.Change())
      #expect(wallet == before)
    }
  }

  @Test("two replies in a row that change nothing pause the wallet")
  func repliesWithoutEffect() throws {
    var lab = try Lab()
    lab.cloud.faults = Faults()
    try lab.settle(0)
    try lab.perform(0, .earn, 5)
    try lab.step(0, .committed)
    var exchanges = 0
    while exchanges < 50, let effect = lab.takeRequest(0) {
      guard case .exchange(let number, let request) = effect, let offer = request.wallet else { break }
      exchanges += 1
      let head = ChainHead(count: 90, hash: offer.base.hash)
      var response = try CloudAcceptance.exchange(
        ExchangeRequest(cursor: request.cursor, limit: 100), now: lab.now, in: &lab.cloud, using: &lab.random)
      response.wallet = WalletReply(chain: offer.chain, state: .accepted(head))
      try lab.step(0, .answered(request: number, response))
    }
    #expect(exchanges == 2)
    try lab.settle(0)
    #expect(lab.money == 5 && !lab.wallet(0).hasUnreportedOperations)
  }

  @Test("replies that change nothing, when there was nothing to ask, don't pause the wallet")
  func repliesToNothing() throws {
    var lab = try Lab()
    try lab.settle(0)
    let before = lab.devices[0].exchanges
    for _ in 0..<3 { try lab.settle(0, .woke) }
    #expect(lab.devices[0].exchanges > before + 1)
    try lab.perform(0, .earn, 5)
    try lab.settle(0, .committed)
    #expect(lab.money == 5 && !lab.wallet(0).hasUnreportedOperations)
  }

  @Test("other devices fetch when the player's money changes, and not because a device was seen again")
  func changesAreAnnounced() throws {
    var lab = try Lab.rich()
    let (before, bank) = (lab.cloud.position().seq, lab.cloud.bank())
    lab.now += 2 * 3_600_000
    try lab.settle(0)
    #expect(lab.cloud.position().seq == before && lab.cloud.bank() != bank)
    try lab.perform(0, .earn, 1)
    try lab.settle(0)
    #expect(lab.cloud.position().seq > before)
  }

  @Test("A batch that is sent again because its response was lost counts once, and its claim is settled")
  func retries() throws {
    var lab = try Lab()
    try lab.settle(0)
    try lab.perform(0, .earn, 10)
    try lab.perform(0, .claim(key: "daily"), 5)
    try lab.step(0, .committed)
    let request = lab.takeRequest(0)
    let sent = try #require(request)
    guard case .exchange(let number, _) = sent else {
      Issue.record("another request: \(sent)")
      return
    }
    _ = try lab.answer(to: sent, cloud: &lab.cloud, using: &lab.random)
    try lab.step(0, .failed(request: number, TransportFailure(.interrupted, "cut")))
    try lab.perform(0, .spend, 4)
    try lab.settle(0)
    #expect(lab.money == 11)
    #expect(lab.wallet(0).total("gems") == 11)
    #expect(lab.wallet(0).pending("gems") == 0)
    #expect(!lab.wallet(0).hasUnreportedOperations)
  }

  @Test("Amounts beyond the limits throw errors in the wallet and in the bank, and create no money")
  func limits() throws {
    var lab = try Lab()
    var wallet = lab.wallet(0)
    for amount in [0, -1, .min, .max, Wallet.maximumAmount + 1] {
      #expect(throws: WalletError.invalidAmount(amount)) { try wallet.perform(lab.operation(.earn, amount)) }
    }
    #expect(throws: WalletError.self) { try wallet.perform(lab.operation(.earn, 1, "")) }
    #expect(throws: WalletError.self) {
      try wallet.perform(lab.operation(.claim(key: String(repeating: "x", count: 200)), 1))
    }
    wallet.state.totals["gems", default: WalletTotals()].earned = Wallet.maximumTotal
    #expect(throws: WalletError.overflow(currency: "gems")) { try wallet.perform(lab.operation(.earn, 1)) }
    #expect(wallet.state.operations.isEmpty)

    var offer = wallet.offer()
    offer.operations = [lab.operation(.earn, .max)]
    var bank = Bank(BankState())
    #expect(throws: ExchangeError.self) { try bank.answer(offer, in: &lab.cloud) }
    offer.operations = []
    offer.needs = ["gems": -1]
    #expect(throws: ExchangeError.self) { try bank.answer(offer, in: &lab.cloud) }
    offer.needs = [:]
    offer.follows = offer.chain
    #expect(throws: ExchangeError.self) { try bank.answer(offer, in: &lab.cloud) }
  }

  @Test("A tampered store can't spend what it never had")
  func bankChecksRights() throws {
    var lab = try Lab()
    try lab.perform(0, .earn, 10)
    try lab.settle(0)
    var state = try #require(lab.devices[0].storage.wallet())
    state.totals["gems", default: WalletTotals()].granted = 1_000
    lab.devices[0].storage.setWallet(state)
    try lab.perform(0, .spend, 500)
    try lab.settle(0)
    #expect(lab.money == 10)
    #expect(lab.wallet(0).total("gems") == 10)
    #expect(lab.wallet(0).spendable("gems") == 10)
  }

  @Test("More than one operation may hold is returned in several, and the rest is left for the next reply")
  func returnsHugeAmounts() throws {
    var random = SeededGenerator(seed: 3)
    for (asked, returned) in [(Int64(5), Int64(5)), (Wallet.maximumAmount * 3, Wallet.maximumAmount * 3)] {
      var wallet = Wallet(WalletState(chain: ChainID(high: 1, low: 2)))
      var totals = WalletTotals()
      totals.granted = Wallet.maximumAmount * 8
      let reply = WalletReply(
        chain: wallet.state.chain, state: .accepted(wallet.state.head), statement: 1, totals: ["gems": totals],
        balances: ["gems": totals.granted], recalled: ["gems": asked])
      _ = wallet.receive(reply, using: &random)
      #expect(wallet.spendable("gems") == totals.granted - returned)
    }
    var wallet = Wallet(WalletState(chain: ChainID(high: 1, low: 2)))
    var totals = WalletTotals()
    totals.granted = Wallet.maximumTotal
    let reply = WalletReply(
      chain: wallet.state.chain, state: .accepted(wallet.state.head), statement: 1, totals: ["gems": totals],
      balances: ["gems": totals.granted], recalled: ["gems": .max])
    _ = wallet.receive(reply, using: &random)
    #expect(
      wallet.spendable("gems") == totals.granted - Wallet.maximumAmount * Int64(WalletParcel.maximumSpends))
  }
}
