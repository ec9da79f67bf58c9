/// The head of a chain: how many operations it has, and the hash that links them all.
package struct ChainHead: Hashable, Sendable, Codable {
  /// Operations on the chain; the first has the number 1, 0 stands for an empty chain.
  package var count: UInt64
  /// The SHA-256 over the previous head's hash and the operation; of the chain's id where it is empty.
  package var hash: ContentHash

  package init(count: UInt64, hash: ContentHash) {
    self.count = count
    self.hash = hash
  }
}

/// A device's side of the wallet in an exchange.
package struct WalletOffer: Hashable, Sendable {
  package var chain: ChainID
  /// The chain that this one follows after a fork or a fence.
  package var follows: ChainID?
  /// The head that the bank last acknowledged: where `operations` begins.
  package var base: ChainHead
  package var operations: [WalletOperation]
  /// Operations of chains that this one follows, made there but never seen by the bank.
  package var late: [WalletOperation]
  /// The rights that the store would like to hold, by currency.
  package var wanted: [String: Int64]

  package init(
    chain: ChainID, follows: ChainID?, base: ChainHead, operations: [WalletOperation], late: [WalletOperation],
    wanted: [String: Int64]
  ) {
    self.chain = chain
    self.follows = follows
    self.base = base
    self.operations = operations
    self.late = late
    self.wanted = wanted
  }
}

/// The bank's answer.
package struct WalletReply: Hashable, Sendable {
  package enum State: Hashable, Sendable {
    /// The chain as offered is the bank's, up to this head.
    case accepted(ChainHead)
    /// The chain follows another one and is known now, empty as yet: offer the same again, with the cursor of this answer.
    case begun(ChainHead)
    /// The chain is closed at this head: go on with a new one that follows it, and offer what came after as late.
    case fenced(ChainHead)
    /// Another copy of this store went on with the chain; both agree up to `common`.
    case fork(head: ChainHead, common: ChainHead)
    /// The bank knows less of the chain than the store thinks: offer again from this head.
    case behind(ChainHead)
  }
  package var chain: ChainID
  package var state: State
  /// The chain's totals as the bank keeps them, up to the head that `state` names.
  package var totals: [String: WalletTotals]
  /// The player's money: what the bank holds and all rights together, by currency.
  package var balances: [String: Int64]
  /// What the bank would like back from this chain for another device, by currency.
  package var recalled: [String: Int64]
  /// What became of late operations and claims.
  package var decisions: [WalletDecision]

  package init(
    chain: ChainID, state: State, totals: [String: WalletTotals] = [:], balances: [String: Int64] = [:],
    recalled: [String: Int64] = [:], decisions: [WalletDecision] = []
  ) {
    self.chain = chain
    self.state = state
    self.totals = totals
    self.balances = balances
    self.recalled = recalled
    self.decisions = decisions
  }
}

/// What the bank decided about an operation that was not within rights held beforehand.
package struct WalletDecision: Hashable, Sendable, Codable {
  package enum Verdict: String, Hashable, Sendable, Codable {
    /// Counted, once.
    case accepted
    /// The balance could not cover it; it was never charged, its goods are revoked.
    case declined
  }
  package var id: OperationID
  package var verdict: Verdict

  package init(id: OperationID, verdict: Verdict) {
    self.id = id
    self.verdict = verdict
  }
}
