import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// A bank that was set back, and stores that were copied, set back or closed since the backup.
@Suite struct BankBranchTests {
  /// Checks that no money is on a chain that no store has.
  private func expectNothingStranded(_ lab: BankLab, sourceLocation: SourceLocation = #_sourceLocation) {
    let held = Set(lab.stores.indices.map { lab.wallet($0).state.chain })
    for (id, chain) in lab.cloud.bank().chains where chain.totals.values.contains(where: { $0.rights > 0 }) {
      #expect(held.contains(id), "\(id)", sourceLocation: sourceLocation)
    }
  }

  @Test("a store whose copy continued the chain first brings what it had settled there on a chain of its own")
  func branched() throws {
    var lab = try BankLab.rich()
    let (backup, copy, chain) = (lab.cloud, lab.stores[0], lab.wallet(0).state.chain)
    let hat = try lab.perform(0, .spend, 8, goods: ["hat"])
    let earning = try lab.perform(0, .earn, 5)
    try lab.settle()
    lab.stores.append(copy)
    lab.restore(backup)
    try lab.perform(2, .earn, 9)
    try lab.settle([2])
    try lab.settle([0])
    #expect(lab.wallet(0).state.follows == chain && !lab.wallet(0).state.skipsLost)
    #expect(lab.verdicts[hat.id] == .accepted && lab.verdicts[earning.id] == .accepted && lab.goods == ["hat": 1])
    try lab.settle()
    #expect(lab.money == 106 && !lab.bank.isFrozen && lab.cloud.orders.isEmpty && lab.cloud.decidedTwice.isEmpty)
    for index in 0...2 { #expect(lab.wallet(index).total("gems") == 106) }
    expectNothingStranded(lab)
  }

  @Test("a restored bank learns which chains it lost, so that an older copy of the store finds what descends from them")
  func lostAncestors() throws {
    var lab = try BankLab.rich()
    let (backup, old, first) = (lab.cloud, lab.stores[0], lab.wallet(0).state.chain)
    for _ in 0..<2 {
      try lab.remove(0)
      try lab.settle()
    }
    let second = try #require(lab.wallet(0).state.follows)
    #expect(lab.wallet(0).state.ancestors == [first] && second != first)
    lab.restore(backup)
    try lab.settle([0])
    #expect(lab.cloud.closedChain(second)?.follows == first && lab.cloud.bank().closedChains == 2)
    lab.stores[0] = old
    try lab.settle()
    #expect(lab.money == 100 && !lab.bank.isFrozen && lab.cloud.orders.isEmpty)
    expectNothingStranded(lab)
  }

  @Test("what was settled while operations are offered again to one restored bank is offered again to the next")
  func settledBetween() throws {
    var lab = try BankLab.rich()
    let chain = lab.wallet(0).state.chain
    lab.receive(WalletReply(chain: chain, state: .restored, epoch: 1), 0)
    let earning = try lab.perform(0, .earn, 3)
    lab.receive(WalletReply(chain: chain, state: .closed(common: lab.wallet(0).state.head), epoch: 1), 0)
    let next = lab.wallet(0).state.chain
    #expect(next != chain && !lab.wallet(0).state.late.contains(earning.id))
    lab.receive(WalletReply(chain: next, state: .restored, epoch: 2), 0)
    let state = lab.wallet(0).state
    #expect(state.late.contains(earning.id) && state.again == state.late.count && state.proving == 2)
    #expect(Set(state.late.map(\.id)).count == state.late.count)
    lab.receive(WalletReply(chain: next, state: .restored, epoch: 2), 0)
    #expect(lab.wallet(0).state == state, "asked once more, it has nothing to add")
  }

  @Test("a bank that isn't told finds out by the former chain's statement, which a new chain shows")
  func shownByNewChain() throws {
    var lab = try BankLab.rich()
    let backup = lab.cloud
    lab.need(66, 0)
    try lab.settle()
    lab.need(nil, 0)
    let former = lab.wallet(0).state.chain
    try lab.remove(0)
    try lab.exchange(0)
    let offer = lab.offer(0)
    #expect(offer.follows == former && offer.statement == 0 && offer.proving == nil && offer.proof != nil)
    // A bank that has what the statement says takes it as any other offer.
    var current = lab
    #expect(try current.exchange(0).state == .accepted(offer.base) && current.bank.epoch == 0)
    lab.restore(backup, isMarked: false)
    let reply = try lab.exchange(0)
    #expect(reply.state == .restored && reply.epoch == 1 && lab.bank.epoch == 1 && lab.bank.isFrozen)
    try lab.settle()
    #expect(lab.money == 100 && !lab.bank.isFrozen && lab.cloud.orders.isEmpty)
    expectNothingStranded(lab)
    // Nor does anybody else's statement tell it anything.
    var forged = offer
    forged.proof?.number -= 1
    let before = lab.cloud.bank()
    try lab.answer(forged)
    #expect(lab.cloud.bank().epoch == before.epoch && !lab.bank.isFrozen)
  }

  @Test("a store that was only told that its chain is closed since the backup shows that to a bank that isn't told")
  func toldOfClosing() throws {
    var lab = try BankLab.rich()
    let backup = lab.cloud
    let former = lab.wallet(0).state.chain
    try lab.remove(0)
    // What the device says that the two have in common isn't what the bank signs.
    let told = try lab.exchange(0)
    let proof = try #require(lab.wallet(0).state.proof)
    #expect(told.proof == proof && proof.head == lab.cloud.closedChain(former)?.head && proof.isOfHead == true)
    lab.restore(backup, isMarked: false)
    let reply = try lab.exchange(0)
    #expect(reply.state == .restored && reply.epoch == 1 && lab.bank.isFrozen)
    try lab.settle()
    #expect(lab.money == 100 && !lab.bank.isFrozen && lab.cloud.orders.isEmpty)
    expectNothingStranded(lab)
  }

  @Test("a copy that was only told that the other one continued the chain shows that to a bank that isn't told")
  func toldOfBranch() throws {
    var lab = try BankLab.rich()
    let (backup, copy) = (lab.cloud, lab.stores[0])
    let spend = try lab.perform(0, .spend, 5, goods: ["hat"])
    try lab.settle([0])
    lab.stores.append(copy)
    try lab.perform(2, .earn, 3)
    let reply = try lab.exchange(2)
    #expect(reply.proof?.head == lab.cloud.bank().chains[lab.wallet(0).state.chain]?.head)
    #expect(lab.wallet(2).state.proof == reply.proof && lab.wallet(2).state.follows == lab.wallet(0).state.chain)
    lab.restore(backup, isMarked: false)
    #expect(try lab.exchange(2).state == .restored)
    try lab.settle()
    #expect(lab.verdicts[spend.id] == .accepted && lab.goods == ["hat": 1] && !lab.bank.isFrozen)
    // The bank waits for one of the copies only: what the other one had bought may be booked as missing.
    #expect(lab.money - lab.cloud.orders.reduce(0) { $0 + $1.amount } == 98)
    expectNothingStranded(lab)
  }

  /// A bank that is set back, and not told, after a store earned 5; a copy of that store has continued the chain since,
  /// further than the store had.
  private func overtaken() throws -> (lab: BankLab, earning: WalletOperation) {
    var lab = try BankLab.rich()
    let (backup, copy) = (lab.cloud, lab.stores[0])
    let earning = try lab.perform(0, .earn, 5)
    try lab.settle([0])
    lab.stores.append(copy)
    lab.restore(backup, isMarked: false)
    for amount in [7, 9] as [Int64] {
      try lab.perform(2, .earn, amount)
      try lab.settle([2])
    }
    return (lab, earning)
  }

  @Test("a bank that isn't told finds out by operations that it had settled, where a copy has continued the chain")
  func shownByOperation() throws {
    var (lab, earning) = try overtaken()
    #expect(try lab.exchange(0).state != .restored)
    #expect(lab.wallet(0).offer().settled?.operations.last == earning)
    #expect(try lab.exchange(0).state == .restored)
    try lab.settle()
    #expect(lab.verdicts[earning.id] == .accepted && !lab.bank.isFrozen && lab.wallet(0).offer().settled == nil)
    #expect(lab.money - lab.cloud.orders.reduce(0) { $0 + $1.amount } == 121)
    expectNothingStranded(lab)
  }

  @Test("only operations that the bank had settled show that it was set back: not one that it knows or never signed")
  func madeUpOperations() throws {
    var (lab, _) = try overtaken()
    try lab.exchange(0)
    let offer = lab.offer(0)
    let known = try #require(lab.wallet(2).state.proof)
    func isBelieved(_ change: (inout SettledOperations) -> Void) throws -> Bool {
      var (offer, copy) = (offer, lab)
      var settled = try #require(offer.settled)
      change(&settled)
      offer.settled = settled
      return try copy.answer(offer).state == .restored
    }
    #expect(try isBelieved { _ in })
    #expect(try !isBelieved { $0.operations[0].amount += 1 })
    #expect(try !isBelieved { $0.operations[0].id = OperationID(high: 9, low: 9) })
    #expect(try !isBelieved { $0.previous = $0.statement.head.hash })
    #expect(try !isBelieved { $0.statement.head.count = 0 })
    #expect(try !isBelieved { $0.operations = [] })
    #expect(try !isBelieved { $0.statement.code = Data(count: 32) })
    #expect(try !isBelieved { $0.statement = known })
    #expect(throws: ExchangeError.self) { try isBelieved { $0.operations[0].amount = 0 } }
    #expect(throws: ExchangeError.self) {
      try isBelieved { $0.operations = Array(repeating: $0.operations[0], count: 17) }
    }
    #expect(throws: ExchangeError.self) { try isBelieved { $0.statement.epoch = .max } }
  }

  @Test("a bank that knows what it had settled takes a new chain as it is")
  func knownOperations() throws {
    var lab = try BankLab.rich()
    let earning = try lab.perform(0, .earn, 5)
    try lab.settle([0])
    try lab.remove(0)
    try lab.exchange(0)
    #expect(lab.offer(0).settled?.operations.last == earning)
    #expect(try lab.exchange(0).state != .restored)
    try lab.settle()
    #expect(lab.money == 105 && lab.bank.epoch == 0)
    expectNothingStranded(lab)
  }

  @Test("a store takes a statement of an ended chain only if a bank can have made it, and keeps what it was asked for")
  func strangeProofs() throws {
    var lab = try BankLab.rich()
    try lab.remove(0)
    let offer = lab.offer(0)
    let told = try lab.answer(offer)
    let own = lab.wallet(0).state.proof
    func taken(_ change: (inout WalletReply) -> Void) -> WalletStatement? {
      var (reply, copy) = (told, lab)
      change(&reply)
      copy.receive(reply, 0)
      #expect(copy.wallet(0).state.follows == offer.chain)
      return copy.wallet(0).state.proof
    }
    #expect(taken { _ in } == told.proof)
    #expect(taken { $0.proof = nil } == own)
    #expect(taken { $0.proof?.number = 0 } == own)
    #expect(taken { $0.proof?.number = .max } == own)
    #expect(taken { $0.proof?.code = Data() } == own)
    #expect(taken { $0.proof?.isOfHead = nil } == own)
    #expect(taken { $0.proof?.totals = ["gems": WalletTotals()] } == own)
    lab.receive(WalletReply(chain: offer.chain, state: .restored, epoch: 1), 0)
    #expect(taken { $0.proof?.epoch = 1 } == own)
  }

  @Test("a chain that is closed before its store has brought everything passes on that it is believed, once")
  func closedMeanwhile() throws {
    var lab = try BankLab.rich()
    lab.need(66, 0)
    try lab.settle()
    lab.need(nil, 0)
    let backup = lab.cloud
    let spends = try (1...3).map { try lab.perform(0, .spend, 20, goods: ["good \($0)"]) }
    try lab.settle()
    lab.restore(backup)
    lab.batch = 1
    try lab.remove(0)
    while lab.bank.unreported[lab.wallet(0).state.chain] == nil { try lab.exchange(0) }
    try lab.remove(0)
    #expect(lab.cloud.bank().replaying?.count == 1)
    try lab.settle([0])
    for spend in spends { #expect(lab.verdicts[spend.id] == .accepted, "\(spend.goods)") }
    #expect(lab.cloud.bank().replaying == nil)
    try lab.settle()
    #expect(lab.money == 40 && !lab.bank.isFrozen && lab.goods.count == 3)
    for index in 0...1 { #expect(lab.wallet(index).total("gems") == 40) }
    expectNothingStranded(lab)
  }
}
