import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// What the bank charges later than it was made, and what it declines.
@Suite struct BankLateTests {
  private static let (rich, poor) = (ChainID(high: 0, low: 1), ChainID(high: 0, low: 2))
  private var bank = Bank(BankState())
  private var cloud = MemoryContainer(epoch: 1)

  private func operation(_ kind: WalletOperation.Kind, _ amount: Int64, _ number: UInt64, _ currency: String = "gems")
    -> WalletOperation
  {
    WalletOperation(
      id: OperationID(high: 7, low: number), kind: kind, currency: currency, amount: amount, reason: "test")
  }

  /// Offers operations after those that the bank has of the chain, with its newest statement.
  private mutating func offer(
    _ operations: [WalletOperation] = [], late: [WalletOperation] = [], waiting: [OperationID] = [],
    needs: [String: Int64] = [:], of chain: ChainID
  ) throws -> WalletReply {
    let known = bank.state.chains[chain]
    return try bank.answer(
      WalletOffer(
        chain: chain, base: known?.head ?? ChainHead(emptyChain: chain), statement: known?.statement ?? 0,
        operations: operations, late: late, waiting: waiting, needs: needs),
      in: &cloud)
  }

  @Test("a spend that waits isn't overtaken by a smaller one, and nobody gets what it waits for")
  mutating func queue() throws {
    _ = try offer([operation(.earn, 100, 1)], of: Self.rich)
    let late = [operation(.spend, 70, 2), operation(.spend, 20, 3)]
    #expect(try offer(late: late, of: Self.poor).decisions.map(\.verdict) == [.waiting, .waiting])
    _ = try offer([operation(.giveBack, 30, 4)], of: Self.rich)
    #expect(late.allSatisfy { cloud.decision(on: $0.id)?.verdict == .waiting } && bank.state.waiting.count == 2)
    #expect(try offer(late: [operation(.spend, 5, 6)], of: Self.poor).decisions.map(\.verdict) == [.waiting])
    let asking = try offer(waiting: late.map(\.id), of: Self.poor)
    #expect((asking.totals["gems"]?.rights ?? 0) == 0 && bank.state.pool == ["gems": 30])
    #expect(asking.decisions.isEmpty, "they still wait")
    _ = try offer([operation(.giveBack, 65, 5)], of: Self.rich)
    #expect(bank.state.waiting.isEmpty && bank.balance("gems") == 5)
    let unknown = OperationID(high: 7, low: 99)
    let told = try offer(waiting: late.map(\.id) + [unknown], of: Self.poor)
    #expect(told.decisions.map(\.verdict) == [.accepted, .accepted, .unknown] && cloud.decidedTwice.isEmpty)
  }

  @Test("a late spend isn't declined if what waits, and can be charged now, brings what covers it")
  mutating func coveredByWaiting() throws {
    _ = try offer([operation(.earn, 10, 1), operation(.earn, 40, 2, "keys")], of: Self.rich)
    var group = [operation(.spend, 40, 3, "keys"), operation(.earn, 30, 4)]
    for index in group.indices { group[index].group = group[0].id }
    #expect(try offer(late: group, of: Self.poor).decisions.map(\.verdict) == [.waiting, .waiting])
    let reply = try offer(
      [operation(.giveBack, 40, 5, "keys")], late: [operation(.spend, 35, 6), operation(.spend, 90, 7)], of: Self.rich)
    #expect(reply.decisions.map(\.verdict) == [.waiting, .declined])
    #expect(group.allSatisfy { cloud.decision(on: $0.id)?.verdict == .accepted } && bank.balance("gems") == 40)
  }

  @Test("a spend that waits is charged when the device that held the money is removed")
  mutating func removal() throws {
    _ = try offer([operation(.earn, 100, 1)], of: Self.rich)
    let late = operation(.spend, 70, 2)
    _ = try offer(late: [late], of: Self.poor)
    try bank.close([Self.rich], in: &cloud)
    #expect(cloud.decision(on: late.id)?.verdict == .accepted && bank.state.waiting.isEmpty)
    #expect(bank.state.pool == ["gems": 30] && bank.state.closedChains == 1)
  }

  @Test("what a spend waits for is recalled also from a device that lacks some for a purchase, but not if it has all")
  mutating func recalled() throws {
    _ = try offer([operation(.earn, 100, 1)], of: Self.rich)
    _ = try offer(late: [operation(.spend, 70, 2)], of: Self.poor)
    #expect(try offer(needs: ["gems": 101], of: Self.rich).recalled == ["gems": 70])
    #expect(try offer(needs: ["gems": 100], of: Self.rich).recalled.isEmpty)
    #expect(try offer(needs: ["gems": 40], of: Self.rich).recalled == ["gems": 60])
  }

  @Test("operations of one group count together or not at all, and the store is told that they don't")
  mutating func groups() throws {
    _ = try offer([operation(.earn, 10, 1)], of: Self.rich)
    var group = [operation(.spend, 15, 2), operation(.earn, 5, 3, "crowns")]
    for index in group.indices { group[index].group = group[0].id }
    #expect(try offer(group, of: Self.rich).decisions.map(\.verdict) == [.declined, .declined])
    #expect(bank.balance("gems") == 10 && bank.balance("crowns") == 0)
  }

  @Test("the store is told that a claim was paid, but not that an earning counts")
  mutating func claims() throws {
    let claim = operation(.claim(key: "gift"), 30, 1)
    let reply = try offer([claim, operation(.earn, 5, 2)], of: Self.rich)
    #expect(reply.decisions == [WalletDecision(id: claim.id, verdict: .accepted)])
    #expect(reply.totals["gems"]?.rights == 35)
  }

  @Test("a chain can't return more than it may spend")
  mutating func returns() throws {
    let reply = try offer([operation(.earn, 10, 1), operation(.giveBack, 11, 2)], of: Self.rich)
    #expect(reply.decisions.map(\.verdict) == [.declined] && reply.totals["gems"]?.rights == 10)
    #expect((bank.state.pool["gems"] ?? 0) == 0 && bank.balance("gems") == 10)
  }

  @Test("what would raise the player's money above the maximum is declined, however it comes")
  mutating func limit() throws {
    bank.state.pool = ["gems": Wallet.maximumTotal - 5]
    let earned = [operation(.earn, 10, 1), operation(.earn, 5, 2), operation(.claim(key: "gift"), 1, 3)]
    let reply = try offer(earned, late: [operation(.earn, 1, 4)], of: Self.rich)
    #expect(reply.decisions.map(\.id) == [earned[0].id, earned[2].id, OperationID(high: 7, low: 4)])
    #expect(reply.decisions.allSatisfy { $0.verdict == .declined } && !cloud.isClaimPaid("gift"))
    #expect(bank.balance("gems") == Wallet.maximumTotal)
  }
}
