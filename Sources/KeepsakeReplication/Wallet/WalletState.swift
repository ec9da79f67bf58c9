/// A store's wallet: its chain, what it knows of the bank, and what it still has to tell it.
package struct WalletState: Hashable, Sendable, Codable {
  package var chain: ChainID
  package var follows: ChainID?
  /// The chain's newest head.
  package var head: ChainHead
  /// The head that the bank last acknowledged.
  package var acknowledged: ChainHead
  /// Operations after `acknowledged`, oldest first.
  package var operations: [WalletOperation]
  /// Operations of earlier chains that the bank has not decided yet.
  package var late: [WalletOperation]
  /// Totals of this chain by currency, each only growing.
  package var totals: [String: WalletTotals]
  /// What the bank said last: the player's money in all.
  package var balances: [String: Int64]
  /// The rights that the game would like to hold here; nil for as much as there is.
  package var wanted: [String: Int64]
  /// Claims not yet confirmed, by key.
  package var pendingClaims: [String]

  package init(chain: ChainID, follows: ChainID? = nil, head: ChainHead) {
    self.chain = chain
    self.follows = follows
    self.head = head
    self.acknowledged = head
    operations = []
    late = []
    totals = [:]
    balances = [:]
    wanted = [:]
    pendingClaims = []
  }
}

/// One chain's totals in one currency.
package struct WalletTotals: Hashable, Sendable, Codable {
  package var granted: Int64 = 0
  package var earned: Int64 = 0
  package var spent: Int64 = 0
  package var returned: Int64 = 0

  package init() {}
}

/// The bank of one container.
package struct BankState: Hashable, Sendable, Codable {
  package struct Chain: Hashable, Sendable, Codable {
    package var head: ChainHead
    package var follows: ChainID?
    package var fenced: Bool
    package var totals: [String: WalletTotals]
    /// What this chain said that it would like to hold.
    package var wanted: [String: Int64]

    package init(head: ChainHead, follows: ChainID?) {
      self.head = head
      self.follows = follows
      fenced = false
      totals = [:]
      wanted = [:]
    }
  }
  /// What the bank itself holds, by currency.
  package var pool: [String: Int64] = [:]
  package var chains: [ChainID: Chain] = [:]
  /// Keys of claims that were paid.
  package var paidClaims: Set<String> = []

  package init() {}
}
