/// The cloud's side of the wallet: handles a store's offer, in the transaction of the exchange.
///
/// Money is either in the pool or a right of a chain; only operations create or destroy it, once each. The bank never
/// lets the pool or a chain's rights fall below zero.
///
/// Not implemented: late spends that wait for rights to be recalled (they are declined if the pool can't pay
/// immediately), and a bank that was restored from a backup.
package struct Bank: Sendable {
  /// The most chains of a container: each install, and each copy that was detected, creates one.
  package static let maximumChains = 10_000

  package private(set) var state: BankState

  package init(_ state: BankState) { self.state = state }

  /// Replies to `offer`, and records decisions and heads in `storage`. The caller stores `state` if it has changed.
  ///
  /// A chain that follows another one gets no rights, and none of its operations counts, until a device offers it that
  /// has fetched its beginning. Otherwise a delayed copy of a request whose store was restored meanwhile would leave
  /// money on a chain that nobody has.
  ///
  /// - Parameter seq: How far the device has fetched the container's changes: the seq of the cursor that it sent.
  /// - Throws: ``ExchangeError`` for an offer that exceeds a limit, and what the storage throws.
  package mutating func answer(
    _ offer: WalletOffer, fetchedUpTo seq: UInt64, in storage: inout some ContainerStorage
  ) throws -> WalletReply {
    try Self.check(offer)
    let empty = ChainHead(emptyChain: offer.chain)
    let known = state.chains[offer.chain]
    var heads = [offer.base]
    for operation in offer.operations { heads.append(heads[heads.count - 1].appending(operation)) }

    if let known {
      let common = try common(of: heads, chain: offer.chain, known.head, empty: empty, in: storage)
      guard let common else {
        // The head that the store considers acknowledged isn't the bank's: the bank lost it, or never had it.
        return try reply(offer, .behind(known.head), in: storage)
      }
      if known.fenced { return try reply(offer, .fenced(common), in: storage) }
      guard common == known.head else { return try reply(offer, .fork(head: known.head, common: common), in: storage) }
    } else {
      guard offer.base == empty else { return try reply(offer, .behind(empty), in: storage) }
      if offer.follows == nil, offer.operations.isEmpty, offer.late.isEmpty, state.isEmpty {
        // Nothing has ever been earned or spent: a game without a wallet costs the bank nothing.
        return WalletReply(chain: offer.chain, state: .accepted(empty))
      }
      guard state.chains.count < Self.maximumChains else { throw ExchangeError.tooMany("wallet chains") }
      state.chains[offer.chain] = BankState.Chain(head: empty, follows: offer.follows)
      if let old = offer.follows {
        fence(old, sparing: offer.chain)
        // A change of the bank advances the seq by one.
        state.chains[offer.chain]?.begun = try storage.position().seq + 1
      }
    }
    if let begun = state.chains[offer.chain]?.begun {
      guard seq >= begun else {
        for operation in offer.late { try applyLate(operation, of: offer.follows ?? offer.chain, in: &storage) }
        return try reply(offer, .begun(empty), in: storage)
      }
      state.chains[offer.chain]?.begun = nil
    }

    var chain = state.chains[offer.chain] ?? BankState.Chain(head: empty, follows: offer.follows)
    let seen = Int(clamping: chain.head.count - offer.base.count)
    for operation in offer.operations.dropFirst(seen) {
      try apply(operation, to: &chain, named: offer.chain, in: &storage)
    }
    chain.wanted = offer.wanted
    state.chains[offer.chain] = chain
    for operation in offer.late { try applyLate(operation, of: offer.follows ?? offer.chain, in: &storage) }
    grant(to: offer.chain)
    return try reply(offer, .accepted(chain.head), in: storage)
  }

  // MARK: Operations

  private mutating func apply(
    _ operation: WalletOperation, to chain: inout BankState.Chain, named id: ChainID,
    in storage: inout some ContainerStorage
  ) throws {
    chain.head = chain.head.appending(operation)
    try storage.recordChainHead(chain.head, of: id)
    guard try storage.decision(on: operation.id) == nil else { return }
    var totals = chain.totals[operation.currency] ?? WalletTotals()
    var verdict = WalletDecision.Verdict.accepted
    switch operation.effect {
    case .credit:
      if !canGrow(operation.currency, by: operation.amount) || !totals.count(operation) { verdict = .declined }
    case .debit:
      if totals.rights < operation.amount || !totals.count(operation) { verdict = .declined }
    case .giveBack:
      if totals.rights >= operation.amount, totals.count(operation) {
        state.pool[operation.currency, default: 0] += operation.amount
      } else {
        verdict = .declined
      }
    case .claim:
      let (sum, overflow) = totals.granted.addingReportingOverflow(operation.amount)
      if let key = operation.kind.key, !state.paidClaims.contains(key), !overflow, sum <= Wallet.maximumTotal,
        canGrow(operation.currency, by: operation.amount)
      {
        state.paidClaims.insert(key)
        totals.granted = sum
      } else {
        verdict = .declined
      }
    }
    chain.totals[operation.currency] = totals
    state.chains[id] = chain
    try storage.recordDecision(verdict, on: operation, of: id)
  }

  private mutating func applyLate(
    _ operation: WalletOperation, of chain: ChainID, in storage: inout some ContainerStorage
  ) throws {
    guard try storage.decision(on: operation.id) == nil else { return }
    var verdict = WalletDecision.Verdict.accepted
    let held = state.pool[operation.currency] ?? 0
    switch operation.effect {
    case .credit:
      if canGrow(operation.currency, by: operation.amount) {
        state.pool[operation.currency] = held + operation.amount
      } else {
        verdict = .declined
      }
    case .debit:
      if held >= operation.amount {
        state.pool[operation.currency] = held - operation.amount
      } else {
        verdict = .declined
      }
    case .giveBack:
      break  // the rights went back to the pool when the chain was fenced
    case .claim:
      if let key = operation.kind.key, !state.paidClaims.contains(key),
        canGrow(operation.currency, by: operation.amount)
      {
        state.paidClaims.insert(key)
        state.pool[operation.currency] = held + operation.amount
      } else {
        verdict = .declined
      }
    }
    try storage.recordDecision(verdict, on: operation, of: chain)
  }

  /// Closes `old` and every open chain that descends from it: their rights go back to the pool.
  private mutating func fence(_ old: ChainID, sparing new: ChainID) {
    // Only the open ones, because each walk is as long as a chain's history.
    let open = state.chains.filter { !$0.value.fenced && $0.key != new }.keys.sorted()
    for id in open where descends(id, from: old) { close(id) }
  }

  /// Closes the chains of a device that was removed; unknown or closed ones stay as they are.
  package mutating func close(_ chains: [ChainID]) {
    for id in chains { close(id) }
  }

  private mutating func close(_ id: ChainID) {
    guard var chain = state.chains[id], !chain.fenced else { return }
    for (currency, totals) in chain.totals.sorted(by: { $0.key < $1.key }) {
      let rights = totals.rights
      guard rights > 0 else { continue }
      var closed = totals
      closed.returned += rights
      chain.totals[currency] = closed
      state.pool[currency, default: 0] += rights
    }
    chain.fenced = true
    state.chains[id] = chain
  }

  private func descends(_ id: ChainID, from ancestor: ChainID) -> Bool {
    var current: ChainID? = id
    // Each chain was created after the one that it follows, but the ids come from outside: the number of chains limits
    // the walk.
    for _ in 0...state.chains.count {
      guard let step = current else { return false }
      if step == ancestor { return true }
      current = state.chains[step]?.follows
    }
    return false
  }

  // MARK: Rights

  /// Returns the player's money in one currency.
  package func balance(_ currency: String) -> Int64 {
    var sum = state.pool[currency] ?? 0
    for chain in state.chains.values where !chain.fenced { sum += chain.totals[currency]?.rights ?? 0 }
    return sum
  }

  /// Every currency that the bank knows, sorted.
  package var currencies: [String] {
    var names = Set(state.pool.keys)
    for chain in state.chains.values { names.formUnion(chain.totals.keys) }
    return names.sorted()
  }

  private func canGrow(_ currency: String, by amount: Int64) -> Bool {
    balance(currency) + amount <= Wallet.maximumTotal
  }

  /// Returns what each chain that may have rights would get if all of these got the same.
  private func fairShare(_ currency: String) -> Int64 {
    let living = Int64(state.chains.values.count(where: \.isLiving))
    guard living > 0 else { return 0 }
    let balance = balance(currency)
    return balance / living + (balance % living == 0 ? 0 : 1)
  }

  private func target(of chain: BankState.Chain, _ currency: String, fair: Int64) -> Int64 {
    max(0, chain.wanted[currency] ?? fair)
  }

  /// Grants a chain what it wants, or its fair share, as far as the pool allows.
  private mutating func grant(to id: ChainID) {
    guard var chain = state.chains[id], !chain.fenced else { return }
    for currency in currencies {
      let held = state.pool[currency] ?? 0
      var totals = chain.totals[currency] ?? WalletTotals()
      let wanted = target(of: chain, currency, fair: fairShare(currency)) - totals.rights
      let amount = min(held, wanted, Wallet.maximumTotal - totals.granted)
      guard amount > 0 else { continue }
      totals.granted += amount
      chain.totals[currency] = totals
      state.pool[currency] = held - amount
    }
    state.chains[id] = chain
  }

  /// Returns what a chain should give back, because others have less than half of their target and the pool can't help.
  /// That always leaves the chain its own fair share, or what it asked for if that is more.
  private func recall(from id: ChainID) -> [String: Int64] {
    guard let chain = state.chains[id], !chain.fenced else { return [:] }
    var result: [String: Int64] = [:]
    for currency in currencies {
      let fair = fairShare(currency)
      var unmet: Int64 = 0
      for (other, its) in state.chains where other != id && its.isLiving {
        let rights = its.totals[currency]?.rights ?? 0
        let target = target(of: its, currency, fair: fair)
        if rights < target / 2 { unmet = unmet.addingClamped(target - rights) }
      }
      unmet -= state.pool[currency] ?? 0
      let rights = chain.totals[currency]?.rights ?? 0
      let amount = min(unmet, rights - max(fair, chain.wanted[currency] ?? 0))
      if amount > 0 { result[currency] = amount }
    }
    return result
  }

  // MARK: Answers

  /// Returns the greatest of `heads` that the bank's chain has, too; nil if there is none.
  private func common(
    of heads: [ChainHead], chain: ChainID, _ newest: ChainHead, empty: ChainHead, in storage: some ContainerStorage
  ) throws -> ChainHead? {
    for head in heads.reversed() where head.count <= newest.count {
      if head == empty || head == newest { return head }
      if try storage.chainHead(of: chain, at: head.count) == head { return head }
    }
    return nil
  }

  private func reply(
    _ offer: WalletOffer, _ replyState: WalletReply.State, in storage: some ContainerStorage
  ) throws -> WalletReply {
    var reply = WalletReply(chain: offer.chain, state: replyState)
    // If an offer is repeated because a response was lost, the bank replies the same again.
    for operation in offer.operations + offer.late {
      guard let verdict = try storage.decision(on: operation.id) else { continue }
      if verdict == .declined || operation.isClaim {
        reply.decisions.append(WalletDecision(id: operation.id, verdict: verdict))
      }
    }
    for operation in offer.late {
      guard let verdict = try storage.decision(on: operation.id), verdict == .accepted else { continue }
      if operation.isClaim { continue }
      reply.decisions.append(WalletDecision(id: operation.id, verdict: verdict))
    }
    switch replyState {
    case .accepted, .begun: break
    case .fenced, .fork, .behind: return reply
    }
    reply.totals = state.chains[offer.chain]?.totals ?? [:]
    for currency in currencies { reply.balances[currency] = balance(currency) }
    reply.recalled = recall(from: offer.chain)
    return reply
  }

  private static func check(_ offer: WalletOffer) throws {
    guard offer.base.count <= Cursor.maximumSeq else { throw ExchangeError.malformed("the wallet chain is too long") }
    guard offer.operations.count <= Wallet.maximumBatch, offer.late.count <= Wallet.maximumBatch else {
      throw ExchangeError.tooMany("wallet operations")
    }
    guard offer.wanted.count <= Wallet.maximumWanted else { throw ExchangeError.tooMany("wanted levels") }
    guard Wallet.arePossible(offer.wanted) else { throw ExchangeError.malformed("a wanted level is out of range") }
    guard offer.follows != offer.chain else { throw ExchangeError.malformed("a wallet chain can't follow itself") }
    for operation in offer.operations + offer.late {
      do { try operation.check() } catch { throw ExchangeError.malformed("a wallet operation: \(error)") }
    }
  }
}

extension BankState {
  /// Whether there is no chain and no money: nothing was ever earned or spent.
  package var isEmpty: Bool { chains.isEmpty && pool.isEmpty && paidClaims.isEmpty }
}
