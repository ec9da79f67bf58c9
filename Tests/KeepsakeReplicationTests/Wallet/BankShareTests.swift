import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// Whom the bank grants the player's money, from whom it recalls it, and which chains it follows.
@Suite struct BankShareTests {
  private static let chains = (1...4 as ClosedRange<UInt64>).map { ChainID(high: 0, low: $0) }
  private var bank = Bank(BankState())
  private var cloud = MemoryContainer(epoch: 1)

  private func earn(_ amount: Int64, _ number: UInt64) -> WalletOperation {
    WalletOperation(
      id: OperationID(high: 7, low: number), kind: .earn, currency: "gems", amount: amount, reason: "test")
  }

  /// Gives the first chains these rights, and the pool the rest.
  private mutating func share(_ rights: [Int64], pool: Int64) {
    for (chain, amount) in zip(Self.chains, rights) {
      var known = BankState.Chain(head: ChainHead(emptyChain: chain), follows: nil)
      known.totals["gems", default: WalletTotals()].granted = amount
      known.statement = 1
      bank.state.chains[chain] = known
    }
    bank.state.pool = ["gems": pool]
  }

  /// Offers operations after those that the bank has of a chain, by default with its newest statement.
  private mutating func offer(
    _ operations: [WalletOperation] = [], needs: [String: Int64] = [:], statement: UInt64? = nil,
    follows: ChainID? = nil, of index: Int
  ) throws -> WalletReply {
    let known = bank.state.chains[Self.chains[index]]
    return try bank.answer(
      WalletOffer(
        chain: Self.chains[index], follows: follows, base: known?.head ?? ChainHead(emptyChain: Self.chains[index]),
        statement: statement ?? known?.statement ?? 0, operations: operations, needs: needs),
      in: &cloud)
  }

  // MARK: Shares

  @Test("money is recalled only if somebody has less than half of a share, and never what a purchase needs")
  mutating func recalls() throws {
    share([60, 20], pool: 20)
    #expect(try offer(of: 0).recalled.isEmpty)
    share([70, 16], pool: 14)
    #expect(try offer(of: 0).recalled == ["gems": 36])
    #expect(try offer(needs: ["gems": 50], of: 0).recalled == ["gems": 20])
  }

  @Test("a chain that no device has shown yet gets no share")
  mutating func unshown() throws {
    share([100], pool: 0)
    #expect(try offer(follows: Self.chains[3], of: 1).totals.isEmpty)
    #expect(try offer(of: 0).recalled.isEmpty)
  }

  // MARK: Needs

  @Test("a need keeps its place until it is void, and ends with the first offer without it")
  mutating func needs() throws {
    share([30, 30], pool: 0)
    func numbers(_ bank: Bank) -> [UInt64?] { Self.chains.prefix(2).map { bank.state.chains[$0]?.need?.number } }
    _ = try offer(needs: ["gems": 50], of: 0)
    _ = try offer(needs: ["gems": 50], of: 1)
    _ = try offer(needs: ["gems": 55], of: 0)
    #expect(numbers(bank) == [0, 1] && bank.state.chains[Self.chains[0]]?.need?.amounts == ["gems": 55])
    bank = Bank(bank.state, now: Bank.needMilliseconds)
    _ = try offer(needs: ["gems": 50], of: 0)
    #expect(numbers(bank) == [2, 1])
    _ = try offer(of: 1)
    #expect(numbers(bank) == [2, nil])
  }

  @Test("a store whose need isn't met learns which other devices hold the money, the most first")
  mutating func holders() throws {
    share([10, 20, 30], pool: 0)
    bank = Bank(bank.state, now: 5 * 3_600_000 + 7)
    let device = DeviceID(high: 0, low: 5)
    let offer = WalletOffer(chain: Self.chains[1], base: ChainHead(emptyChain: Self.chains[1]), statement: 1)
    _ = try bank.answer(offer, from: device, in: &cloud)
    let held = try self.offer(needs: ["gems": 60], of: 0).held["gems"]
    #expect(
      held == [
        WalletHolding(device: nil, amount: 30, seenMilliseconds: 0),
        WalletHolding(device: device, amount: 20, seenMilliseconds: 18_000_000),
      ])
  }

  @Test("other devices should learn of money and of a new need, but not of when a device was seen")
  mutating func concernsOthers() throws {
    share([30, 30], pool: 0)
    let before = bank.state
    var seen = before
    seen.chains[Self.chains[0]]?.seenMilliseconds = 3_600_000
    seen.chains[Self.chains[0]]?.device = DeviceID(high: 0, low: 5)
    seen.nextNeed = 9
    #expect(seen != before && !seen.concernsOthers(since: before))
    _ = try offer(needs: ["gems": 50], of: 0)
    let needed = bank.state
    #expect(needed.concernsOthers(since: before))
    bank = Bank(needed, now: 1)
    _ = try offer(needs: ["gems": 50], of: 0)
    #expect(bank.state != needed && !bank.state.concernsOthers(since: needed), "it was repeated")
    _ = try offer(of: 0)
    #expect(bank.state != needed && !bank.state.concernsOthers(since: needed), "it ended")
    _ = try offer([earn(5, 1)], of: 1)
    #expect(bank.state.concernsOthers(since: needed))
  }

  // MARK: Chains

  @Test("a bank that was set back continues after the newest statement that a store shows")
  mutating func setBack() throws {
    share([10], pool: 0)
    #expect(try offer(statement: 9, of: 0).statement == 10)
    bank.state.pool = ["gems": 5]
    #expect(try offer(statement: 8, of: 0).totals["gems"]?.rights == 10)
    #expect(try offer(statement: 9, of: 0).totals["gems"]?.rights == 15)
  }

  @Test("a chain that follows an old one closes every open chain that descends from that, also through closed ones")
  mutating func descendants() throws {
    _ = try offer([earn(100, 1)], of: 0)
    for (index, old) in [(1, 0), (2, 1)] {
      _ = try offer(follows: Self.chains[old], of: index)
      #expect(try offer(follows: Self.chains[old], of: index).totals["gems"]?.rights == 100)
      #expect(cloud.closedChain(Self.chains[old]) != nil)
    }
    _ = try offer(follows: Self.chains[0], of: 3)
    #expect(Array(bank.state.chains.keys) == [Self.chains[3]] && bank.state.closedChains == 3)
    #expect(bank.state.pool == ["gems": 100] && cloud.closedChain(Self.chains[2])?.follows == Self.chains[1])
  }

  @Test("an operation that came on another chain isn't taken for one of this chain")
  mutating func common() throws {
    _ = try offer([earn(1, 1)], of: 0)
    _ = try offer([earn(2, 2)], of: 1)
    let empty = ChainHead(emptyChain: Self.chains[1])
    let copy = WalletOffer(chain: Self.chains[1], base: empty, statement: 1, operations: [earn(1, 1), earn(3, 3)])
    #expect(try bank.answer(copy, in: &cloud).state == .closed(common: empty))
  }
}
