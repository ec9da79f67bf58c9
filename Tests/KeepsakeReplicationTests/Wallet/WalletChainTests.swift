import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// What a store's wallet keeps when the bank makes it continue with a new chain, or asks it for rights.
@Suite struct WalletChainTests {
  private var random = SeededGenerator(seed: 8)

  private mutating func operation(_ kind: WalletOperation.Kind, _ amount: Int64) -> WalletOperation {
    WalletOperation(id: OperationID(using: &random), kind: kind, currency: "gems", amount: amount, reason: "test")
  }

  /// Returns the bank's reply that it has all operations, and that the chain was granted `granted`.
  private func accepted(
    _ wallet: Wallet, granted: Int64, spent: Int64 = 0, recalled: Int64? = nil, decisions: [WalletDecision] = []
  ) -> WalletReply {
    var totals = WalletTotals()
    (totals.granted, totals.spent) = (granted, spent)
    return WalletReply(
      chain: wallet.state.chain, state: .accepted(wallet.state.head), statement: wallet.state.statement + 1,
      totals: ["gems": totals],
      balances: ["gems": granted - spent], recalled: recalled.map { ["gems": $0] } ?? [:], decisions: decisions)
  }

  /// The ways in which the bank ends a chain, whose last known head is `common`.
  private static let endings: [@Sendable (_ common: ChainHead) -> WalletReply.State] = [
    { .closed(common: $0) }, { .from(head: ChainHead(count: 0, hash: $0.hash), common: nil) },
    { .from(head: ChainHead(count: $0.count + 9, hash: $0.hash), common: $0) },
  ]

  @Test("a wallet that continues with a new chain forgets no claim, balance or need of the old one")
  mutating func newChain() throws {
    for ending in Self.endings {
      var wallet = Wallet(WalletState(chain: ChainID(using: &random)))
      _ = wallet.receive(accepted(wallet, granted: 100), using: &random)
      let (bought, claimed) = (operation(.spend, 10), operation(.claim(key: "daily"), 5))
      for operation in [bought, claimed] { try wallet.perform(operation) }
      let decision = WalletDecision(id: claimed.id, verdict: .accepted)
      _ = wallet.receive(accepted(wallet, granted: 105, spent: 10, decisions: [decision]), using: &random)
      wallet.need(70, of: "gems")
      try wallet.perform(operation(.earn, 3))
      let before = wallet

      let reply = WalletReply(chain: before.state.chain, state: ending(before.state.acknowledged))
      #expect(wallet.receive(reply, using: &random).hasMore)
      #expect(wallet.state.follows == before.state.chain && wallet.state.late.map(\.amount) == [3])
      #expect(wallet.total("gems") == 98 && before.total("gems") == 98)
      #expect(wallet.offer().needs == ["gems": 70])
    }
  }

  @Test("a wallet returns what the bank recalls and it has, except what a purchase needs and is all there")
  mutating func recalls() {
    for (asked, need, left) in [
      (20, 0, 80), (100, 0, 0), (130, 0, 0), (100, 30, 30), (100, 100, 100), (100, 101, 0), (20, 101, 80),
    ] as [(Int64, Int64, Int64)] {
      var wallet = Wallet(WalletState(chain: ChainID(using: &random)))
      if need > 0 { wallet.need(need, of: "gems") }
      _ = wallet.receive(accepted(wallet, granted: 100, recalled: asked), using: &random)
      #expect(wallet.spendable("gems") == left && wallet.total("gems") == 100, "\(asked)")
    }
  }

  @Test("a wallet offers again what a bank that was set back has lost, and continues with a new chain if it can't")
  mutating func lostByBank() throws {
    for isKept in [true, false] {
      var wallet = Wallet(WalletState(chain: ChainID(using: &random)))
      let made = [operation(.earn, 10), operation(.earn, 20), operation(.earn, 30)]
      try wallet.perform(made[0])
      let old = wallet.state.head
      try wallet.perform(made[1])
      _ = wallet.receive(accepted(wallet, granted: 30), using: &random)
      try wallet.perform(made[2])
      let chain = wallet.state.chain
      let change = wallet.receive(
        WalletReply(chain: chain, state: .from(head: old, common: nil)), using: &random,
        acknowledged: { isKept && $0 == old ? .kept([made[1]]) : .notKept }, settled: { _ in [] })
      #expect(change.hasMore && (wallet.state.chain == chain) == isKept)
      let offer = wallet.offer()
      #expect(offer.operations == (isKept ? Array(made[1...]) : []) && offer.late == (isKept ? [] : [made[2]]))
      #expect(isKept ? offer.base == old : offer.follows == chain)
    }
  }

  @Test("operations that were performed together are offered together, and a batch ends between such groups")
  mutating func wholeGroups() throws {
    var wallet = Wallet(WalletState(chain: ChainID(using: &random)))
    var sizes: [Int] = []
    for size in [1, 3, 2, 1, 4] {
      try wallet.perform((0..<size).map { _ in operation(.earn, 1) })
      sizes.append(size)
    }
    #expect(wallet.state.operations.units.map(\.count) == sizes)
    let batches = (1...12).map { wallet.state.operations.wholeUnits(upTo: $0).count }
    #expect(batches == [1, 1, 1, 4, 4, 6, 7, 7, 7, 7, 11, 11])
    let group = Array(wallet.state.operations[1..<4])
    #expect(group.allSatisfy { $0.group == group[0].id } && group.wholeUnits(upTo: 1) == group)
    let tooMany = (0...Wallet.maximumGroup).map { _ in operation(.earn, 1) }
    #expect(throws: WalletError.tooMany(tooMany.count)) { try wallet.perform(tooMany) }
  }

  @Test("of operations that are performed together none is, if one can't be")
  mutating func groupsAreWhole() throws {
    var wallet = Wallet(WalletState(chain: ChainID(using: &random)))
    let before = wallet
    #expect(throws: WalletError.insufficientRights(currency: "gems", spendable: 10, balance: 10)) {
      try wallet.perform([operation(.earn, 10), operation(.spend, 11)])
    }
    #expect(wallet == before)
    try wallet.perform([operation(.earn, 10), operation(.spend, 10)])
    #expect(wallet.total("gems") == 0 && wallet.state.operations.count == 2)
  }
}

/// The head of a chain stands for all its operations.
@Suite struct ChainHeadTests {
  @Test("two chains have the same head only if their operations are equal in every field")
  func fields() {
    let empty = ChainHead(emptyChain: ChainID(high: 0, low: 1))
    let operation = WalletOperation(
      id: OperationID(high: 0, low: 2), kind: .earn, currency: "gems", amount: 3, reason: "quest", goods: ["hat"],
      madeAtMilliseconds: 4)
    func changed(_ change: (inout WalletOperation) -> Void) -> ChainHead {
      var other = operation
      change(&other)
      return empty.appending(other)
    }
    let heads = [
      empty, ChainHead(emptyChain: ChainID(high: 0, low: 2)), empty.appending(operation),
      changed { $0.id = OperationID(high: 2, low: 0) }, changed { $0.kind = .spend }, changed { $0.kind = .giveBack },
      changed { $0.kind = .claim(key: "a") }, changed { $0.kind = .claim(key: "b") }, changed { $0.currency = "keys" },
      changed { $0.amount = 30 }, changed { $0.reason = "quests" }, changed { $0.goods = ["cap"] },
      changed { $0.goods = [] }, changed { $0.madeAtMilliseconds = 5 },
      changed { $0.group = OperationID(high: 0, low: 2) }, changed { $0.group = OperationID(high: 0, low: 3) },
      changed { $0.kind = .convert(to: "a", received: 1) }, changed { $0.kind = .convert(to: "b", received: 1) },
      changed { $0.kind = .convert(to: "a", received: 2) },
      changed { ($0.currency, $0.reason) = ("gem", "squest") },
    ]
    #expect(Set(heads.map(\.hash)).count == heads.count)
    #expect(heads.dropFirst(2).allSatisfy { $0.count == 1 } && empty.appending(operation) == heads[2])
  }
}
