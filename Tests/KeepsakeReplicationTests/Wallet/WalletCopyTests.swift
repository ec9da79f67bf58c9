import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// Copied, set-back and removed stores: what becomes of the money that two of them have spent.
@Suite struct WalletCopyTests {
  @Test("what a copied store spends twice is charged once, and declined once, if the balance doesn't cover both")
  func forks() throws {
    var lab = try Lab()
    try lab.settle(0)
    try lab.perform(0, .earn, 100)
    try lab.settle(0)
    lab.copyStore()
    try lab.perform(0, .spend, 60)
    try lab.perform(1, .spend, 50)
    try lab.perform(1, .earn, 7)
    for _ in 0..<4 { for index in 0..<2 { try lab.settle(index) } }
    let declined = lab.cloud.decisions.values.filter { $0.verdict == .declined }
    #expect(declined.map(\.operation.amount) == [50] && lab.verdicts(1) == [.declined, .accepted])
    #expect(lab.money == 47)
    let chains = lab.cloud.bank().chains
    let held = Set((0..<2).map { lab.wallet($0).state.chain })
    #expect(chains.keys.allSatisfy(held.contains))
    for index in 0..<2 { #expect(lab.wallet(index).total("gems") == 47) }
  }

  @Test("a spend that comes late waits for what other devices return, and is charged, as the balance covers it")
  func lateSpendsWait() throws {
    var lab = try Lab.rich()
    // The second device takes what the pool has.
    lab.need(66, 1)
    try lab.settle(1)
    lab.need(0, 1)
    lab.copyStore()
    try lab.perform(0, .spend, 30)
    for _ in 0..<2 { try lab.perform(2, .spend, 17) }
    try lab.perform(2, .earn, 2)
    try lab.settle(0)
    // The copy's spends are late: 70 are left, but the pool has only 4 of them.
    try lab.settle(2)
    #expect(lab.wallet(2).state.waiting.count == 2 && lab.wallet(2).state.late.isEmpty)
    #expect(lab.wallet(2).total("gems") == 38 && lab.cloud.bank().waiting.count == 2)
    for _ in 0..<5 { for index in 0..<3 { try lab.settle(index) } }
    #expect(lab.cloud.decisions.values.allSatisfy { $0.verdict == .accepted })
    #expect(lab.money == 38 && lab.cloud.bank().waiting.isEmpty)
    for index in 0..<3 {
      #expect(lab.wallet(index).total("gems") == 38 && lab.wallet(index).state.waiting.isEmpty)
    }
    #expect(lab.verdicts(2).filter { $0 == .declined }.isEmpty)
  }

  @Test("what one checkpoint earns and spends counts whole or not at all, also on a copy that comes late")
  func lateGroupsCountWhole() throws {
    var lab = try Lab()
    try lab.settle(0)
    try lab.perform(0, .earn, 100)
    try lab.settle(0)
    for number in 1...4 as ClosedRange<UInt64> { lab.copyStore(70 + number) }
    for index in 0..<5 {
      try lab.commit(index, CommitDraft(wallet: [lab.operation(.spend, 100), lab.operation(.earn, 10, "crowns")]))
    }
    for _ in 0..<4 { for index in 0..<5 { try lab.settle(index) } }
    let bank = Bank(lab.cloud.bank())
    #expect(bank.balance("gems") == 0 && bank.balance("crowns") == 10)
    #expect(lab.cloud.decisions.values.count { $0.verdict == .declined } == 8)
    for index in 0..<5 { #expect(lab.wallet(index).total("crowns") == 10) }
  }

  @Test("a conversion takes one currency and gives the other in one operation, also when it comes late")
  func conversions() throws {
    var lab = try Lab()
    try lab.settle(0)
    try lab.perform(0, .earn, 100)
    try lab.settle(0)
    lab.copyStore()
    for index in 0..<2 {
      try lab.perform(index, .convert(to: "crowns", received: 10), 100)
      #expect(lab.wallet(index).spendable("crowns") == 10 && lab.wallet(index).total("gems") == 0)
      #expect(lab.wallet(index).total("crowns") == 10)
    }
    for _ in 0..<4 { for index in 0..<2 { try lab.settle(index) } }
    let bank = Bank(lab.cloud.bank())
    #expect(bank.balance("gems") == 0 && bank.balance("crowns") == 10)
    for index in 0..<2 { #expect(lab.wallet(index).total("crowns") == 10 && lab.wallet(index).total("gems") == 0) }
  }

  @Test("a store that is set back to a backup with more operations than a batch has goes on", arguments: [0, 60])
  func setBackFar(more: Int) throws {
    var lab = try Lab()
    try lab.settle(0)
    for _ in 0..<1_200 { try lab.perform(0, .earn, 1) }
    let backup = lab.devices[0].storage
    for _ in 0..<more { try lab.perform(0, .earn, 1) }
    try lab.settle(0)
    lab.setBack(to: backup)
    lab.devices[0].exchanges = 0
    try lab.settle(0)
    #expect(lab.devices[0].exchanges <= 6, "it doesn't ask for ever")
    #expect(!lab.wallet(0).hasUnreportedOperations && lab.money == Int64(1_200 + more))
    #expect(
      lab.wallet(0).total("gems") == Int64(1_200 + more) && lab.wallet(0).spendable("gems") == Int64(1_200 + more))
    try lab.perform(0, .spend, 1_200)
    try lab.settle(0)
    #expect(lab.money == Int64(more))
  }

  @Test("A quest that two copies of a store finished pays once, although both claims arrive after a fork")
  func lateClaimsPayOnce() throws {
    var lab = try Lab.rich()
    for number in 0..<2 as Range<UInt64> { lab.copyStore(77 + number) }
    // The original goes on with the chain, so what the copies did there is late.
    try lab.perform(0, .earn, 1)
    try lab.settle(0)
    for index in 2...3 { try lab.perform(index, .claim(key: "quest"), 30) }
    for _ in 0..<4 { for index in 0..<4 { try lab.settle(index) } }
    let claims = lab.cloud.decisions.values.filter { $0.operation.kind == .claim(key: "quest") }
    #expect(claims.count { $0.verdict == .accepted } == 1 && claims.count == 2)
    #expect(lab.money == 131)
    for index in 0..<4 {
      #expect(lab.wallet(index).total("gems") == 131 && lab.wallet(index).pending("gems") == 0)
      #expect(!lab.wallet(index).hasUnreportedOperations)
    }
  }

  @Test("A store restored from a backup goes on, and what was bought since the backup is paid once")
  func setBack() throws {
    var lab = try Lab.setBackAfterSpending()
    try lab.perform(0, .spend, 5)
    for _ in 0..<3 { for index in 0..<2 { try lab.settle(index) } }
    #expect(lab.money == 75)
    #expect(lab.wallet(0).total("gems") == 75)
    #expect(!lab.wallet(0).hasUnreportedOperations)
  }

  @Test("Money on a chain that a late duplicate of a request began returns to the player")
  func lateBeginning() throws {
    var lab = try Lab.rich()
    let old = lab.devices[0].storage
    try lab.perform(0, .spend, 20)
    try lab.settle(0)
    func setBack(_ lab: inout Lab) throws -> EngineEffect? {
      lab.setBack(to: old)
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
    #expect(lab.cloud.bank().chains[chain]?.isShown == false, "it has arrived")
    for _ in 0..<3 { for index in 0..<2 { try lab.settle(index) } }
    #expect(lab.cloud.bank().chains[chain]?.totals.isEmpty ?? true)
    let held = Set((0..<2).map { lab.wallet($0).state.chain })
    let rights = lab.cloud.bank().chains.filter { held.contains($0.key) }.values.map { $0.totals["gems"]?.rights ?? 0 }
    #expect(rights.allSatisfy { $0 > 0 } && rights.reduce(0, +) + (lab.cloud.bank().pool["gems"] ?? 0) == lab.money)
    for index in 0..<2 { #expect(lab.wallet(index).total("gems") == lab.money) }
  }

  @Test("What a removed device could spend is available to the player's others, which learn of it, and only once")
  func removedDevice() throws {
    var lab = try Lab.rich()
    let chain = lab.wallet(0).state.chain
    let before = lab.cloud.position()
    for isFirst in [true, false] {
      let hasChanged = try CloudAcceptance.retire([chain], in: &lab.cloud, using: &lab.random)
      #expect(hasChanged == isFirst)
      #expect(lab.cloud.bank().chains[chain] == nil && lab.cloud.closedChain(chain) != nil)
      #expect(lab.cloud.bank().pool == ["gems": 66])
      #expect(lab.cloud.position().seq == before.seq + 1)
    }
    #expect(lab.money == 100)
  }

  @Test("a restored store has its share of the money after one sync")
  func newChainGetsItsShare() throws {
    var lab = try Lab.setBackAfterSpending()
    try lab.settle(0)
    #expect(lab.wallet(0).state.follows != nil && lab.wallet(0).total("gems") == 80)
    #expect(lab.wallet(0).spendable("gems") == 27)
  }
}
