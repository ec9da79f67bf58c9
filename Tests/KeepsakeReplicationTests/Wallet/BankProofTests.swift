import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// What a bank that was set back believes, and what it doesn't.
@Suite struct BankProofTests {
  /// Two stores with 100 gems, of which the first was granted 32 after the backup.
  private func granted() throws -> (lab: BankLab, backup: MemoryContainer, proof: WalletStatement) {
    var lab = try BankLab.rich()
    let backup = lab.cloud
    lab.need(66, 0)
    try lab.settle()
    lab.need(nil, 0)
    let proof = try #require(lab.wallet(0).state.proof)
    #expect(proof.totals["gems"]?.granted == 32)
    return (lab, backup, proof)
  }

  /// The offer with which the first store shows `proof` to the bank's first restore, and says that a spend was settled.
  private func offer(
    _ lab: inout BankLab, showing proof: WalletStatement?, _ late: WalletOperation? = nil
  ) throws -> WalletOffer {
    try lab.exchange(0)
    var offer = lab.offer(0)
    #expect(offer.proving == lab.bank.epoch && offer.proof != nil)
    offer.proof = proof
    if let late { (offer.late, offer.again) = ([late], 1) }
    return offer
  }

  private static func seal(
    _ container: ContainerID = BankLab.container, _ key: Data = BankLab.keys[0]
  ) -> BankSeal {
    BankSeal(bank: container, keys: [key])
  }

  @Test("a store keeps the newest statement with its code, and no store or bank can change it")
  func sealed() throws {
    let (lab, _, proof) = try granted()
    let (chain, other) = (lab.wallet(0).state.chain, lab.wallet(1).state.chain)
    #expect(Self.seal().isValid(proof, on: chain) && !Self.seal().isValid(proof, on: other))
    let changes: [(inout WalletStatement) -> Void] = [
      { $0.totals["gems"]?.granted += 1 }, { $0.totals["gems"]?.earned += 1 }, { $0.totals["gems"]?.spent += 1 },
      { $0.totals["gems"]?.returned += 1 }, { $0.totals["crowns"] = WalletTotals() }, { $0.totals = [:] },
      { $0.number += 1 }, { $0.epoch += 1 }, { $0.head.count += 1 },
      { $0.head = ChainHead(emptyChain: chain) }, { $0.code = Data() }, { $0.code[0] ^= 1 },
      { $0.code = Data($0.code.dropLast()) },
    ]
    for change in changes {
      var changed = proof
      change(&changed)
      #expect(!Self.seal().isValid(changed, on: chain))
    }
    #expect(!Self.seal(ContainerID(high: 2, low: 2)).isValid(proof, on: chain))
    #expect(!Self.seal(BankLab.container, Data("guess".utf8)).isValid(proof, on: chain))
    #expect(BankSeal(bank: BankLab.container, keys: [Data("new".utf8)] + BankLab.keys).isValid(proof, on: chain))
    #expect(!BankSeal(bank: BankLab.container, keys: []).isValid(proof, on: chain))
  }

  @Test(
    "a proof that is changed, forged, or of another chain or container gives nothing, nor does the store's word",
    arguments: ["none", "changed", "other chain", "other container", "other key", "no code"])
  func foreign(kind: String) throws {
    var (lab, backup, proof) = try granted()
    let chain = lab.wallet(0).state.chain
    let shown: WalletStatement?
    switch kind {
    case "none": shown = nil
    case "changed":
      proof.totals["gems"]?.granted += 5
      shown = proof
    case "other chain": shown = lab.wallet(1).state.proof
    case "other container": shown = Self.seal(ContainerID(high: 2, low: 2)).signed(proof, on: chain)
    case "other key": shown = Self.seal(BankLab.container, Data("guess".utf8)).signed(proof, on: chain)
    default:
      proof.code = Data()
      shown = proof
    }
    lab.restore(backup)
    let late = lab.operation(.spend, 90)
    let offer = try offer(&lab, showing: shown, late)
    let reply = try lab.answer(offer)
    #expect(lab.granted(0) == 0 && lab.pool == 32 && lab.cloud.bank().missing == nil)
    #expect(lab.verdicts[late.id] == nil && lab.bank.epoch == 1 && lab.bank.isFrozen && lab.money == 100)
    // It has nothing to prove any more; it has what the backup says.
    #expect(reply.totals["gems"]?.granted == 0 && reply.epoch == 1)
  }

  @Test(
    "a store whose chain was closed proves with that chain's statement that its late operations were settled",
    arguments: [false, true])
  func foreignFormer(isForged: Bool) throws {
    var (lab, backup, _) = try granted()
    let sword = try lab.perform(0, .spend, 50, goods: ["sword"])
    try lab.exchange(0)
    lab.restore(backup)
    try lab.remove(0)
    for _ in 0..<2 { try lab.exchange(0) }
    var offer = lab.offer(0)
    #expect(offer.follows != nil && offer.proof != nil && offer.late.last?.id == sword.id)
    if isForged { offer.proof?.totals = [:] }
    try lab.answer(offer)
    #expect(lab.verdicts[sword.id] == (isForged ? nil : .accepted) && lab.money == (isForged ? 100 : 50))
    #expect(lab.bank.isFrozen && lab.cloud.bank().missing == nil)
  }

  @Test("a statement from before the backup gives nothing, and lets the store bring what it had settled")
  func old() throws {
    var lab = try BankLab.rich()
    let (backup, old) = (lab.cloud, try #require(lab.wallet(0).state.proof))
    lab.need(66, 0)
    try lab.settle()
    lab.restore(backup)
    let late = lab.operation(.spend, 10)
    let offer = try offer(&lab, showing: old, late)
    try lab.answer(offer)
    #expect(lab.granted(0) == 0 && lab.pool == 22 && lab.verdicts[late.id] == .accepted)
  }

  @Test("the newest statement gives what was granted, once, however often it is shown")
  func newest() throws {
    var (lab, backup, proof) = try granted()
    lab.restore(backup)
    let offer = try offer(&lab, showing: proof)
    for _ in 0..<3 {
      try lab.answer(offer)
      #expect(lab.granted(0) == 32 && lab.pool == 0 && lab.money == 100 && lab.cloud.bank().missing == nil)
    }
    #expect(Array(lab.bank.unreported.keys) == [lab.wallet(1).state.chain])
  }

  @Test("copies of a store get what was granted once, whichever shows it first")
  func copies() throws {
    var (lab, backup, _) = try granted()
    lab.stores.append(lab.stores[0])
    lab.restore(backup)
    for index in [2, 0] {
      try lab.settle([index])
      #expect(lab.granted(0) == 32 && lab.pool == 0 && lab.money == 100)
    }
    try lab.settle()
    #expect(!lab.bank.isFrozen && lab.money == 100 && lab.cloud.orders.isEmpty)
  }

  @Test("a statement of a later epoch shows that the backup is older than one that was set back already")
  func laterEpoch() throws {
    var (lab, backup, proof) = try granted()
    proof.epoch = 7
    let later = Self.seal().signed(proof, on: lab.wallet(0).state.chain)
    lab.restore(backup)
    let offer = try offer(&lab, showing: later)
    let reply = try lab.answer(offer)
    #expect(lab.bank.epoch == 8 && lab.bank.isFrozen && lab.granted(0) == 32 && reply.epoch == 8)
    // The other device has to show its own to the new epoch.
    let other = try lab.answer(lab.offer(1), to: 1)
    #expect(other.state == .restored && other.epoch == 8)
  }

  // MARK: Requests that were held up

  @Test("a request from before the restore is asked to show something first, also after the bank has opened")
  func heldUpBefore() throws {
    var (lab, backup, _) = try granted()
    try lab.perform(0, .spend, 50)
    let request = lab.offer(0)
    lab.restore(backup)
    #expect(try lab.answer(request).state == .restored)
    var before = lab.cloud.bank()
    #expect(try lab.answer(request).state == .restored)
    #expect(lab.cloud.bank() == before && lab.pool == 32 && lab.granted(0) == 0)
    try lab.settle()
    before = lab.cloud.bank()
    #expect(lab.money == 50 && !lab.bank.isFrozen)
    #expect(try lab.answer(request).state == .restored)
    #expect(lab.cloud.bank() == before)
  }

  @Test("a request that shows a statement to an earlier restore gives nothing after the next one")
  func heldUpBetween() throws {
    var (lab, backup, proof) = try granted()
    lab.restore(backup)
    let request = try offer(&lab, showing: proof)
    lab.restore(backup)
    let reply = try lab.answer(request)
    #expect(reply.state == .restored && reply.epoch == 2 && lab.granted(0) == 0 && lab.pool == 32)
    try lab.settle()
    #expect(!lab.bank.isFrozen && lab.money == 100 && lab.cloud.orders.isEmpty)
  }

  @Test("a request that shows a statement, and that arrives once more after its store has gone on, changes nothing")
  func doubled() throws {
    var (lab, backup, proof) = try granted()
    lab.restore(backup)
    let request = try offer(&lab, showing: proof, lab.operation(.spend, 3))
    try lab.settle()
    try lab.perform(0, .spend, 1)
    try lab.settle()
    let before = (lab.cloud.bank(), lab.verdicts)
    try lab.answer(request)
    #expect(lab.verdicts.count <= before.1.count + 1, "the spend that the store never made is late like any other")
    #expect(lab.cloud.bank().missing == nil && lab.cloud.orders.isEmpty && lab.cloud.decidedTwice.isEmpty)
    #expect(lab.bank.epoch == 1 && !lab.bank.isFrozen && lab.cloud.bank().closedChains == before.0.closedChains)
  }

  // MARK: A bank that isn't told

  @Test("a bank that isn't told finds out by the first newer statement, and everything comes again")
  func unmarked() throws {
    var (lab, backup, _) = try granted()
    try lab.perform(1, .spend, 10)
    try lab.settle()
    lab.restore(backup, isMarked: false)
    let asked = try lab.exchange(0)
    #expect(asked.state == .restored && asked.epoch == 0 && !lab.bank.isFrozen)
    try lab.exchange(0)
    #expect(lab.bank.epoch == 1 && lab.bank.isFrozen && lab.granted(0) == 32)
    try lab.settle()
    #expect(!lab.bank.isFrozen && lab.money == 90 && lab.cloud.orders.isEmpty)
    for index in 0...1 { #expect(lab.wallet(index).state.epoch == 1 && lab.wallet(index).total("gems") == 90) }
  }

  @Test("a claim that there is a newer statement, or a later epoch, without a proof changes nothing for others")
  func unproven() throws {
    for epoch in [0, 7, Cursor.maximumSeq] {
      for code in [nil, Data(repeating: 1, count: 32)] {
        var lab = try BankLab.rich()
        let before = lab.cloud.bank()
        var offer = lab.offer(0)
        (offer.statement, offer.epoch) = (900, epoch)
        #expect(try lab.answer(offer).state == .restored)
        #expect(lab.cloud.bank() == before)
        offer.proving = 0
        offer.proof = code.map {
          WalletStatement(epoch: epoch, number: 900, head: offer.base, totals: [:], code: $0)
        }
        let reply = try lab.answer(offer)
        let (state, other) = (lab.cloud.bank(), lab.wallet(1).state.chain)
        #expect(lab.bank.epoch == 0 && !lab.bank.isFrozen && state.chains[other] == before.chains[other])
        #expect(reply.epoch == 0 && reply.statement == 901 && state.pool == before.pool)
        #expect(state.chains.values.allSatisfy { $0.restored == nil })
      }
    }
  }

  @Test("a store that can't prove that there was a later epoch goes on in the one of its bank")
  func earlierEpoch() throws {
    var lab = try BankLab.rich()
    var state = lab.wallet(0).state
    (state.epoch, state.proof) = (5, nil)
    lab.stores[0].setWallet(state)
    try lab.perform(0, .earn, 7)
    try lab.settle()
    #expect(lab.bank.epoch == 0 && !lab.bank.isFrozen && lab.money == 107)
    for index in 0...1 { #expect(lab.wallet(index).state.epoch == 0 && lab.wallet(index).total("gems") == 107) }
    #expect(lab.wallet(0).state.proving == nil && lab.wallet(0).state.proof != nil)
  }

  // MARK: Stores that have lost their ledgers

  @Test(
    "of operations that the store doesn't have any more, the totals come from its statement", arguments: [true, false])
  func lostLedger(isKnown: Bool) throws {
    var lab = BankLab(stores: 2)
    try lab.perform(1, .earn, 10)
    try lab.settle([1])
    var backup = lab.cloud
    try lab.perform(0, .earn, 100)
    try lab.settle()
    if isKnown { backup = lab.cloud }
    try lab.perform(0, .earn, 20)
    let sword = try lab.perform(0, .spend, 30, goods: ["sword"])
    try lab.settle()
    #expect(lab.money == 100)
    let chain = lab.wallet(0).state.chain
    lab.restore(backup)
    lab.hasLedgers = false
    try lab.settle([0])
    #expect(lab.wallet(0).state.chain == chain && !lab.wallet(0).state.skipsLost)
    try lab.settle()
    #expect(!lab.bank.isFrozen && lab.money == 100 && lab.cloud.orders.isEmpty)
    #expect(lab.verdicts[sword.id] == nil, "only the money is known")
    for index in 0...1 { #expect(lab.wallet(index).total("gems") == 100) }
  }

  // MARK: Limits

  @Test("a bank refuses impossible numbers, and nothing overflows with the greatest ones")
  func limits() throws {
    var (lab, backup, proof) = try granted()
    lab.restore(backup)
    let late = lab.operation(.spend, 1)
    let valid = try offer(&lab, showing: proof, late)
    let most = Cursor.maximumSeq
    let refused: [(inout WalletOffer) -> Void] = [
      { $0.epoch = most + 1 }, { $0.statement = most + 1 }, { $0.again = -1 }, { $0.proof?.epoch = most + 1 },
      { $0.proof?.number = most + 1 }, { $0.proof?.head.count = most + 1 },
      { $0.proof?.totals["gems"]?.granted = Wallet.maximumTotal + 1 }, { $0.proof?.totals["gems"]?.spent = -1 },
      { $0.proof?.totals[""] = WalletTotals() },
      { offer in for number in 0...256 { offer.proof?.totals["c\(number)"] = WalletTotals() } },
      { $0.ancestors = (0..<17).map { ChainID(high: 9, low: $0) } },
    ]
    for change in refused {
      var offer = valid
      change(&offer)
      #expect(throws: ExchangeError.self) { try lab.answer(offer) }
    }
    var greatest = valid
    (greatest.again, greatest.statement, greatest.epoch, greatest.orders) = (.max, most, most, most)
    try lab.answer(greatest)
    #expect(lab.verdicts[late.id] == .accepted && lab.money == 100 && lab.cloud.bank().missing == ["gems": 1])
    #expect(lab.bank.isFrozen && lab.bank.unreported.count == 2, "a store that has more to bring is waited for")
  }

  @Test("the greatest amounts on many chains overflow nothing while they are shown")
  func greatestAmounts() throws {
    var lab = try BankLab.rich()
    lab.rules.epoch = 1
    var totals = WalletTotals()
    totals.granted = Wallet.maximumTotal
    for number in 1...20 as ClosedRange<UInt64> {
      let chain = ChainID(high: 3, low: number)
      let head = ChainHead(emptyChain: chain)
      let proof = Self.seal().signed(
        WalletStatement(epoch: 0, number: 5, head: head, totals: ["gems": totals]), on: chain)
      try lab.answer(WalletOffer(chain: chain, base: head, statement: 5, proving: 1, proof: proof))
      #expect(lab.cloud.bank().chains[chain]?.totals["gems"]?.rights == Wallet.maximumTotal)
    }
    #expect(lab.cloud.bank().missing == ["gems": Wallet.maximumTotal])
    for number in 1...20 as ClosedRange<UInt64> {
      var bank = Bank(lab.cloud.bank(), rules: lab.rules)
      try bank.close([ChainID(high: 3, low: number)], in: &lab.cloud)
      lab.cloud.setBank(bank.state)
      #expect(bank.balance("gems") > 0 && bank.shownBalances()["gems"] ?? -1 >= 0)
    }
    try lab.settle()
    #expect(lab.pool <= Wallet.maximumTotal && lab.pool >= 0)
  }
}
