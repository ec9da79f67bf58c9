/// The head of a chain: how many operations it has, and the hash that links them all.
package struct ChainHead: Hashable, Sendable, Codable {
  /// The number of operations on the chain; 0 for an empty chain. The first operation has the number 1.
  package var count: UInt64
  /// The SHA-256 over the previous head's hash and the operation; for an empty chain, over the chain's id.
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
  /// The head that the bank last acknowledged, after which `operations` begin.
  package var base: ChainHead
  package var operations: [WalletOperation]
  /// Operations of chains that this one follows, which were made there and never seen by the bank.
  package var late: [WalletOperation]
  /// The rights that the store would like to have, by currency.
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

/// The bank's reply to an offer.
package struct WalletReply: Hashable, Sendable {
  package enum State: Hashable, Sendable {
    /// The bank has the chain as offered, up to this head.
    case accepted(ChainHead)
    /// The chain follows another one; the bank knows it now, still empty. Send the same offer again, with the cursor of
    /// this response.
    case begun(ChainHead)
    /// The chain is closed at this head: continue with a new one that follows it, and offer what came after the head as
    /// late.
    case fenced(ChainHead)
    /// Another copy of this store continued the chain; both are the same up to `common`.
    case fork(head: ChainHead, common: ChainHead)
    /// The bank knows less of the chain than the store assumes: offer again from this head.
    case behind(ChainHead)
  }
  package var chain: ChainID
  package var state: State
  /// The chain's totals as the bank keeps them, up to the head in `state`.
  package var totals: [String: WalletTotals]
  /// The player's money by currency: what the bank holds plus all rights.
  package var balances: [String: Int64]
  /// What this chain should give back for another device, by currency.
  package var recalled: [String: Int64]
  /// The decisions about late operations and claims.
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

/// The bank's decision about an operation that wasn't covered by rights in advance.
package struct WalletDecision: Hashable, Sendable, Codable {
  package enum Verdict: String, Hashable, Sendable, Codable {
    /// Counted, exactly once.
    case accepted
    /// The balance couldn't cover it: it was never charged, and its goods are revoked.
    case declined
  }
  package var id: OperationID
  package var verdict: Verdict

  package init(id: OperationID, verdict: Verdict) {
    self.id = id
    self.verdict = verdict
  }
}
