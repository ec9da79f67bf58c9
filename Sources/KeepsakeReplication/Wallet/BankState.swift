/// The bank of one container.
package struct BankState: Hashable, Sendable, Codable {
  package struct Chain: Hashable, Sendable, Codable {
    package var head: ChainHead
    package var follows: ChainID?
    package var totals: [String: WalletTotals] = [:]
    /// The number of the newest statement on this chain.
    package var statement: UInt64 = 0
    /// Whether a device has shown a statement: before that, nothing counts on a chain that follows another one.
    package var isShown: Bool
    /// The device that last offered it; nil in a cloud that knows no devices.
    package var device: DeviceID?
    /// When it was last offered, by the server's clock, to the hour.
    package var seenMilliseconds: Int64 = 0
    /// What has to be spendable there for a purchase.
    package var need: Need?
    /// Since the bank was set back, until the chain's store has shown everything that the bank lost.
    package var restored: Restored?

    package init(head: ChainHead, follows: ChainID?) {
      self.head = head
      self.follows = follows
      isShown = follows == nil
    }
  }

  /// What a bank that was set back knows of a chain.
  package struct Restored: Hashable, Sendable, Codable {
    /// The number of the newest statement that the store has shown; before that, of the newest one in the backup.
    package var statement: UInt64
    /// Up to where on the chain that statement says what was granted and paid; nil if it says no more than the bank
    /// knows, or if the chain has gone another way.
    package var head: ChainHead?
    /// Whether the store has shown a statement.
    package var isProven = false

    /// How many operations the chain has up to there.
    package var count: UInt64 { head?.count ?? 0 }

    package init(statement: UInt64) { self.statement = statement }
  }

  /// A chain that is closed: it has no rights, and takes nothing any more.
  package struct ClosedChain: Hashable, Sendable, Codable {
    package var head: ChainHead
    package var follows: ChainID?

    package init(head: ChainHead, follows: ChainID?) { (self.head, self.follows) = (head, follows) }
  }

  /// What a device needs for a purchase that it is making.
  package struct Need: Hashable, Sendable, Codable {
    package var amounts: [String: Int64]
    /// Of two needs that can't both be met, the one with the lower number is.
    package var number: UInt64
    /// The server's time after which it is void unless it is repeated.
    package var untilMilliseconds: Int64

    /// Whether it is another need than `known`, or needs more of something.
    fileprivate func exceeds(_ known: Need?) -> Bool {
      guard let known, known.number == number else { return true }
      return amounts.contains { $1 > known.amounts[$0] ?? 0 }
    }
  }

  /// Spends that came late, and that the balance covers, but not the pool: in the order in which they will be charged.
  package struct Waiting: Hashable, Sendable, Codable {
    package var operations: [WalletOperation]
    package var chain: ChainID
  }

  /// What the bank itself holds, by currency.
  package var pool: [String: Int64] = [:]
  /// The open ones.
  package var chains: [ChainID: Chain] = [:]
  /// How many were closed.
  package var closedChains = 0
  package var waiting: [Waiting] = []
  /// The number of the last change of the player's goods.
  package var goodsNumber: UInt64 = 0
  /// The number of the next need.
  package var nextNeed: UInt64 = 0
  /// How often the bank was set back; nil if never.
  package var epoch: UInt64?
  /// Whether the bank was set back, and devices haven't shown yet what it had granted: it grants nothing, pays no
  /// claims, and declines nothing. Nil for no.
  package var isFrozen: Bool?
  /// The chains whose statements were shown in this epoch by chains that follow them; nil for none.
  package var provenFormers: [ChainID]?
  /// The chains that were closed in this epoch before their stores had brought everything that was settled there; nil
  /// for none.
  package var replaying: [ChainID]?
  /// What devices have shown that they were granted, and the pool doesn't have yet: until the bank opens, devices may
  /// still bring it. By currency; nil for nothing.
  package var missing: [String: Int64]?
  /// Since the bank was set back, of how many more operations it believes that it had settled them, because stores say
  /// so; nil for none.
  package var trusted: Int?
  /// What the player owes after charges beyond the balance, by currency; nil for nothing.
  package var debts: [String: Int64]?
  /// Whether a device has left with its money for another bank. Nil for no.
  package var hasLeft: Bool?
  /// The number of the bank's last order; nil for none.
  package var orderNumber: UInt64?

  package init() {}

  /// Whether there is no chain and no money: nothing was ever earned or spent.
  package var isEmpty: Bool { chains.isEmpty && closedChains == 0 && pool.isEmpty }

  /// Whether the player has moved to another bank, as far as this one knows: money that came in now would reach nobody.
  var isLeft: Bool { hasLeft == true && chains.isEmpty }

  /// Whether other devices should learn of the change from `before`: not of when a device was seen, nor of a need that
  /// ended. Two copies of a store, which offer the same chain in turn, must come to rest.
  package func concernsOthers(since before: BankState) -> Bool {
    for (id, chain) in chains {
      if let need = chain.need, need.exceeds(before.chains[id]?.need) { return true }
    }
    return lasting != before.lasting
  }

  /// The state without what every exchange may change.
  private var lasting: BankState {
    var state = self
    state.nextNeed = 0
    state.chains = chains.mapValues { chain in
      var chain = chain
      (chain.seenMilliseconds, chain.device, chain.need) = (0, nil, nil)
      return chain
    }
    return state
  }
}
