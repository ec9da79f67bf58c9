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
      chain: wallet.state.chain, state: .accepted(wallet.state.head), totals: ["gems": totals],
      balances: ["gems": granted - spent], recalled: recalled.map { ["gems": $0] } ?? [:], decisions: decisions)
  }

  /// The ways in which the bank ends a chain, whose last known head is `common`.
  private static let endings: [@Sendable (_ common: ChainHead) -> WalletReply.State] = [
    { .fenced($0) }, { .behind($0) },
    { .fork(head: ChainHead(count: $0.count + 9, hash: $0.hash), common: $0) },
  ]

  @Test("a wallet that continues with a new chain forgets no purchase, claim, balance or wanted level of the old one")
  mutating func newChain() throws {
    for ending in Self.endings {
      var wallet = Wallet(WalletState(chain: ChainID(using: &random)))
      _ = wallet.receive(accepted(wallet, granted: 100), using: &random)
      let (bought, claimed) = (operation(.spend, 10), operation(.claim(key: "daily"), 5))
      for operation in [bought, claimed] { try wallet.perform(operation) }
      let decision = WalletDecision(id: claimed.id, verdict: .accepted)
      _ = wallet.receive(accepted(wallet, granted: 105, spent: 10, decisions: [decision]), using: &random)
      wallet.want(70, of: "gems")
      try wallet.perform(operation(.earn, 3))
      let before = wallet

      let reply = WalletReply(chain: before.state.chain, state: ending(before.state.acknowledged))
      #expect(wallet.receive(reply, using: &random).hasMore)
      #expect(wallet.state.follows == before.state.chain && wallet.state.late.map(\.amount) == [3])
      #expect(wallet.total("gems") == 98 && before.total("gems") == 98)
      #expect(wallet.offer.wanted == ["gems": 70])
      // The bank has both. Performed again here, the goods would be given once more.
      let again = operation(.claim(key: "daily"), 5)
      #expect(wallet.knows(bought) && wallet.knows(again))
      let isPerformed = (try wallet.perform(bought), try wallet.perform(again))
      #expect(isPerformed == (false, false) && wallet.state.operations.isEmpty)
    }
  }

  @Test("of the rights that the bank asks for a wallet keeps half of what it has, because it may be offline next")
  mutating func keepsHalf() {
    for (asked, left) in [(20, 80), (50, 50), (90, 50), (100, 50)] as [(Int64, Int64)] {
      var wallet = Wallet(WalletState(chain: ChainID(using: &random)))
      _ = wallet.receive(accepted(wallet, granted: 100, recalled: asked), using: &random)
      #expect(wallet.spendable("gems") == left && wallet.total("gems") == 100, "\(asked)")
    }
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
      changed { ($0.currency, $0.reason) = ("gem", "squest") },
    ]
    #expect(Set(heads.map(\.hash)).count == heads.count)
    #expect(heads.dropFirst(2).allSatisfy { $0.count == 1 } && empty.appending(operation) == heads[2])
  }
}
