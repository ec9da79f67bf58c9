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

    package init(head: ChainHead, follows: ChainID?) {
      self.head = head
      self.follows = follows
      isShown = follows == nil
    }

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

  package init() {}

  /// Whether there is no chain and no money: nothing was ever earned or spent.
  package var isEmpty: Bool { chains.isEmpty && closedChains == 0 && pool.isEmpty }

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
