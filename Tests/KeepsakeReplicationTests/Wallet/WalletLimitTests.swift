import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// Offers and replies that no honest side makes, and limits that only such ones reach.
@Suite struct WalletLimitTests {
  private static func chain(_ number: UInt64) -> ChainID { ChainID(high: 0, low: number) }

  private static func operation(
    _ kind: WalletOperation.Kind, _ amount: Int64, _ number: UInt64, _ currency: String = "gems",
    group: UInt64? = nil
  ) -> WalletOperation {
    WalletOperation(
      id: OperationID(high: 7, low: number), kind: kind, currency: currency, amount: amount, reason: "test",
      group: group.map { OperationID(high: 7, low: $0) })
  }

  private static func offer(
    _ number: UInt64, _ operations: [WalletOperation] = [], late: [WalletOperation] = [], follows: UInt64? = nil,
    statement: UInt64 = 0, needs: [String: Int64] = [:]
  ) -> WalletOffer {
    WalletOffer(
      chain: chain(number), follows: follows.map(chain), base: ChainHead(emptyChain: chain(number)),
      statement: statement, operations: operations, late: late, needs: needs)
  }

  @Test("devices that need the greatest amounts while a spend waits don't stop the bank")
  func greatestNeeds() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    _ = try bank.answer(Self.offer(1, [Self.operation(.earn, 100, 1)]), in: &cloud)
    let spending = try bank.answer(Self.offer(2, late: [Self.operation(.spend, 50, 2)]), in: &cloud)
    #expect(spending.decisions.map(\.verdict) == [.waiting])
    for number in UInt64(10)..<20 {
      let reply = try bank.answer(Self.offer(number, needs: ["gems": Wallet.maximumTotal]), in: &cloud)
      #expect(reply.totals.isEmpty)
    }
    #expect(try bank.answer(Self.offer(30), in: &cloud).totals.isEmpty && bank.balance("gems") == 100)
  }

  @Test("only so many late spends wait; further ones are left undecided, so that their store offers them again")
  func waitingLimit() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    _ = try bank.answer(Self.offer(1, [Self.operation(.earn, 1 << 30, 1)]), in: &cloud)
    var verdicts: [WalletDecision.Verdict] = []
    for batch in UInt64(0)..<3 {
      let late = (0..<UInt64(Wallet.maximumBatch)).map { Self.operation(.spend, 1, 1_000 * (batch + 1) + $0) }
      verdicts += try bank.answer(Self.offer(2, late: late), in: &cloud).decisions.map(\.verdict)
    }
    #expect(verdicts.count(where: { $0 == .waiting }) == 1_000)
    #expect(verdicts.count == 1_000)
    #expect(bank.waitingSpends() == ["gems": 1_000] && Bank(bank.state).waitingSpends() == ["gems": 1_000])
    let before = bank.state.waiting
    let reply = try bank.answer(Self.offer(3), in: &cloud)
    #expect(reply.balances == ["gems": (1 << 30) - 1_000] && bank.state.waiting == before)
  }

  @Test("a chain closes the descendants of the one that it follows, and looks at each chain of a long history once")
  func longHistories() throws {
    var (bank, storage) = (Bank(BankState()), CountingStorage())
    let (lines, length): (UInt64, UInt64) = (40, 100)
    func begin(_ number: UInt64, _ follows: UInt64) throws {
      _ = try bank.answer(Self.offer(number, follows: follows), in: &storage)
    }
    // One long history, from which many lines go on; and rings of two chains.
    for number in 1...length { try begin(number, number - 1) }
    for line in 1...lines { try begin(1_000 + line, length) }
    for line in 1...lines { try begin(2_000 + line, 1_000 + line) }
    for ring in 1...lines {
      try begin(3_000 + ring, 4_000 + ring)
      try begin(4_000 + ring, 3_000 + ring)
    }
    #expect(bank.state.chains.count == Int(2 * lines))
    storage.looks = 0
    try begin(5_000, 2_001)
    #expect(storage.looks <= bank.state.closedChains + bank.state.chains.count + 2)
    #expect(bank.state.chains[Self.chain(2_001)] == nil && bank.state.chains[Self.chain(2_002)] != nil)
    #expect(bank.state.chains.count == Int(2 * lines))
    try begin(5_001, 1)
    #expect(bank.state.chains.count == Int(lines) + 1, "only the rings and the new one are open")
  }

  @Test("all ancestors of a chain are looked at together, and only for a bank that has asked for proofs")
  func ancestors() throws {
    var (bank, storage) = (Bank(BankState()), CountingStorage())
    for number: UInt64 in 1...200 { _ = try bank.answer(Self.offer(number, follows: number - 1), in: &storage) }
    for number: UInt64 in 501...600 { _ = try bank.answer(Self.offer(number), in: &storage) }
    var next = Self.offer(1_000, follows: 200)
    next.ancestors = (0..<15).map { Self.chain(199 - $0) } + [Self.chain(501)]
    _ = try bank.answer(next, in: &storage)
    #expect(bank.state.chains[Self.chain(501)] != nil && bank.state.chains[Self.chain(200)] == nil)
    (next.chain, next.base, next.follows) = (
      Self.chain(1_001), ChainHead(emptyChain: Self.chain(1_001)), Self.chain(1_000)
    )
    next.proving = 0
    storage.looks = 0
    _ = try bank.answer(next, in: &storage)
    #expect(storage.looks <= bank.state.closedChains + bank.state.chains.count + 2)
    #expect(bank.state.chains[Self.chain(501)] == nil && bank.state.chains[Self.chain(502)] != nil)
  }

  @Test("a voucher that the player has no room for costs nothing for its claims")
  func unpayableVouchers() throws {
    let (old, new) = (ContainerID(high: 1, low: 1), ContainerID(high: 2, low: 2))
    let keys = [Data("secret".utf8)]
    let rules = BankRules(seal: BankSeal(bank: new, keys: keys))
    var (bank, storage) = (Bank(BankState(), rules: rules), CountingStorage())
    for number in 0..<Wallet.maximumCurrencies { bank.state.pool["c\(number)"] = number == 1 ? Wallet.maximumTotal : 1 }
    let claims = (0..<100).map { WalletVoucher.Claim(key: "\($0)", currency: "c0", amount: 1) }
    func shown(_ currency: String, _ number: UInt64) -> WalletOffer {
      let voucher = WalletVoucher(
        bank: old, chain: Self.chain(number), receiver: new, amounts: [currency: 5], claims: claims)
      var offer = Self.offer(1)
      offer.vouchers = [BankSeal(bank: old, keys: keys).signed(voucher)]
      return offer
    }
    for (number, currency): (UInt64, String) in [(11, "c1"), (12, "another")] {
      storage.looks = 0
      let reply = try bank.answer(shown(currency, number), in: &storage)
      #expect(reply.takenVouchers.isEmpty && reply.declinedVouchers.isEmpty && storage.looks <= 1)
    }
    #expect(try bank.answer(shown("c0", 13), in: &storage).takenVouchers == [Self.chain(13)])
    #expect(storage.looks >= 100)
  }

  @Test("a player has so many currencies and no more; those that are there go on, and the device says so first")
  func currencies() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    let most = UInt64(Wallet.maximumBatch)
    let earned = (0..<most).map { Self.operation(.earn, 5, 100 + $0, "c\($0)") }
    _ = try bank.answer(Self.offer(1, earned), in: &cloud)
    #expect(bank.currencies.count == 256 && bank.balance("c0") == 5 && bank.balance("c499") == 0)
    #expect(cloud.decision(on: earned[499].id)?.verdict == .declined)
    let late = [
      Self.operation(.earn, 5, 1, "c0"), Self.operation(.earn, 5, 2, "new"),
      Self.operation(.claim(key: "a"), 5, 3, "newer"), Self.operation(.claim(key: "b"), 5, 4, "c1"),
    ]
    let verdicts = try bank.answer(Self.offer(2, late: late), in: &cloud).decisions.map(\.verdict)
    #expect(verdicts == [.accepted, .declined, .declined, .accepted] && bank.currencies.count == 256)

    var wallet = Wallet(WalletState(chain: Self.chain(9)))
    for operation in earned.prefix(256) { try wallet.perform(operation) }
    #expect(throws: WalletError.self) { try wallet.perform(earned[256]) }
    #expect(try wallet.perform(Self.operation(.earn, 5, 1, "c0")) && wallet.state.operations.count == 257)
  }

  @Test("a player has so many open chains and no more; a new one is possible once one is closed")
  func openChains() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    _ = try bank.answer(Self.offer(1, [Self.operation(.earn, 5, 1)]), in: &cloud)
    for number in UInt64(2)...1_000 {
      bank.state.chains[Self.chain(number)] = BankState.Chain(
        head: ChainHead(emptyChain: Self.chain(number)), follows: nil)
    }
    #expect(throws: ExchangeError.tooMany("wallet chains")) { try bank.answer(Self.offer(2_000), in: &cloud) }
    try bank.close([Self.chain(1)], in: &cloud)
    #expect(try bank.answer(Self.offer(2_000), in: &cloud).balances == ["gems": 5])
  }

  @Test("other devices learn of a need, and of one that has grown or has another currency, but not of a repeated one")
  func growingNeeds() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    _ = try bank.answer(
      Self.offer(1, [Self.operation(.earn, 100, 1), Self.operation(.earn, 100, 2, "keys")]), in: &cloud)
    _ = try bank.answer(Self.offer(2), in: &cloud)
    func isNews(_ needs: [String: Int64]) throws -> Bool {
      let before = bank.state
      _ = try bank.answer(Self.offer(2, statement: 1, needs: needs), in: &cloud)
      return bank.state.concernsOthers(since: before)
    }
    #expect(try isNews(["gems": 50]) && !isNews(["gems": 50]))
    #expect(try isNews(["gems": 60]) && !isNews(["gems": 55]))
    #expect(try isNews(["keys": 10]) && !isNews(["keys": 10]))
    #expect(try !isNews([:]) && isNews(["keys": 10]))
  }

  @Test("nothing of a group counts if one of its operations has the id of another one, or was declined before")
  func groupsOfKnownOperations() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    _ = try bank.answer(Self.offer(1, [Self.operation(.earn, 100, 1)]), in: &cloud)
    let declined = try bank.answer(Self.offer(2, late: [Self.operation(.spend, 500, 2)]), in: &cloud)
    #expect(declined.decisions.map(\.verdict) == [.declined])
    func group(_ spend: WalletOperation, _ number: UInt64) -> [WalletOperation] {
      var spend = spend
      spend.group = spend.id
      var earning = Self.operation(.earn, 10, number, "crowns")
      earning.group = spend.id
      return [spend, earning]
    }
    let reused = try bank.answer(Self.offer(3, late: group(Self.operation(.spend, 50, 1), 3)), in: &cloud)
    #expect(reused.decisions.map(\.verdict) == [.idReused, .declined])
    let repeated = try bank.answer(
      Self.offer(
        4,
        [Self.operation(.earn, 500, 4)] + group(Self.operation(.spend, 500, 2), 5)
          + group(Self.operation(.earn, 500, 4), 6)), in: &cloud)
    #expect(repeated.decisions.map(\.verdict) == [.declined, .declined])
    #expect(bank.balance("gems") == 600 && bank.balance("crowns") == 10, "one of an accepted operation counts")
  }

  @Test("a device that joins another player shows that player's goods, and none of those from before")
  func goodsOfAnotherPlayer() throws {
    var (device, random) = (SimulatedDevice(), SeededGenerator(seed: 1))
    try DeviceCommit.opened(in: &device, using: &random)
    device.connect()
    device.setGoods(PlayerGoods(number: 3, counts: ["hat": 1]))
    try DeviceCommit.moved(in: &device, using: &random)
    #expect(device.goods() == PlayerGoods())
  }

  @Test("a device asks about whole groups that wait, so that a bank that has lost them gets them as groups")
  func waitingGroups() throws {
    var state = WalletState(chain: Self.chain(1))
    var waiting = (0..<UInt64(Wallet.maximumBatch - 1)).map { Self.operation(.spend, 1, 1_000 + $0) }
    waiting += [Self.operation(.spend, 1, 1, group: 1), Self.operation(.earn, 1, 2, "crowns", group: 1)]
    state.waiting = OperationList(waiting)
    var wallet = Wallet(state)
    let asked = wallet.offer().waiting
    #expect(asked.count == Wallet.maximumBatch - 1)
    var reply = WalletReply(chain: Self.chain(1), state: .accepted(state.head), statement: 1)
    reply.decisions = asked.map { WalletDecision(id: $0, verdict: .unknown) }
    var random = SeededGenerator(seed: 1)
    _ = wallet.receive(reply, using: &random)
    #expect(wallet.state.late.count == asked.count && wallet.offer().waiting.count == 2)
  }

  @Test("a device keeps of a reply no more than it asked for, and no number that a bank would refuse")
  func boundedReplies() throws {
    var wallet = Wallet(WalletState(chain: Self.chain(1)))
    wallet.need(10, of: "gems")
    var reply = WalletReply(chain: Self.chain(1), state: .accepted(wallet.state.head), statement: 1)
    let holdings = (0..<100).map { WalletHolding(device: nil, amount: $0, seenMilliseconds: .min) }
    reply.held = ["gems": holdings, "crowns": holdings]
    var random = SeededGenerator(seed: 1)
    _ = wallet.receive(reply, using: &random)
    #expect(wallet.state.held == ["gems": Array(holdings.prefix(64))])
    var goods = PlayerGoods(number: 1, counts: ["hat": 1])
    #expect(!goods.take(WalletGoods(after: 0, number: .max, counts: ["cap": 1])) && goods.counts == ["hat": 1])
  }
}

/// Counts how often the bank looks for a closed chain or a claim.
private struct CountingStorage: BankStorage {
  private var cloud = MemoryContainer(epoch: 1)
  private final class Counter { var looks = 0 }
  private let counter = Counter()
  var looks: Int {
    get { counter.looks }
    nonmutating set { counter.looks = newValue }
  }

  func decision(on operation: OperationID) -> DecidedOperation? { cloud.decision(on: operation) }
  mutating func recordDecision(_ verdict: WalletDecision.Verdict, on operation: WalletOperation, of chain: ChainID) {
    cloud.recordDecision(verdict, on: operation, of: chain)
  }
  func isClaimPaid(_ key: String) -> Bool {
    counter.looks += 1
    return cloud.isClaimPaid(key)
  }
  mutating func markClaimPaid(_ key: String, _ payment: ClaimPayment?) { cloud.markClaimPaid(key, payment) }
  func payments(limit: Int) -> [WalletVoucher.Claim] { cloud.payments(limit: limit) }
  func isVoucherPaid(_ chain: ChainID, of bank: ContainerID) -> Bool { cloud.isVoucherPaid(chain, of: bank) }
  mutating func markVoucherPaid(_ chain: ChainID, of bank: ContainerID) { cloud.markVoucherPaid(chain, of: bank) }
  func vouchedClaim(_ key: String, by bank: ContainerID) -> Int64? {
    counter.looks += 1
    return cloud.vouchedClaim(key, by: bank)
  }
  mutating func setVouchedClaim(_ key: String, by bank: ContainerID, left: Int64) {
    cloud.setVouchedClaim(key, by: bank, left: left)
  }
  func decidedOperation(_ id: OperationID) -> WalletOperation? { cloud.decidedOperation(id) }
  func order(_ id: OperationID) -> BankOrder? { cloud.order(id) }
  func orders(after number: UInt64, limit: Int) -> [NumberedOrder] { cloud.orders(after: number, limit: limit) }
  mutating func recordOrder(_ order: NumberedOrder) { cloud.recordOrder(order) }
  func goods(changedAfter number: UInt64, limit: Int) -> [NumberedGood] {
    cloud.goods(changedAfter: number, limit: limit)
  }
  mutating func addGood(_ name: String, _ count: Int64, number: UInt64) {
    cloud.addGood(name, count, number: number)
  }
  func closedChain(_ id: ChainID) -> BankState.ClosedChain? {
    counter.looks += 1
    return cloud.closedChain(id)
  }
  mutating func recordClosedChain(_ chain: BankState.ClosedChain, _ id: ChainID) { cloud.recordClosedChain(chain, id) }
  func voucher(of chain: ChainID) -> WalletVoucher? { cloud.voucher(of: chain) }
  mutating func recordVoucher(_ voucher: WalletVoucher) { cloud.recordVoucher(voucher) }
}
