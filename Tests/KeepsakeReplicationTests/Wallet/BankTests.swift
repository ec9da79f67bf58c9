import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// The bank alone: what it makes of an offer that is repeated, too early, or of a closed chain.
@Suite struct BankTests {
  private static let chain = ChainID(high: 0, low: 1)

  private func operation(_ kind: WalletOperation.Kind, _ amount: Int64, _ number: UInt64) -> WalletOperation {
    WalletOperation(id: OperationID(high: 7, low: number), kind: kind, currency: "gems", amount: amount, reason: "test")
  }

  private func offer(
    _ operations: [WalletOperation] = [], late: [WalletOperation] = [], follows: ChainID? = nil, chain: ChainID = chain,
    statement: UInt64 = 0
  ) -> WalletOffer {
    WalletOffer(
      chain: chain, follows: follows, base: ChainHead(emptyChain: chain), statement: statement, operations: operations,
      late: late)
  }

  @Test("an offer that is repeated because its response was lost counts once, and gets the same response")
  func repeatedOffer() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    let offer = offer(
      [operation(.earn, 10, 1), operation(.spend, 4, 2)],
      late: [operation(.earn, 7, 3), operation(.claim(key: "quest"), 30, 4)], follows: ChainID(high: 0, low: 9),
      statement: 1)
    let first = try bank.answer(offer, in: &cloud)
    let second = try bank.answer(offer, in: &cloud)
    #expect(first == second && bank.balance("gems") == 43)
    #expect(first.decisions.map(\.verdict) == [.accepted, .accepted] && cloud.decidedTwice.isEmpty)
  }

  @Test("nothing counts on a chain that follows another one until a device shows the first statement on it")
  func beginning() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    _ = try bank.answer(offer([operation(.earn, 10, 1)]), in: &cloud)
    var next = offer([operation(.earn, 5, 2)], follows: Self.chain, chain: ChainID(high: 0, low: 2))
    let begun = try bank.answer(next, in: &cloud)
    #expect(begun.state == .accepted(next.base) && begun.totals.isEmpty && begun.statement == 1)
    #expect(bank.balance("gems") == 10 && bank.state.pool == ["gems": 10])
    #expect(try bank.answer(next, in: &cloud) == begun, "a copy of the request shows nothing, either")
    next.statement = 1
    let accepted = try bank.answer(next, in: &cloud)
    #expect(accepted.totals["gems"]?.rights == 15 && bank.balance("gems") == 15 && accepted.statement == 2)
  }

  @Test("rights are granted to a store that shows the newest statement or the one before it, and to no other")
  func statements() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    var head = ChainHead(emptyChain: Self.chain)
    /// Another 10 gems come into the pool; the store shows `statement`. Returns the rights that it has then.
    func rights(showing statement: UInt64, _ number: UInt64) throws -> Int64? {
      bank.state.pool["gems", default: 0] += 10
      let reply = try bank.answer(
        WalletOffer(chain: Self.chain, base: head, statement: statement, late: [operation(.earn, 1, number)]),
        in: &cloud)
      if case .accepted(let next) = reply.state { head = next }
      #expect(reply.statement == bank.state.chains[Self.chain]?.statement)
      return reply.totals["gems"]?.rights
    }
    #expect(try rights(showing: 0, 1) == 11)
    #expect(try rights(showing: 0, 2) == 22, "the response may have been lost")
    #expect(try rights(showing: 0, 3) == 22)
    #expect(try rights(showing: 1, 4) == 44)
    #expect(try rights(showing: 3, 5) == 55)
  }

  @Test("a closed chain takes no operation any more, and its money goes to the player's other devices")
  func closedChain() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    let earned = operation(.earn, 10, 1)
    _ = try bank.answer(offer([earned]), in: &cloud)
    try bank.close([Self.chain], in: &cloud)
    let more = offer([earned, operation(.earn, 5, 2)])
    let head = more.base.appending(earned)
    #expect(try bank.answer(more, in: &cloud).state == .closed(common: head))
    #expect(bank.balance("gems") == 10 && cloud.decision(on: operation(.earn, 5, 2).id) == nil)
    let other = try bank.answer(offer(chain: ChainID(high: 0, low: 2)), in: &cloud)
    #expect(other.totals["gems"]?.rights == 10)
  }

  @Test(
    "the bank says from where a chain is to be offered: what it has beyond the offer, and how far both are the same")
  func positions() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    let operations = (1...4).map { operation(.earn, 1, $0) }
    var heads = [ChainHead(emptyChain: Self.chain)]
    for operation in operations { heads.append(heads[heads.count - 1].appending(operation)) }
    _ = try bank.answer(offer(operations), in: &cloud)
    func state(after base: Int, _ offered: [WalletOperation]) throws -> WalletReply.State {
      try bank.answer(WalletOffer(chain: Self.chain, base: heads[base], operations: offered), in: &cloud).state
    }
    #expect(try state(after: 0, Array(operations[..<2])) == .from(head: heads[4], common: heads[2]))
    #expect(try state(after: 2, Array(operations[2...])) == .accepted(heads[4]))
    #expect(try state(after: 0, [operations[0], operation(.earn, 9, 9)]) == .closed(common: heads[1]))
    // As many as the bank has, but not the same.
    #expect(try state(after: 0, operations[..<3] + [operation(.earn, 9, 9)]) == .closed(common: heads[3]))
    // A bank that was set back.
    let longer = heads[4].appending(operation(.earn, 1, 5))
    let ahead = WalletOffer(chain: Self.chain, base: longer, operations: [operation(.earn, 1, 6)])
    #expect(try bank.answer(ahead, in: &cloud).state == .from(head: heads[4], common: nil))
    let unknown = WalletOffer(chain: ChainID(high: 0, low: 5), base: longer)
    #expect(
      try bank.answer(unknown, in: &cloud).state
        == .from(head: ChainHead(emptyChain: ChainID(high: 0, low: 5)), common: nil))
    #expect(bank.balance("gems") == 4 && bank.state.chains.count == 1)
  }

  @Test("the bank grants no more than it holds, whatever a device needs")
  func grants() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    _ = try bank.answer(offer([operation(.earn, 100, 1)]), in: &cloud)
    var poor = offer(chain: ChainID(high: 0, low: 2))
    poor.needs = ["gems": 80]
    let reply = try bank.answer(poor, in: &cloud)
    #expect((reply.totals["gems"]?.rights ?? 0) == 0 && (bank.state.pool["gems"] ?? 0) == 0)
    #expect(bank.balance("gems") == 100 && reply.held["gems"]?.map(\.amount) == [100])
  }

  @Test("late spends are charged in their order: none before one that waits, and none that the rest doesn't cover")
  func order() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    let other = ChainID(high: 0, low: 3)
    _ = try bank.answer(offer([operation(.earn, 100, 1)]), in: &cloud)
    let late = [operation(.spend, 70, 2), operation(.spend, 40, 3), operation(.spend, 20, 4)]
    let reply = try bank.answer(offer(late: late, chain: other), in: &cloud)
    #expect(reply.decisions.map(\.verdict) == [.waiting, .declined, .waiting])
    #expect(reply.balances == ["gems": 10])
    // The first chain has everything: it is asked for what waits, whatever its share, and for the others' shares.
    let first = WalletOffer(chain: Self.chain, base: bank.state.chains[Self.chain]?.head ?? offer().base, statement: 1)
    #expect(try bank.answer(first, in: &cloud).recalled == ["gems": 96])
    var returning = first
    returning.operations = [operation(.giveBack, 75, 5)]
    _ = try bank.answer(returning, in: &cloud)
    #expect(cloud.decision(on: late[0].id)?.verdict == .accepted && cloud.decision(on: late[2].id)?.verdict == .waiting)
    // It spends the rest by itself: nothing is left for the last one.
    var spending = returning
    spending.base = returning.base.appending(returning.operations[0])
    spending.operations = [operation(.spend, 25, 6)]
    _ = try bank.answer(spending, in: &cloud)
    #expect(cloud.decision(on: late[2].id)?.verdict == .declined && bank.balance("gems") == 5)
    #expect(cloud.decidedTwice.isEmpty && bank.state.waiting.isEmpty)
    let asking = WalletOffer(chain: other, base: ChainHead(emptyChain: other), waiting: late.map(\.id))
    #expect(try bank.answer(asking, in: &cloud).decisions.map(\.verdict) == [.accepted, .declined, .declined])
  }

  @Test("a chain that wasn't offered for a week gets no share, but keeps what it has")
  func activity() throws {
    var (state, cloud) = (BankState(), MemoryContainer(epoch: 1))
    let other = ChainID(high: 0, low: 3)
    func answer(_ offer: WalletOffer, day: Int64) throws -> WalletReply {
      var bank = Bank(state, now: day * 86_400_000)
      defer { state = bank.state }
      return try bank.answer(offer, in: &cloud)
    }
    let earned = offer([operation(.earn, 100, 1)])
    _ = try answer(earned, day: 1)
    _ = try answer(offer(chain: other), day: 1)
    var back = WalletOffer(chain: Self.chain, base: state.chains[Self.chain]?.head ?? earned.base, statement: 1)
    #expect(try answer(back, day: 1).recalled == ["gems": 66])
    back.operations = [operation(.giveBack, 66, 2)]
    _ = try answer(back, day: 1)
    let second = WalletOffer(chain: other, base: ChainHead(emptyChain: other), statement: 1)
    #expect(try answer(second, day: 1).totals["gems"]?.rights == 34)
    let newest = WalletOffer(chain: other, base: second.base, statement: state.chains[other]?.statement ?? 0)
    #expect(try answer(newest, day: 7).totals["gems"]?.rights == 34)
    #expect(try answer(newest, day: 9).totals["gems"]?.rights == 66, "it is alone this week")
    #expect(state.chains[Self.chain]?.totals["gems"]?.rights == 34)
  }
}
