import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// A bank that is set back to a backup, and whose stores have gone on: what comes again, and what has to wait.
@Suite struct BankRestoredTests {
  /// Whether the bank has opened, nobody lost anything, and nothing counts twice.
  private func checkOpen(_ lab: BankLab, money: Int64, shortfalls: [Int64] = []) {
    #expect(!lab.bank.isFrozen && lab.bank.unreported.isEmpty && lab.cloud.bank().missing == nil)
    #expect(lab.cloud.decidedTwice.isEmpty && lab.money == money)
    #expect(lab.cloud.orders.filter { $0.kind == .shortfall }.map(\.amount) == shortfalls)
    for index in lab.stores.indices {
      let wallet = lab.wallet(index)
      #expect(wallet.total("gems") == money && !wallet.hasUnreportedOperations && wallet.state.waiting.isEmpty)
      #expect(wallet.state.proving == nil && wallet.state.again == 0 && wallet.state.replayed == 0)
      #expect(lab.stores[index].goods().counts == lab.goods)
    }
  }

  // MARK: What comes again

  @Test(
    "what was acknowledged after the backup comes again, once, with its goods, and nobody is told again",
    arguments: [1, 3, 500])
  func comesAgain(batch: Int) throws {
    var lab = try BankLab.rich()
    lab.batch = batch
    let backup = lab.cloud
    try lab.perform(0, .earn, 40)
    try lab.settle()
    try lab.perform(0, .spend, 30, goods: ["sword"])
    try lab.perform(0, .claim(key: "quest"), 20)
    try lab.perform(1, .spend, 10, goods: ["hat"])
    try lab.settle()
    let (before, goods, notices) = (lab.verdicts, lab.goods, lab.stores.map(\.notices))
    #expect(lab.money == 120 && before.count == 5 && goods == ["sword": 1, "hat": 1])
    lab.restore(backup)
    #expect(lab.money == 100 && lab.verdicts.count == 1)
    try lab.settle()
    checkOpen(lab, money: 120)
    #expect(lab.verdicts == before && lab.goods == goods && lab.stores.map(\.notices) == notices)
    #expect(lab.cloud.paidClaims == ["quest"])
    #expect(lab.bank.epoch == 1)
  }

  @Test("what a device was granted after the backup it keeps, before the others bring what they returned for it")
  func keepsRights() throws {
    var lab = try BankLab.rich()
    let backup = lab.cloud
    lab.need(80, 1)
    try lab.settle()
    #expect(lab.wallet(1).spendable("gems") == 80)
    lab.restore(backup)
    lab.need(nil, 1)
    let castle = try lab.perform(1, .spend, 70, goods: ["castle"])
    try lab.settle([1])
    #expect(lab.bank.isFrozen && lab.verdicts[castle.id] == .accepted)
    // The other device returned 14 of it, as the bank will learn.
    #expect(lab.cloud.bank().missing == ["gems": 14] && lab.pool == 0)
    try lab.settle()
    checkOpen(lab, money: 30)
    #expect(lab.goods == ["castle": 1])
  }

  @Test("late operations that were settled after the backup come again, once")
  func lateOnes() throws {
    var lab = try BankLab.rich()
    let backup = lab.cloud
    lab.stores.append(lab.stores[0])
    try lab.perform(0, .spend, 5)
    try lab.perform(2, .spend, 7, goods: ["hat"])
    try lab.perform(2, .earn, 3)
    try lab.settle()
    let (before, notices) = (lab.verdicts, lab.stores.map(\.notices))
    #expect(lab.money == 91 && before.count == 4)
    lab.restore(backup)
    try lab.settle()
    checkOpen(lab, money: 91)
    #expect(lab.verdicts == before && lab.stores.map(\.notices) == notices && lab.goods == ["hat": 1])
  }

  @Test("a spend that waited is neither lost nor charged twice, and isn't decided before the bank has opened")
  func waiting() throws {
    var lab = try BankLab.rich()
    let backup = lab.cloud
    lab.need(66, 1)
    try lab.settle()
    lab.stores.append(lab.stores[0])
    try lab.perform(0, .spend, 10)
    let late = try lab.perform(2, .spend, 30)
    try lab.exchange(0)
    for _ in 0..<3 { try lab.exchange(2) }
    #expect(lab.wallet(2).state.waiting.map(\.id) == [late.id] && lab.verdicts[late.id] == .waiting)
    lab.restore(backup)
    try lab.settle([2])
    #expect(lab.bank.isFrozen && lab.verdicts[late.id] == nil && lab.wallet(2).state.late.map(\.id) == [late.id])
    lab.need(nil, 1)
    try lab.settle()
    // The spend of 10 that was settled comes last: the pool has 4 by then, and the player keeps the rest.
    checkOpen(lab, money: 66, shortfalls: [6])
    #expect(lab.verdicts[late.id] == .accepted)
  }

  @Test("a spend that waited in the backup, and that was charged since, is charged once")
  func chargedSince() throws {
    var lab = try BankLab.rich()
    lab.need(66, 1)
    try lab.settle()
    lab.stores.append(lab.stores[0])
    try lab.perform(0, .spend, 10)
    let late = try lab.perform(2, .spend, 30)
    try lab.exchange(0)
    for _ in 0..<3 { try lab.exchange(2) }
    let backup = lab.cloud
    #expect(backup.bank().waiting.count == 1)
    lab.need(nil, 1)
    try lab.settle()
    #expect(lab.verdicts[late.id] == .accepted && lab.money == 60)
    lab.restore(backup)
    try lab.settle()
    checkOpen(lab, money: 60)
    #expect(lab.verdicts[late.id] == .accepted)
  }

  @Test(
    "ten thousand operations come again in batches, on their chain or as late ones; then the bank opens",
    arguments: [false, true])
  func batches(isClosed: Bool) throws {
    var lab = try BankLab.rich()
    let backup = lab.cloud
    for _ in 0..<10_000 { try lab.perform(0, .earn, 1) }
    try lab.settle()
    #expect(lab.money == 10_100)
    lab.restore(backup)
    if isClosed { try lab.remove(0) } else { try lab.settle([1]) }
    for _ in 0..<6 { try lab.exchange(0) }
    #expect(lab.bank.isFrozen && lab.verdicts.count > 1_000 && lab.verdicts.count < 10_000)
    try lab.settle()
    checkOpen(lab, money: 10_100)
    #expect(lab.verdicts.count == 10_001)
  }

  // MARK: Until all have reported

  @Test("until then nothing is granted, claimed or declined; what is within rights counts")
  func frozen() throws {
    var lab = try BankLab.rich()
    lab.restore(lab.cloud)
    lab.need(60, 0)
    let spend = try lab.perform(0, .spend, 10)
    let claim = try lab.perform(0, .claim(key: "quest"), 20)
    let earning = try lab.perform(0, .earn, 5)
    try lab.settle([0])
    #expect(lab.bank.isFrozen && Array(lab.bank.unreported.keys) == [lab.wallet(1).state.chain])
    #expect(lab.verdicts[spend.id] == .accepted && lab.verdicts[claim.id] == nil && lab.verdicts[earning.id] == nil)
    #expect(lab.wallet(0).spendable("gems") == 29 && lab.wallet(0).pending("gems") == 20)
    #expect(lab.granted(0) == 0 && lab.pool == 32 && lab.wallet(0).state.held.isEmpty)
    var offer = lab.offer(0)
    offer.late = [lab.operation(.spend, 1_000), lab.operation(.spend, 1)]
    let reply = try lab.answer(offer)
    #expect(reply.decisions.isEmpty && offer.late.allSatisfy { lab.verdicts[$0.id] == nil })
    #expect(reply.recalled.isEmpty && reply.held.isEmpty)
    try lab.settle()
    checkOpen(lab, money: 115)
    #expect(lab.verdicts[claim.id] == .accepted && lab.wallet(0).spendable("gems") >= 60)
  }

  @Test("a spend that waited before the backup is neither charged nor declined until then", arguments: [100, 0])
  func frozenWaiting(pool: Int64) throws {
    var lab = try BankLab.rich()
    let late = lab.operation(.spend, 60)
    let chain = lab.wallet(0).state.chain
    var offer = lab.offer(0)
    offer.late = [late]
    let verdicts = try lab.answer(offer).decisions.map(\.verdict)
    #expect(verdicts == [.waiting])
    lab.restore(lab.cloud)
    try lab.settle([1])
    // The first device has spent its rights, and the pool has enough, or nothing.
    var totals = WalletTotals()
    (totals.earned, totals.spent, totals.returned) = (100, 34, 66)
    var state = lab.cloud.bank()
    state.chains[chain]?.totals["gems"] = totals
    state.pool["gems"] = pool
    lab.cloud.setBank(state)
    try lab.settle([1])
    #expect(lab.bank.isFrozen && lab.verdicts[late.id] == .waiting)
    try lab.remove(0)
    #expect(!lab.bank.isFrozen && lab.verdicts[late.id] == (pool > 0 ? .accepted : .declined))
  }

  @Test("an operator ends the wait; a device that comes later gets what it shows, and what the pool lacks is booked")
  func released() throws {
    var lab = try BankLab.rich()
    let backup = lab.cloud
    lab.need(66, 1)
    try lab.settle()
    lab.restore(backup)
    let claim = try lab.perform(0, .claim(key: "quest"), 20)
    try lab.settle([0])
    #expect(lab.bank.isFrozen && lab.verdicts[claim.id] == nil)
    try lab.release()
    lab.need(80, 0)
    try lab.settle([0])
    #expect(!lab.bank.isFrozen && lab.verdicts[claim.id] == .accepted)
    #expect(lab.wallet(0).spendable("gems") == 80 && lab.pool == 6)
    try lab.settle([1])
    #expect(lab.wallet(1).spendable("gems") == 66 && lab.cloud.orders.map(\.kind) == [.shortfall])
    try lab.settle()
    checkOpen(lab, money: 146, shortfalls: [26])
    for index in 0...1 { #expect(lab.stores[index].orders == lab.cloud.orders) }
  }

  @Test("what a device is still bringing isn't booked, also in a bank that was released")
  func bringing() throws {
    var lab = try BankLab.rich()
    let backup = lab.cloud
    // The second device has everything for a while.
    lab.need(100, 1)
    try lab.settle()
    #expect(lab.wallet(1).spendable("gems") == 100)
    lab.need(nil, 1)
    try lab.settle()
    #expect(lab.wallet(1).spendable("gems") == 34)
    lab.restore(backup)
    try lab.settle([0])
    try lab.release()
    for _ in 0..<2 { try lab.exchange(1) }
    #expect(lab.cloud.bank().missing == ["gems": 34])
    try lab.settle([0])
    #expect(lab.cloud.orders.isEmpty)
    try lab.settle()
    checkOpen(lab, money: 100)
  }

  @Test("a device that is removed isn't waited for, and what it had reported nowhere comes when it joins again")
  func removed() throws {
    var lab = try BankLab.rich()
    let backup = lab.cloud
    lab.need(66, 0)
    try lab.settle()
    lab.need(nil, 0)
    let sword = try lab.perform(0, .spend, 50, goods: ["sword"])
    try lab.exchange(0)
    lab.restore(backup)
    try lab.settle([1])
    #expect(lab.bank.isFrozen)
    try lab.remove(0)
    #expect(!lab.bank.isFrozen && lab.money == 100)
    try lab.settle([0])
    try lab.settle()
    checkOpen(lab, money: 50)
    #expect(lab.verdicts[sword.id] == .accepted && lab.goods == ["sword": 1])
  }

  @Test("the bank waits for a store that continues with another chain, until it has brought everything")
  func waitsForNextChain() throws {
    var lab = try BankLab.rich()
    let backup = lab.cloud
    for _ in 0..<3 { try lab.perform(0, .earn, 100) }
    lab.need(200, 1)
    try lab.settle()
    #expect(lab.wallet(1).spendable("gems") == 200)
    lab.restore(backup)
    lab.need(nil, 1)
    try lab.remove(0)
    lab.batch = 1
    for _ in 0..<3 { try lab.exchange(0) }
    #expect(lab.cloud.bank().chains[lab.wallet(0).state.chain]?.isShown == false)
    try lab.settle([1])
    // 100 of 134 is what nobody has brought yet.
    #expect(lab.bank.isFrozen && lab.cloud.bank().missing == ["gems": 100])
    try lab.settle()
    checkOpen(lab, money: 400)
  }

  @Test("a chain that is closed before its store has reported: what was settled on it comes again on the next one")
  func closedBefore() throws {
    var lab = try BankLab.rich()
    let backup = lab.cloud
    let sword = try lab.perform(0, .spend, 30, goods: ["sword"])
    try lab.exchange(0)
    lab.restore(backup)
    try lab.remove(0)
    try lab.settle([0])
    #expect(lab.bank.isFrozen && lab.money == 70)
    try lab.settle()
    checkOpen(lab, money: 70)
    #expect(lab.verdicts[sword.id] == .accepted && lab.goods == ["sword": 1])
    #expect(lab.wallet(0).state.follows != nil)
  }

  // MARK: What is missing

  @Test("what devices show and nobody brings is booked once, as an order that all devices learn of")
  func shortfall() throws {
    var lab = try BankLab.rich()
    let backup = lab.cloud
    // Orders are lost: no device can repeat one.
    try lab.grant(50)
    lab.need(116, 0)
    try lab.settle()
    #expect(lab.wallet(0).spendable("gems") == 116 && lab.money == 150)
    lab.restore(backup)
    try lab.settle([0])
    #expect(lab.bank.isFrozen && lab.cloud.bank().missing == ["gems": 50] && lab.cloud.orders.isEmpty)
    try lab.settle()
    checkOpen(lab, money: 150, shortfalls: [50])
    #expect(lab.wallet(0).spendable("gems") == 116 && lab.bank.state.orderNumber == 1)
    for index in 0...1 { #expect(lab.stores[index].orders.map(\.kind) == [.grant, .shortfall]) }
    try lab.settle()
    #expect(lab.cloud.orders.count == 1)
  }

  @Test("what a bank orders while it waits is the player's, and covers nothing that is missing")
  func ordersWhileFrozen() throws {
    var lab = try BankLab.rich()
    let backup = lab.cloud
    try lab.grant(50)
    lab.need(116, 0)
    try lab.settle()
    lab.restore(backup)
    try lab.settle([0])
    try lab.grant(100)
    try lab.settle()
    checkOpen(lab, money: 250, shortfalls: [50])
  }

  @Test("a bank that is set back again, also while devices report, gets everything back again")
  func twice() throws {
    var lab = try BankLab.rich()
    let backup = lab.cloud
    try lab.perform(0, .spend, 30, goods: ["sword"])
    try lab.perform(1, .claim(key: "quest"), 20)
    try lab.settle()
    let (before, notices) = (lab.verdicts, lab.stores.map(\.notices))
    lab.restore(backup)
    // In the middle of reporting.
    for _ in 0..<2 { try lab.exchange(0) }
    lab.restore(backup)
    try lab.settle()
    checkOpen(lab, money: 90)
    lab.restore(backup)
    try lab.settle()
    checkOpen(lab, money: 90)
    #expect(lab.verdicts == before && lab.stores.map(\.notices) == notices && lab.bank.epoch == 3)
  }

  // MARK: Planted bugs

  @Test("with the bug that a frozen bank grants, what another device was granted is granted again")
  func bugGrants() throws {
    for bugs in [[], [.frozenBankGrants]] as [Set<PlantedBug>] {
      var lab = try BankLab.rich(planting: bugs)
      let backup = lab.cloud
      lab.need(66, 1)
      try lab.settle()
      lab.restore(backup)
      lab.need(nil, 1)
      lab.need(60, 0)
      try lab.settle([0])
      #expect(lab.bank.isFrozen && (lab.pool == 32) == bugs.isEmpty)
      try lab.settle()
      #expect((lab.money == 100) == bugs.isEmpty)
    }
  }

  @Test("with the bug that forgets proofs, a device loses what it was granted")
  func bugForgets() throws {
    for bugs in [[], [.forgetProof]] as [Set<PlantedBug>] {
      var lab = try BankLab.rich(planting: bugs)
      let backup = lab.cloud
      lab.need(66, 1)
      try lab.settle()
      lab.restore(backup)
      try lab.settle([1])
      #expect(lab.granted(1) == (bugs.isEmpty ? 66 : 34))
    }
  }
}
