import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// What a store's wallet makes of each kind of reply, and what it offers next.
@Suite struct WalletReplyTests {
  private var random = SeededGenerator(seed: 9)

  private mutating func operation(_ kind: WalletOperation.Kind, _ amount: Int64) -> WalletOperation {
    WalletOperation(id: OperationID(using: &random), kind: kind, currency: "gems", amount: amount, reason: "test")
  }

  private mutating func wallet() -> Wallet { Wallet(WalletState(chain: ChainID(using: &random))) }

  /// Returns the bank's reply that it has all operations, and that the chain was granted this much.
  private func accepted(_ wallet: Wallet, granted: Int64, decisions: [WalletDecision] = []) -> WalletReply {
    var totals = WalletTotals()
    totals.granted = granted
    return WalletReply(
      chain: wallet.state.chain, state: .accepted(wallet.state.head), statement: wallet.state.statement + 1,
      totals: ["gems": totals], balances: ["gems": granted], decisions: decisions)
  }

  /// A wallet with three operations, of which the bank has declined the second, and the heads before and after each.
  private mutating func three() throws -> (wallet: Wallet, heads: [ChainHead], decided: Wallet.Decided) {
    var wallet = wallet()
    wallet.state.isBound = true
    var heads = [wallet.state.head]
    let made = [operation(.earn, 10), operation(.claim(key: "daily"), 5), operation(.earn, 3)]
    for operation in made {
      try wallet.perform(operation)
      heads.append(wallet.state.head)
    }
    return (wallet, heads, Wallet.Decided(operation: made[1], verdict: .declined))
  }

  @Test("a store that was set back goes on after what the bank has, and with a new chain if it has nothing else")
  mutating func continued() throws {
    let (before, heads, decided) = try three()
    let ahead = ChainHead(count: 9, hash: heads[0].hash)
    let decision = WalletDecision(id: decided.operation.id, verdict: decided.verdict)
    var wallet = before
    let change = wallet.receive(
      WalletReply(
        chain: before.state.chain, state: .from(head: ahead, common: heads[2]), decisions: [decision]), using: &random)
    #expect(change.decisions == [decided] && change.hasMore)
    #expect(wallet.state.chain == before.state.chain && wallet.state.acknowledged == heads[2])
    #expect(wallet.state.operations.map(\.amount) == [3])
    wallet = before
    _ = wallet.receive(
      WalletReply(chain: before.state.chain, state: .from(head: ahead, common: heads[3])), using: &random)
    #expect(wallet.state.follows == before.state.chain && wallet.state.late.isEmpty)
  }

  @Test("vouchers that can't be paid yet don't keep the others from being shown, and that is no progress")
  mutating func unpaidVouchers() {
    var wallet = wallet()
    wallet.state.vouchers = (0...UInt64(WalletVoucher.maximumShown)).map {
      WalletVoucher(
        bank: ContainerID(high: 1, low: 1), chain: ChainID(high: 0, low: $0), receiver: ContainerID(high: 2, low: 2),
        amounts: ["gems": 1])
    }
    let reply = accepted(wallet, granted: 0)
    #expect(wallet.offer().vouchers.first?.chain.low == 0)
    for first: UInt64 in [16, 15, 14] {
      let change = wallet.receive(reply, using: &random)
      #expect(wallet.offer().vouchers.first?.chain.low == first && !change.hasMore)
      #expect(change.isProgress == (first == 16), "only the first reply brings a statement")
    }
    #expect(wallet.state.vouchers.count == 17 && wallet.vouched("gems") == 17)
  }

  @Test("what comes after the bank's operations on a closed chain is late; what it decided before that is told")
  mutating func closed() throws {
    let (before, heads, decided) = try three()
    var wallet = before
    let decision = WalletDecision(id: decided.operation.id, verdict: decided.verdict)
    let change = wallet.receive(
      WalletReply(chain: before.state.chain, state: .closed(common: heads[2]), decisions: [decision]), using: &random)
    #expect(change.decisions == [decided] && change.hasMore)
    #expect(wallet.state.follows == before.state.chain && wallet.state.late.map(\.amount) == [3])
    #expect(wallet.state.isBound)
  }

  @Test("a wallet whose chain is closed twice loses nothing, and offers again what the bank doesn't know any more")
  mutating func chainAfterChain() throws {
    var wallet = wallet()
    _ = wallet.receive(accepted(wallet, granted: 100), using: &random)
    let made = [operation(.spend, 30), operation(.earn, 3), operation(.earn, 5)]
    func close(using random: inout SeededGenerator) {
      let reply = WalletReply(chain: wallet.state.chain, state: .closed(common: wallet.state.acknowledged))
      _ = wallet.receive(reply, using: &random)
    }
    for operation in made[..<2] { try wallet.perform(operation) }
    close(using: &random)
    #expect(Array(wallet.state.late) == Array(made[..<2]))
    let wait = WalletDecision(id: made[0].id, verdict: .waiting)
    _ = wallet.receive(accepted(wallet, granted: 70, decisions: [wait]), using: &random)
    #expect(Array(wallet.state.waiting) == [made[0]] && Array(wallet.state.late) == [made[1]])
    try wallet.perform(made[2])
    close(using: &random)
    #expect(Array(wallet.state.waiting) == [made[0]] && Array(wallet.state.late) == Array(made[1...]))
    #expect(wallet.offer().waiting == [made[0].id])
    let decisions = [
      WalletDecision(id: made[0].id, verdict: .unknown), WalletDecision(id: made[1].id, verdict: .accepted),
      WalletDecision(id: made[2].id, verdict: .accepted),
    ]
    let change = wallet.receive(accepted(wallet, granted: 70, decisions: decisions), using: &random)
    #expect(change.decisions.map(\.operation) == Array(made[1...]))
    #expect(wallet.state.waiting.isEmpty && wallet.offer().late == [made[0]])
  }

  @Test("the first statement on a chain that follows another one is shown at once, a later one with the next offer")
  mutating func firstStatement() {
    var wallet = wallet()
    _ = wallet.receive(accepted(wallet, granted: 100), using: &random)
    let reply = WalletReply(chain: wallet.state.chain, state: .closed(common: wallet.state.acknowledged))
    #expect(wallet.receive(reply, using: &random).hasMore && wallet.offer().statement == 0)
    #expect(wallet.receive(accepted(wallet, granted: 0), using: &random).hasMore && wallet.offer().statement == 1)
    let second = wallet.receive(accepted(wallet, granted: 100), using: &random)
    #expect(second.isProgress && !second.hasMore && wallet.offer().statement == 2)
  }

  @Test("another operation under the id of one that waits is refused, also in the same group")
  mutating func reusedIdentifiers() throws {
    var wallet = wallet()
    let hat = operation(.earn, 5)
    var castle = hat
    castle.amount = 20
    #expect(throws: WalletError.idReused(hat.id)) { try wallet.perform([hat, castle]) }
    try wallet.perform(hat)
    #expect(throws: WalletError.idReused(hat.id)) { try wallet.perform(castle) }
    let isRepeat = try !wallet.perform(hat)
    #expect(isRepeat && wallet.total("gems") == 5)
  }

  @Test("a need is within the bank's limits, and a new one is asked for although an earlier one couldn't be met")
  mutating func needs() {
    var wallet = wallet()
    for (amount, needed) in [(.max, Wallet.maximumTotal), (-5, 0), (80, 80)] as [(Int64, Int64)] {
      wallet.need(amount, of: "gems")
      #expect(wallet.offer().needs == ["gems": needed])
    }
    var reply = accepted(wallet, granted: 10)
    reply.held = ["gems": [WalletHolding(device: nil, amount: 90, seenMilliseconds: 0)]]
    _ = wallet.receive(reply, using: &random)
    #expect(!wallet.hasQuestions && wallet.state.held == reply.held)
    wallet.need(50, of: "gems")
    #expect(wallet.hasQuestions && wallet.state.held.isEmpty)
    wallet.need(nil, of: "gems")
    #expect(!wallet.hasQuestions && wallet.offer().needs.isEmpty)
  }

  @Test("less than nothing is never shown as spendable")
  mutating func neverLessThanNothing() {
    var wallet = wallet()
    wallet.state.totals["gems", default: WalletTotals()].spent = 5
    #expect(wallet.spendable("gems") == 0)
  }
}
