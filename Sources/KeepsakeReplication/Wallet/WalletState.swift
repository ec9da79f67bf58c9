/// A store's wallet: its chain, what it knows of the bank, and what it has still to report to it.
package struct WalletState: Hashable, Sendable, Codable {
  package var chain: ChainID
  /// The chain that this one follows after a fork or a fence.
  package var follows: ChainID?
  /// The chain's newest head.
  package var head: ChainHead
  /// The head that the bank last acknowledged.
  package var acknowledged: ChainHead
  /// Operations after `acknowledged`, oldest first.
  package var operations: OperationList
  /// Operations of earlier chains that the bank has not decided yet.
  package var late: OperationList
  /// Totals of this chain by currency: the bank's at `acknowledged`, with `operations` added.
  package var totals: [String: WalletTotals]
  /// The player's money in total by currency at `acknowledged`, as last reported by the bank.
  package var balances: [String: Int64]
  /// The rights that the game would like to have here, by currency; a fair share for any other currency.
  package var wanted: [String: Int64]
  /// Keys of claims that this store made and the bank has decided, sorted.
  package var settledClaims: [String]
  /// The newest operations that this store made, so that a repeated one is recognized without the bank; at most
  /// `Wallet.rememberedOperations`.
  package var recent: [OperationID]

  package init(chain: ChainID, follows: ChainID? = nil) {
    self.chain = chain
    self.follows = follows
    head = ChainHead(emptyChain: chain)
    acknowledged = head
    operations = []
    late = []
    totals = [:]
    balances = [:]
    wanted = [:]
    settledClaims = []
    recent = []
  }

  /// Why no wallet can have this state, which somebody who knows the format may have written; nil if one can. Looks at
  /// no operation.
  package var objection: String? {
    guard acknowledged.count <= head.count, head.count <= Cursor.maximumSeq else {
      return "its chain has an invalid length"
    }
    guard Wallet.arePossible(totals), Wallet.arePossible(balances) else { return "it contains impossible amounts" }
    guard wanted.count <= Wallet.maximumWanted, Wallet.arePossible(wanted) else {
      return "it requests impossible rights"
    }
    guard recent.count <= Wallet.rememberedOperations else { return "it remembers more operations than allowed" }
    return nil
  }
}

/// One chain's totals in one currency.
package struct WalletTotals: Hashable, Sendable, Codable {
  package var granted: Int64 = 0
  package var earned: Int64 = 0
  package var spent: Int64 = 0
  package var returned: Int64 = 0

  package init() {}

  /// What may be spent; never negative if the totals are the bank's or this store's own.
  package var rights: Int64 {
    // Each term is at most `Wallet.maximumTotal`, so this can't overflow.
    granted &+ earned &- spent &- returned
  }
}

/// The bank of one container.
package struct BankState: Hashable, Sendable, Codable {
  package struct Chain: Hashable, Sendable, Codable {
    package var head: ChainHead
    package var follows: ChainID?
    package var fenced: Bool
    package var totals: [String: WalletTotals]
    /// The rights that this chain asked for.
    package var wanted: [String: Int64]
    /// The container's seq at which a chain that follows another one began; nil after a device that knows of it has
    /// made an offer.
    package var begun: UInt64?

    package init(head: ChainHead, follows: ChainID?) {
      self.head = head
      self.follows = follows
      fenced = false
      totals = [:]
      wanted = [:]
    }

    /// Whether it may have rights.
    var isLiving: Bool { !fenced && begun == nil }
  }
  /// What the bank itself holds, by currency.
  package var pool: [String: Int64] = [:]
  package var chains: [ChainID: Chain] = [:]
  /// Keys of claims that were paid.
  package var paidClaims: Set<String> = []

  package init() {}
}
