import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

@Suite struct WalletTests {
  /// Two devices that share what the first one earned.
  func richLab() throws -> Lab {
    var lab = try Lab(devices: 2)
    try lab.settle(0)
    try lab.perform(0, .earn, 100)
    try lab.settle(0)
    try lab.settle(1)
    try lab.settle(0)
    try lab.settle(1)
    return lab
  }

  func money(_ lab: Lab) -> Int64 { Bank(lab.cloud.bank()).balance("gems") }

  @Test("What one device earned can be spent on the other while both are offline")
  func rightsAreShared() throws {
    var lab = try richLab()
    #expect(lab.wallet(0).total("gems") == 100)
    #expect(lab.wallet(1).total("gems") == 100)
    #expect(lab.wallet(0).spendable("gems") + lab.wallet(1).spendable("gems") == 100)
    #expect(lab.wallet(1).spendable("gems") == 50)
    try lab.perform(1, .spend, 50)
    #expect(lab.wallet(1).total("gems") == 50)
    try lab.settle(1)
    #expect(money(lab) == 50)
  }

  @Test("Two offline devices can't spend the same money")
  func noOverdraft() throws {
    var lab = try richLab()
    try lab.perform(0, .spend, 50)
    try lab.perform(1, .spend, 50)
    let refused = WalletError.insufficientRights(currency: "gems", spendable: 0, balance: 50)
    #expect(throws: refused) { try lab.perform(0, .spend, 1) }
    #expect(
      refused.description
        == "only 0 gems can be spent here now, of 50 in all: the rest is reserved for the player's other devices")
    let everything = WalletError.insufficientRights(currency: "gems", spendable: 5, balance: 5)
    #expect(everything.description == "only 5 gems can be spent here now, of 5 in all")
    try lab.settle(0)
    try lab.settle(1)
    #expect(money(lab) == 0)
    #expect(lab.cloud.decisions.values.filter { $0.verdict == .declined }.isEmpty)
  }

  @Test("A device gets the spending rights that it asks for from the bank's pool in one exchange")
  func wantedLevelIsGranted() throws {
    var lab = try richLab()
    // A third install that never returns holds a share of the rights.
    var third = try LabDevice(writer: 9)
    try DeviceCommit.opened(in: &third.storage, using: &lab.random)
    lab.devices.append(third)
    try lab.settle(2)
    for _ in 0..<4 { for index in 0..<2 { try lab.settle(index) } }
    var wallet = lab.wallet(1)
    let level = wallet.spendable("gems") + (lab.cloud.bank().pool["gems"] ?? 0)
    wallet.want(level, of: "gems")
    lab.devices[1].storage.setWallet(wallet.state)
    lab.devices[1].exchanges = 0
    try lab.settle(1)
    #expect(lab.wallet(1).spendable("gems") == level)
    #expect(lab.devices[1].exchanges == 1)
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
    #expect(money(lab) == 30)
    #expect(lab.wallet(0).pending("gems") == 0)
    #expect(lab.wallet(0).total("gems") == 30)
    #expect(lab.wallet(1).total("gems") == 30)
    // Claimed again on the same device, at once and much later.
    try lab.perform(0, .claim(key: "quest"), 30)
    #expect(lab.wallet(0).pending("gems") == 0)
    let told = lab.devices[1].notifications.compactMap {
      if case .decisions(let decisions) = $0 { decisions } else { nil }
    }.flatMap { $0 }
    #expect(told.map(\.verdict) == [.declined])
  }

  @Test("A purchase that is retried, on the same or on another device, is paid once")
  func operationsCountOnce() throws {
    var lab = try richLab()
    let spend = try lab.perform(0, .spend, 10)
    try lab.commit(0, CommitDraft(wallet: [spend]))
    #expect(lab.wallet(0).spendable("gems") == 40)
    try lab.settle(0)
    try lab.commit(0, CommitDraft(wallet: [spend]))
    // On the other device, too.
    try lab.commit(1, CommitDraft(wallet: [spend]))
    try lab.settle(1)
    try lab.settle(0)
    try lab.settle(1)
    #expect(money(lab) == 90)
    #expect(lab.wallet(0).total("gems") == 90)
    #expect(lab.wallet(1).total("gems") == 90)
  }

  @Test("A copied store can't spend the same money twice, and keeps what it earned")
  func forks() throws {
    var lab = try richLab()
    var copy = lab.devices[0]
    copy.writer = WriterID(77)
    copy.engine = DeviceEngine()
    lab.devices.append(copy)
    try lab.perform(0, .spend, 50)
    try lab.perform(2, .spend, 50)
    try lab.perform(2, .earn, 7)
    try lab.settle(0)
    try lab.settle(2)
    for _ in 0..<3 { for index in 0..<3 { try lab.settle(index) } }
    let declined = lab.cloud.decisions.values.filter { $0.verdict == .declined }
    // The bank itself held nothing from which the copy's spend could be paid.
    #expect(declined.map(\.operation.kind) == [.spend])
    #expect(money(lab) == 57)
    let chains = lab.cloud.bank().chains
    let held = Set((0..<3).map { lab.wallet($0).state.chain })
    #expect(chains.allSatisfy { $0.value.fenced || held.contains($0.key) })
    #expect(chains.values.filter(\.fenced).allSatisfy { $0.totals.values.allSatisfy { $0.rights == 0 } })
    for index in 0..<3 { #expect(lab.wallet(index).total("gems") == 57) }
    let told = lab.devices[2].notifications.compactMap {
      if case .decisions(let decisions) = $0 { decisions } else { nil }
    }.flatMap { $0 }
    #expect(told.count { $0.verdict == .declined } == 1)
  }

  @Test("A quest that two copies of a store finished pays once, although both claims arrive after a fork")
  func lateClaimsPayOnce() throws {
    var lab = try richLab()
    for number in 0..<2 as Range<UInt64> {
      var copy = lab.devices[0]
      copy.writer = WriterID(77 + number)
      copy.engine = DeviceEngine()
      lab.devices.append(copy)
    }
    // The original goes on with the chain, so what the copies did there is late.
    try lab.perform(0, .earn, 1)
    try lab.settle(0)
    for index in 2...3 { try lab.perform(index, .claim(key: "quest"), 30) }
    for _ in 0..<4 { for index in 0..<4 { try lab.settle(index) } }
    let claims = lab.cloud.decisions.values.filter { $0.operation.kind == .claim(key: "quest") }
    #expect(claims.count { $0.verdict == .accepted } == 1 && claims.count == 2)
    #expect(money(lab) == 131)
    for index in 0..<4 {
      #expect(lab.wallet(index).total("gems") == 131 && lab.wallet(index).pending("gems") == 0)
      #expect(!lab.wallet(index).hasUnreportedOperations)
    }
  }

  @Test("A store restored from a backup goes on, and what was bought since the backup is paid once")
  func setBack() throws {
    var lab = try richLab()
    let old = lab.devices[0].storage
    try lab.perform(0, .spend, 20)
    try lab.settle(0)
    lab.devices[0].storage = old
    lab.devices[0].engine = DeviceEngine()
    try lab.perform(0, .spend, 5)
    for _ in 0..<3 { for index in 0..<2 { try lab.settle(index) } }
    #expect(money(lab) == 75)
    #expect(lab.wallet(0).total("gems") == 75)
    #expect(!lab.wallet(0).hasUnreportedOperations)
  }

  @Test("Money on a chain that a late duplicate of a request began returns to the player")
  func lateBeginning() throws {
    var lab = try richLab()
    let old = lab.devices[0].storage
    try lab.perform(0, .spend, 20)
    try lab.settle(0)
    func setBack(_ lab: inout Lab) throws -> EngineEffect? {
      lab.devices[0].storage = old
      lab.devices[0].engine = DeviceEngine()
      lab.devices[0].pending = []
      try lab.perform(0, .earn, 5)
      try lab.step(0, .started)
      // The first response reports the fork, and the next request is the new chain's first.
      for _ in 0..<10 {
        guard let effect = lab.takeRequest(0) else { return nil }
        if case .exchange(_, let request) = effect, request.wallet?.follows != nil { return effect }
        if let event = try lab.answer(to: effect, cloud: &lab.cloud, using: &lab.random) { try lab.step(0, event) }
      }
      return nil
    }
    let first = try setBack(&lab)
    let late = try #require(first)
    let chain = lab.wallet(0).state.chain
    let again = try setBack(&lab)
    let event = try lab.answer(to: try #require(again), cloud: &lab.cloud, using: &lab.random)
    try lab.step(0, try #require(event))
    #expect(lab.wallet(0).state.chain != chain)
    for _ in 0..<2 { for index in 0..<2 { try lab.settle(index) } }
    _ = try lab.answer(to: late, cloud: &lab.cloud, using: &lab.random)
    #expect(lab.cloud.bank().chains[chain]?.fenced == false, "it has arrived, and looks like any other chain")
    for _ in 0..<3 { for index in 0..<2 { try lab.settle(index) } }
    #expect(lab.cloud.bank().chains[chain]?.totals.isEmpty == true)
    let held = Set((0..<2).map { lab.wallet($0).state.chain })
    let rights = lab.cloud.bank().chains.filter { held.contains($0.key) }.values.map { $0.totals["gems"]?.rights ?? 0 }
    #expect(rights.allSatisfy { $0 > 0 } && rights.reduce(0, +) + (lab.cloud.bank().pool["gems"] ?? 0) == money(lab))
    for index in 0..<2 { #expect(lab.wallet(index).total("gems") == money(lab)) }
  }

  @Test("What a removed device could spend is available to the player's others, which learn of it, and only once")
  func removedDevice() throws {
    var lab = try richLab()
    let chain = lab.wallet(0).state.chain
    let before = lab.cloud.position()
    for isFirst in [true, false] {
      let hasChanged = try CloudAcceptance.retire([chain], in: &lab.cloud, using: &lab.random)
      #expect(hasChanged == isFirst)
      let state = try #require(lab.cloud.bank().chains[chain])
      #expect(state.fenced && state.totals.values.allSatisfy { $0.rights == 0 })
      #expect(lab.cloud.position().seq == before.seq + 1)
    }
    #expect(money(lab) == 100)
  }

  @Test("A late response about a fork or about another chain doesn't change the wallet")
  func staleForkIsIgnored() throws {
    var lab = try richLab()
    var wallet = lab.wallet(0)
    let own = wallet.state.acknowledged
    var random = SeededGenerator(seed: 1)
    let operation = lab.operation(.spend, 1)
    try wallet.perform(operation)
    let before = wallet
    // A fork whose head is on the wallet's own chain.
    let change = wallet.receive(
      WalletReply(chain: wallet.state.chain, state: .fork(head: wallet.state.head, common: own)), using: &random)
    #expect(wallet == before)
    #expect(!change.hasMore)
    #expect(
      wallet.receive(WalletReply(chain: ChainID(high: 1, low: 1), state: .fenced(own)), using: &random)
        == Wallet.Change())
    #expect(wallet == before)
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
    #expect(money(lab) == 11)
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

    var offer = wallet.offer
    offer.operations = [lab.operation(.earn, .max)]
    var bank = Bank(BankState())
    #expect(throws: ExchangeError.self) { try bank.answer(offer, fetchedUpTo: 0, in: &lab.cloud) }
    offer.operations = []
    offer.wanted = ["gems": -1]
    #expect(throws: ExchangeError.self) { try bank.answer(offer, fetchedUpTo: 0, in: &lab.cloud) }
    offer.wanted = [:]
    offer.follows = offer.chain
    #expect(throws: ExchangeError.self) { try bank.answer(offer, fetchedUpTo: 0, in: &lab.cloud) }
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
    #expect(money(lab) == 10)
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
        chain: wallet.state.chain, state: .accepted(wallet.state.head), totals: ["gems": totals],
        balances: ["gems": totals.granted], recalled: ["gems": asked])
      _ = wallet.receive(reply, using: &random)
      #expect(wallet.spendable("gems") == totals.granted - returned)
    }
    var wallet = Wallet(WalletState(chain: ChainID(high: 1, low: 2)))
    var totals = WalletTotals()
    totals.granted = Wallet.maximumTotal
    let reply = WalletReply(
      chain: wallet.state.chain, state: .accepted(wallet.state.head), totals: ["gems": totals],
      balances: ["gems": totals.granted], recalled: ["gems": .max])
    _ = wallet.receive(reply, using: &random)
    #expect(
      wallet.spendable("gems") == totals.granted - Wallet.maximumAmount * Int64(WalletParcel.maximumSpends))
  }
}
