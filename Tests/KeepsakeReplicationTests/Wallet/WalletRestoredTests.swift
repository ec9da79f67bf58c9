import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// What a store's wallet makes of a bank that was set back, what the player sees meanwhile, and how it is stored.
@Suite struct WalletRestoredTests {
  private var random = SeededGenerator(seed: 6)

  /// A store that has settled operations of its chain and late ones after the backup.
  private func settled() throws -> (lab: BankLab, backup: MemoryContainer) {
    var lab = try BankLab.rich()
    let backup = lab.cloud
    lab.stores.append(lab.stores[0])
    try lab.perform(2, .earn, 9)
    try lab.perform(0, .spend, 8, goods: ["hat"])
    try lab.perform(0, .claim(key: "quest"), 20)
    for index in [2, 0] { try lab.settle([index]) }
    try lab.settle()
    try lab.perform(0, .spend, 5)
    try lab.settle()
    return (lab, backup)
  }

  @Test("the player sees the same money, claims and goods while operations are offered again")
  func sameBalance() throws {
    var (lab, backup) = try settled()
    func seen() -> [Int64] {
      let wallet = lab.wallet(0)
      return [wallet.total("gems"), wallet.spendable("gems"), wallet.pending("gems")]
        + [wallet.goods(lab.stores[0].goods())["hat"] ?? 0]
    }
    let before = seen()
    #expect(before[0] == 116 && before[2] == 0 && before[3] == 1)
    lab.restore(backup)
    var exchanges = 0
    while lab.wallet(0).state.epoch == 0, exchanges < 9 {
      #expect(seen() == before)
      try lab.exchange(0)
      exchanges += 1
    }
    #expect(exchanges >= 2 && exchanges < 9 && lab.wallet(0).state.epoch == 1)
    #expect(seen()[1] == before[1], "what may be spent here stays, whatever the bank knows of the rest")
    try lab.settle()
    #expect(seen()[0] == 116 && seen()[2] == 0 && seen()[3] == 1)
  }

  @Test("a store that is asked again offers nothing twice, and shows its statement to the last one that asked")
  func askedAgain() throws {
    var (lab, _) = try settled()
    let chain = lab.wallet(0).state.chain
    var again: [OperationID] = []
    for epoch in [1, 1, 2] as [UInt64] {
      let change = lab.receive(WalletReply(chain: chain, state: .restored, epoch: epoch), 0)
      #expect(change.decisions.isEmpty && lab.wallet(0).state.proving == epoch && lab.wallet(0).hasQuestions)
      let offer = lab.offer(0)
      #expect(offer.proving == epoch && offer.proof != nil && offer.again == offer.late.count)
      #expect(Set(offer.late.map(\.id)).count == offer.late.count && !offer.late.isEmpty)
      #expect(offer.late.allSatisfy { $0.effect != .giveBack })
      if !again.isEmpty { #expect(offer.late.map(\.id) == again) }
      again = offer.late.map(\.id)
    }
    // A part of them is settled, and then the bank is set back once more.
    var reply = WalletReply(
      chain: chain, state: .accepted(lab.wallet(0).state.acknowledged), statement: 90, epoch: 2,
      totals: lab.wallet(0).state.totals)
    reply.decisions = [WalletDecision(id: again[0], verdict: .accepted)]
    let change = lab.receive(reply, 0)
    #expect(change.decisions.isEmpty, "nobody is told again")
    #expect(lab.wallet(0).state.again == again.count - 1 && lab.wallet(0).state.proving == nil)
    lab.receive(WalletReply(chain: chain, state: .restored, epoch: 3), 0)
    let ids = lab.wallet(0).state.late.map(\.id)
    #expect(Set(ids) == Set(again) && ids.count == again.count && lab.wallet(0).state.again == again.count)
  }

  @Test("the game is told of what a bank that was set back doesn't settle again, and never of what it does")
  func lostWithRestore() throws {
    var (lab, _) = try settled()
    let chain = lab.wallet(0).state.chain
    lab.receive(WalletReply(chain: chain, state: .restored, epoch: 1), 0)
    let late = Array(lab.wallet(0).state.late)
    let hat = try #require(late.first { $0.goods == ["hat"] })
    let quest = try #require(late.first { $0.effect == .claim })
    let others = late.filter { $0.id != hat.id && $0.id != quest.id }
    #expect(!others.isEmpty && lab.wallet(0).state.again == late.count)
    func decided(_ verdict: WalletDecision.Verdict, _ ids: [OperationID]) -> (Wallet.Change, Wallet) {
      var copy = lab
      var reply = WalletReply(
        chain: chain, state: .accepted(lab.wallet(0).state.acknowledged), statement: 90, epoch: 1,
        totals: lab.wallet(0).state.totals)
      reply.decisions = late.map { WalletDecision(id: $0.id, verdict: ids.contains($0.id) ? verdict : .accepted) }
      let change = copy.receive(reply, 0)
      return (change, copy.wallet(0))
    }
    for verdict in [.declined, .idReused, .notAllowed] as [WalletDecision.Verdict] {
      #expect(decided(verdict, [hat.id]).0.decisions == [Wallet.Decided(operation: hat, verdict: verdict)])
    }
    #expect(decided(.declined, [quest.id]).0.decisions.isEmpty, "it is paid for another device's claim")
    #expect(decided(.notAllowed, [quest.id]).0.decisions.map(\.operation) == [quest])
    let (change, wallet) = decided(.waiting, [hat.id])
    #expect(change.decisions.map(\.verdict) == [.waiting] && wallet.state.waiting.map(\.id) == [hat.id])
    #expect(wallet.state.late.isEmpty && wallet.state.again == 0)
  }

  @Test("of the operations on its chain, too, the game is told what a bank that was set back declines")
  func lostOnChain() throws {
    var (lab, backup) = try settled()
    lab.restore(backup)
    while lab.wallet(0).state.replayed == 0 { try lab.exchange(0) }
    let state = lab.wallet(0).state
    let lost = state.operations[0]
    #expect(lost.effect != .claim && state.replayed > 0)
    var reply = WalletReply(
      chain: state.chain, state: .accepted(state.acknowledged.appending(lost)), statement: 90, epoch: 1)
    reply.decisions = [WalletDecision(id: lost.id, verdict: .declined)]
    let change = lab.receive(reply, 0)
    #expect(change.decisions == [Wallet.Decided(operation: lost, verdict: .declined)])
    #expect(lab.wallet(0).state.replayed == state.replayed - 1)
  }

  @Test("what was made late and never settled comes after what is offered again, and is decided like any other")
  func freshAfterAgain() throws {
    var (lab, _) = try settled()
    let chain = lab.wallet(0).state.chain
    let fresh = lab.operation(.spend, 1)
    var state = lab.wallet(0).state
    state.late = [fresh]
    lab.stores[0].setWallet(state)
    lab.receive(WalletReply(chain: chain, state: .restored, epoch: 1), 0)
    let late = lab.wallet(0).state.late
    #expect(late.last == fresh && lab.wallet(0).state.again == late.count - 1 && late.count > 1)
    var reply = WalletReply(
      chain: chain, state: .accepted(lab.wallet(0).state.acknowledged), statement: 90, epoch: 1,
      totals: lab.wallet(0).state.totals)
    reply.decisions = late.map { WalletDecision(id: $0.id, verdict: $0.id == fresh.id ? .declined : .accepted) }
    let change = lab.receive(reply, 0)
    #expect(change.decisions.map(\.operation) == [fresh] && lab.wallet(0).state.late.isEmpty)
    #expect(lab.wallet(0).state.again == 0)
  }

  @Test("a chain that is closed while operations are offered again passes them on, with the former chain's statement")
  func closedWhileProving() throws {
    var (lab, _) = try settled()
    let (chain, proof) = (lab.wallet(0).state.chain, lab.wallet(0).state.proof)
    let fresh = try lab.perform(0, .earn, 3)
    lab.receive(WalletReply(chain: chain, state: .restored, epoch: 1), 0)
    let common = lab.wallet(0).state.acknowledged
    lab.receive(WalletReply(chain: chain, state: .closed(common: common), epoch: 1), 0)
    let (state, offer) = (lab.wallet(0).state, lab.offer(0))
    #expect(state.follows == chain && state.proving == 1 && state.proof == proof && proof != nil)
    #expect(offer.again == state.late.count - 1 && state.late.last == fresh)
    #expect(Set(state.late.map(\.id)).count == state.late.count)
    // Everything that counted and moves money: 100, 8, the quest and 5.
    #expect(state.late.map(\.amount).sorted() == [3, 5, 8, 20, 100])
    #expect(offer.ancestors == state.ancestors && offer.proof == proof)
  }

  @Test("an earlier epoch's reply changes nothing, nor does one with impossible numbers or of another chain")
  func earlierReplies() throws {
    var (lab, backup) = try settled()
    lab.restore(backup)
    try lab.settle()
    let state = lab.wallet(0).state
    #expect(state.epoch == 1)
    let most = Cursor.maximumSeq
    for (epoch, statement) in [(0, 900), (1, state.statement - 1), (most + 1, 1), (2, most + 1)] as [(UInt64, UInt64)] {
      let change = lab.receive(
        WalletReply(
          chain: state.chain, state: .accepted(state.head), statement: statement, epoch: epoch,
          balances: ["gems": 7]), 0)
      #expect(!change.isProgress && lab.wallet(0).state == state)
    }
    lab.receive(WalletReply(chain: ChainID(high: 9, low: 9), state: .restored, epoch: 5), 0)
    lab.receive(WalletReply(chain: state.chain, state: .restored, epoch: most + 1), 0)
    #expect(lab.wallet(0).state == state)
  }

  @Test("a store that has neither the operations nor a statement begins another chain")
  func nothingToShow() throws {
    var (lab, _) = try settled()
    lab.hasLedgers = false
    var state = lab.wallet(0).state
    state.proof = nil
    lab.stores[0].setWallet(state)
    lab.receive(WalletReply(chain: state.chain, state: .restored, epoch: 1), 0)
    let empty = ChainHead(emptyChain: state.chain)
    lab.receive(WalletReply(chain: state.chain, state: .from(head: empty, common: nil), epoch: 1), 0)
    #expect(lab.wallet(0).state.follows == state.chain && lab.wallet(0).state.late.isEmpty)
  }

  @Test("a store remembers the chains before its own, the newest sixteen, and names them only to a bank that asks")
  mutating func ancestors() {
    var wallet = Wallet(WalletState(chain: ChainID(using: &random)))
    var chains: [ChainID] = []
    for _ in 0..<30 {
      chains.append(wallet.state.chain)
      let reply = WalletReply(chain: wallet.state.chain, state: .closed(common: wallet.state.acknowledged))
      _ = wallet.receive(reply, using: &random)
    }
    #expect(wallet.state.follows == chains.last)
    let earlier: [ChainID] = chains.dropLast().reversed()
    #expect(wallet.state.ancestors == Array(earlier.prefix(16)))
    #expect(wallet.offer().ancestors.isEmpty)
    _ = wallet.receive(WalletReply(chain: wallet.state.chain, state: .restored, epoch: 1), using: &random)
    #expect(wallet.offer().ancestors == wallet.state.ancestors)
  }

  // MARK: Stored

  private func changed(_ change: (inout WalletState) -> Void) throws -> WalletState {
    var state = try settled().lab.wallet(0).state
    change(&state)
    return state
  }

  @Test("what a wallet knows of a restored bank is stored, and a wallet of an older store has none of it")
  func coding() throws {
    let state = try changed {
      ($0.epoch, $0.proving, $0.replayed, $0.again, $0.skipsLost) = (3, 4, 5, 6, true)
      $0.ancestors = [ChainID(high: 1, low: 2)]
      let operation = WalletOperation(
        id: OperationID(high: 0, low: 1), kind: .earn, currency: "gems", amount: 1, reason: "found")
      $0.settled = $0.proof.map { SettledOperations(statement: $0, previous: $0.head.hash, operations: [operation]) }
    }
    #expect(state.proof != nil && state.settled != nil && state.previous != nil)
    let data = try JSONEncoder().encode(state)
    #expect(try JSONDecoder().decode(WalletState.self, from: data) == state && state.objection == nil)
    var old = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    for key in ["epoch", "proving", "proof", "replayed", "again", "skipsLost", "ancestors", "orders", "settled"]
      + ["previous"]
    { old[key] = nil }
    let decoded = try JSONDecoder().decode(WalletState.self, from: try JSONSerialization.data(withJSONObject: old))
    #expect(decoded.chain == state.chain && decoded.statement == state.statement && decoded.epoch == 0)
    #expect(decoded.proof == nil && decoded.proving == nil && decoded.replayed == 0 && decoded.again == 0)
    #expect(decoded.settled == nil && decoded.previous == nil)
    #expect(!decoded.skipsLost && decoded.ancestors.isEmpty && decoded.orders == 0)
  }

  @Test("a wallet with numbers that no store writes is refused")
  func objections() throws {
    let most = Cursor.maximumSeq
    let changes: [(inout WalletState) -> Void] = [
      { $0.epoch = most + 1 }, { $0.proving = most + 1 }, { $0.orders = most + 1 }, { $0.again = -1 },
      { $0.again = .max }, { $0.replayed = -1 }, { $0.replayed = .max },
      { $0.ancestors = (0..<17).map { ChainID(high: 1, low: $0) } },
      { $0.proof?.totals["gems"]?.granted = -1 }, { $0.proof?.totals["gems"]?.spent = Wallet.maximumTotal + 1 },
      { $0.proof?.totals[""] = WalletTotals() },
      { $0.previous = $0.acknowledged }, { $0.previous?.count = .max },
      { state in
        let operation = WalletOperation(
          id: OperationID(high: 0, low: 1), kind: .earn, currency: "gems", amount: 1, reason: "found")
        state.settled = state.proof.map {
          SettledOperations(
            statement: $0, previous: $0.head.hash, operations: Array(repeating: operation, count: 17))
        }
      },
    ]
    for (index, change) in changes.enumerated() { #expect(try changed(change).objection != nil, "\(index)") }
    let valid = try changed { ($0.epoch, $0.proving, $0.orders) = (most, most, most) }
    #expect(valid.objection == nil)
  }

  @Test("a bank's state of an older server has none of what a restore needs, and a restored one is stored whole")
  func bankCoding() throws {
    var (lab, backup) = try settled()
    lab.restore(backup)
    for _ in 0..<2 { try lab.exchange(0) }
    let state = lab.cloud.bank()
    #expect(state.isFrozen == true && state.epoch == 1 && state.chains.values.contains { $0.restored != nil })
    let data = try JSONEncoder().encode(state)
    #expect(try JSONDecoder().decode(BankState.self, from: data) == state)
    let old = try JSONEncoder().encode(backup.bank())
    let text = String(decoding: old, as: UTF8.self)
    for key in ["epoch", "isFrozen", "missing", "restored"] { #expect(!text.contains("\"\(key)\"")) }
    #expect(try JSONDecoder().decode(BankState.self, from: old) == backup.bank())
  }
}
