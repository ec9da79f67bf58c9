/// The cloud's side of the wallet: handles a store's offer, in the transaction of the exchange.
///
/// Money is either in the pool or a right of a chain; only operations create or destroy it, once each. The bank never
/// lets the pool or a chain's rights fall below zero.
///
/// A bank that was restored from a backup is offered operations again. Not implemented: that it gets back what it had
/// granted, and decided about late operations, since the backup.
package struct Bank: Sendable {
  /// The most chains of a container: each install, and each copy that was detected, creates one.
  package static let maximumChains = 10_000
  /// The most of them that are open: each exchange looks at all of these, in every currency. A player has as many as
  /// installs that weren't removed.
  package static let maximumOpenChains = 1_000
  /// A chain that wasn't offered for this long gets no share of the money, but keeps what it has.
  package static let activeMilliseconds: Int64 = 7 * 24 * 3_600_000
  /// How long a need is met unless it is repeated.
  package static let needMilliseconds: Int64 = 60_000
  /// The most late operations that wait: they are looked at in each exchange. The store keeps further ones.
  package static let maximumWaiting = 1_000
  /// When a device was seen is recorded this exactly, so that an exchange seldom writes it.
  static let seenMilliseconds: Int64 = 3_600_000

  package var state: BankState
  /// What the spends that wait will take from the pool, by currency: kept, because it is asked for each of them.
  var waitingSums: [String: Int64]
  /// The server's clock.
  let now: Int64
  /// Bugs planted by a test.
  let faults: Faults

  package init(_ state: BankState, now: Int64 = 0, faults: Faults = Faults()) {
    (self.state, self.now, self.faults) = (state, now, faults)
    waitingSums = Self.sums(of: state.waiting)
  }

  /// Replies to `offer`, and records decisions in `storage`. The caller stores `state` if it has changed.
  ///
  /// A chain that follows another one gets no rights, and none of its operations counts, until a device offers it that
  /// has the bank's first statement on it. Otherwise a delayed copy of a request whose store was restored meanwhile
  /// would leave money on a chain that nobody has.
  ///
  /// - Parameter device: The device that makes the offer; nil in a cloud that knows no devices.
  /// - Throws: ``ExchangeError`` for an offer that exceeds a limit, and what the storage throws.
  package mutating func answer(
    _ offer: WalletOffer, from device: DeviceID? = nil, in storage: inout some BankStorage
  ) throws -> WalletReply {
    try Self.check(offer)
    let empty = ChainHead(emptyChain: offer.chain)
    if let closed = try storage.closedChain(offer.chain) {
      let common = try common(of: offer, heads(of: offer), upTo: closed.head, storage)
      return try refusal(offer, .closed(common: common.head), in: storage)
    }
    if state.chains[offer.chain] == nil {
      guard offer.base == empty else {
        return try refusal(offer, .from(head: empty, common: nil), in: storage)
      }
      if offer.follows == nil, offer.operations.isEmpty, offer.late.isEmpty, state.isEmpty {
        // Nothing has ever been earned or spent: a game without a wallet costs the bank nothing.
        return WalletReply(chain: offer.chain, state: .accepted(empty))
      }
      try begin(offer.chain, following: offer.follows, at: empty, in: &storage)
    }
    guard let before = state.chains[offer.chain] else { throw ExchangeError.malformed("the wallet chain is missing") }
    let operations: [WalletOperation]
    switch try standing(of: offer, in: before, storage) {
    case .new(let new): operations = new
    case .refused(let reason): return try refusal(offer, reason, in: storage)
    }
    state.chains[offer.chain]?.device = device ?? before.device
    if now - before.seenMilliseconds >= Self.seenMilliseconds {
      state.chains[offer.chain]?.seenMilliseconds = now - now % Self.seenMilliseconds
    }
    if offer.statement > 0 { state.chains[offer.chain]?.isShown = true }
    if state.chains[offer.chain]?.isShown == true {
      for unit in operations.units { try apply(unit, to: offer.chain, in: &storage) }
    }
    for unit in offer.late.units {
      try applyLate(unit, of: offer.follows ?? offer.chain, mayBeLeft: true, in: &storage)
    }
    note(offer.needs, of: offer.chain)
    try settleWaiting(in: &storage)
    if state.chains[offer.chain]?.isShown == true, mayGrant(offer, before) { grant(to: offer.chain) }
    // A store that shows a later statement has it from before the bank was set back.
    let isSetBack = offer.statement > before.statement
    if var chain = state.chains[offer.chain], chain.statement == 0 || isSetBack || !chain.says(before) {
      chain.statement = max(chain.statement, offer.statement) + 1
      state.chains[offer.chain] = chain
    }
    return try reply(offer, hasGranted: mayGrant(offer, before), in: storage)
  }

  /// Rights are granted to a store that has shown the newest statement, or the one before it, whose response may have
  /// been lost: so no store has more rights than the newest statement that it can show, or the next one, says.
  private func mayGrant(_ offer: WalletOffer, _ before: BankState.Chain) -> Bool {
    offer.statement + 1 >= before.statement
  }

  private mutating func begin(
    _ id: ChainID, following old: ChainID?, at empty: ChainHead, in storage: inout some BankStorage
  ) throws {
    guard state.chains.count + state.closedChains < Self.maximumChains, state.chains.count < Self.maximumOpenChains
    else {
      throw ExchangeError.tooMany("wallet chains")
    }
    var chain = BankState.Chain(head: empty, follows: old)
    if faults.countsUnshownChains { chain.isShown = true }
    state.chains[id] = chain
    if let old { try close(old, sparing: id, in: &storage) }
  }

  // MARK: Where the offer stands

  /// How an offer relates to the bank's chain.
  private enum Standing {
    /// These operations come after the bank's head.
    case new([WalletOperation])
    /// The offer can't be taken.
    case refused(WalletReply.State)
  }

  private func heads(of offer: WalletOffer) -> [ChainHead] {
    offer.operations.reduce(into: [offer.base]) { $0.append($0[$0.count - 1].appending($1)) }
  }

  private func standing(of offer: WalletOffer, in chain: BankState.Chain, _ storage: some BankStorage) throws
    -> Standing
  {
    let heads = heads(of: offer)
    if let index = heads.firstIndex(of: chain.head) { return .new(Array(offer.operations.dropFirst(index))) }
    if chain.head.count < offer.base.count { return .refused(.from(head: chain.head, common: nil)) }
    let common = try common(of: offer, heads, upTo: chain.head, storage)
    return .refused(
      common.isWhole ? .from(head: chain.head, common: common.head) : .closed(common: common.head))
  }

  /// How much of an offer the bank has on this chain, and whether that is all of it. Operations of which it is no
  /// longer known on which chain they came are taken for its own.
  private func common(of offer: WalletOffer, _ heads: [ChainHead], upTo head: ChainHead, _ storage: some BankStorage)
    throws -> (head: ChainHead, isWhole: Bool)
  {
    var index = 0
    while index < offer.operations.count, heads[index].count < head.count,
      let decided = try storage.decision(on: offer.operations[index].id), decided.chain ?? offer.chain == offer.chain
    { index += 1 }
    return (heads[index], index == offer.operations.count)
  }

  // MARK: Operations

  /// Counts what came on a living chain: together, or as if it had come late.
  private mutating func apply(
    _ unit: [WalletOperation], to id: ChainID, in storage: inout some BankStorage
  ) throws {
    guard let before = state.chains[id] else { return }
    var chain = before
    for operation in unit { chain.head = chain.head.appending(operation) }
    state.chains[id]?.head = chain.head
    let fresh = try unit.filter { try storage.decision(on: $0.id) == nil }
    guard !fresh.isEmpty else { return }
    var grown: [String: Int64] = [:]
    var isCovered = true
    for operation in fresh {
      for movement in operation.movements {
        var totals = chain.totals[movement.currency] ?? WalletTotals()
        grown[movement.currency, default: 0] += movement.earned - movement.spent
        isCovered = isCovered && movement.spent <= totals.rights && totals.count(movement)
        chain.totals[movement.currency] = totals
      }
    }
    isCovered = isCovered && grown.allSatisfy { $1 <= 0 || canGrow($0, by: $1) }
    guard isCovered, try !hasUncounted(unit, in: storage) else { return try applyLate(unit, of: id, in: &storage) }
    state.chains[id] = chain
    for operation in fresh {
      var verdict = WalletDecision.Verdict.accepted
      switch operation.effect {
      case .credit, .debit, .convert: break
      case .giveBack: if !giveBack(operation, on: id) { verdict = .declined }
      case .claim: if try !pay(operation, to: id, in: &storage) { verdict = .declined }
      }
      try record(verdict, on: operation, of: id, in: &storage)
    }
  }

  /// Records a decision, with the goods that an accepted operation grants.
  mutating func record(
    _ verdict: WalletDecision.Verdict, on operation: WalletOperation, of chain: ChainID,
    in storage: inout some BankStorage
  ) throws {
    try storage.recordDecision(verdict, on: operation, of: chain)
    guard verdict.counts, !operation.goods.isEmpty else { return }
    state.goodsNumber += 1
    for good in operation.goods { try storage.addGood(good, 1, number: state.goodsNumber) }
  }

  private mutating func giveBack(_ operation: WalletOperation, on id: ChainID) -> Bool {
    var totals = state.chains[id]?.totals[operation.currency] ?? WalletTotals()
    let movement = WalletOperation.Movement(currency: operation.currency, spent: operation.amount)
    guard operation.amount <= totals.rights, totals.count(movement, isReturn: true) else { return false }
    state.chains[id]?.totals[operation.currency] = totals
    state.pool[operation.currency, default: 0] += operation.amount
    return true
  }

  /// Pays a claim to a chain, or into the pool if the chain is closed.
  mutating func pay(_ claim: WalletOperation, to id: ChainID?, in storage: inout some BankStorage) throws -> Bool {
    guard let key = claim.kind.key, try !storage.isClaimPaid(key), canGrow(claim.currency, by: claim.amount) else {
      return false
    }
    if let id, var totals = Optional(state.chains[id]?.totals[claim.currency] ?? WalletTotals()) {
      let (sum, overflow) = totals.granted.addingReportingOverflow(claim.amount)
      guard !overflow, sum <= Wallet.maximumTotal else { return false }
      totals.granted = sum
      state.chains[id]?.totals[claim.currency] = totals
    } else {
      state.pool[claim.currency, default: 0] += claim.amount
    }
    try storage.markClaimPaid(key)
    return true
  }

  // MARK: Closing

  /// Closes the chains of a device that was removed. Unknown or closed ones stay as they are, and those that another
  /// device offers by now, which has the removed one's store under a new name.
  package mutating func close(
    _ chains: [ChainID], of device: DeviceID? = nil, in storage: inout some BankStorage
  ) throws {
    for id in chains where !faults.keepsRightsOfRemoved {
      if let device, let owner = state.chains[id]?.device, owner != device { continue }
      try close(id, in: &storage)
    }
    try settleWaiting(in: &storage)
  }

  /// Closes `old` and every open chain that descends from it: their rights go back to the pool.
  private mutating func close(_ old: ChainID, sparing new: ChainID, in storage: inout some BankStorage) throws {
    // Whether a chain descends from `old`. Each is looked at once, although many may have a long history in common.
    var descends = [old: true]
    for id in state.chains.keys.sorted() where id != new {
      var (path, next): ([ChainID], ChainID?) = ([], id)
      // Each chain was created after the one that it follows, but the ids come from outside, and may form a ring.
      while let step = next, descends[step] == nil {
        descends[step] = false
        path.append(step)
        next = try state.chains[step]?.follows ?? storage.closedChain(step)?.follows
      }
      guard let end = next, descends[end] == true else { continue }
      for step in path { descends[step] = true }
      try close(id, in: &storage)
    }
  }

  private mutating func close(_ id: ChainID, in storage: inout some BankStorage) throws {
    guard let chain = state.chains[id] else { return }
    for (currency, totals) in chain.totals where totals.rights > 0 {
      state.pool[currency, default: 0] += totals.rights
    }
    state.chains[id] = nil
    state.closedChains += 1
    try storage.recordClosedChain(BankState.ClosedChain(head: chain.head, follows: chain.follows), id)
  }

  // MARK: Replies

  /// Returns a reply that counts nothing.
  private func refusal(
    _ offer: WalletOffer, _ replyState: WalletReply.State, in storage: some BankStorage
  ) throws -> WalletReply {
    WalletReply(
      chain: offer.chain, state: replyState, decisions: try decisions(on: offer.operations, and: [], [], in: storage))
  }

  /// - Parameter hasGranted: Whether the chain has all that it could be granted.
  private func reply(_ offer: WalletOffer, hasGranted: Bool, in storage: some BankStorage) throws -> WalletReply {
    guard let chain = state.chains[offer.chain] else {
      throw ExchangeError.malformed("the wallet chain is missing")
    }
    var reply = WalletReply(
      chain: offer.chain, state: .accepted(chain.head), statement: chain.statement, totals: chain.totals)
    reply.decisions = try decisions(on: offer.operations, and: offer.late, offer.waiting, in: storage)
    let waiting = waitingSpends()
    for currency in currencies { reply.balances[currency] = max(0, balance(currency) - (waiting[currency] ?? 0)) }
    reply.recalled = recall(from: offer.chain)
    reply.goods = try changedGoods(since: offer.goods, in: storage)
    // To a store that has to show a later statement first, nobody is named: it asks again.
    for (currency, amount) in offer.needs where hasGranted && amount > chain.totals[currency]?.rights ?? 0 {
      reply.held[currency] = holdings(of: currency, except: offer.chain)
    }
    return reply
  }

  private func changedGoods(since number: UInt64, in storage: some BankStorage) throws -> WalletGoods? {
    guard number != state.goodsNumber else { return nil }
    // A store that knows more comes from before this bank was set back.
    let after = number > state.goodsNumber ? 0 : number
    let goods = try storage.goods(changedAfter: after, limit: WalletGoods.maximumChanges)
    return WalletGoods(
      after: after, number: goods.last?.number ?? state.goodsNumber,
      counts: Dictionary(goods.map { ($0.name, $0.count) }) { $1 })
  }

  /// If an offer is repeated because a response was lost, the bank replies the same again.
  private func decisions(
    on operations: [WalletOperation], and late: [WalletOperation], _ waiting: [OperationID],
    in storage: some BankStorage
  ) throws -> [WalletDecision] {
    var decisions: [WalletDecision] = []
    func decide(_ operation: WalletOperation, isLate: Bool) throws {
      guard let decided = try storage.decision(on: operation.id) else { return }
      let verdict = decided.fingerprint == operation.fingerprint ? decided.verdict : .idReused
      // A store takes its own operations for accepted, except for claims.
      guard isLate || verdict != .accepted || operation.isClaim else { return }
      decisions.append(WalletDecision(id: operation.id, verdict: verdict))
    }
    for operation in operations { try decide(operation, isLate: false) }
    for operation in late { try decide(operation, isLate: true) }
    for id in waiting {
      let verdict = try storage.decision(on: id)?.verdict ?? .unknown
      if verdict != .waiting { decisions.append(WalletDecision(id: id, verdict: verdict)) }
    }
    return decisions
  }

  private static func check(_ offer: WalletOffer) throws {
    guard offer.base.count <= Cursor.maximumSeq, offer.statement <= Cursor.maximumSeq,
      offer.goods <= Cursor.maximumSeq
    else {
      throw ExchangeError.malformed("the wallet chain is too long")
    }
    guard offer.operations.count <= Wallet.maximumBatch, offer.late.count <= Wallet.maximumBatch,
      offer.waiting.count <= Wallet.maximumBatch
    else { throw ExchangeError.tooMany("wallet operations") }
    guard offer.needs.count <= Wallet.maximumNeeds else { throw ExchangeError.tooMany("needs of the wallet") }
    guard Wallet.arePossible(offer.needs) else { throw ExchangeError.malformed("a need is out of range") }
    guard offer.follows != offer.chain else { throw ExchangeError.malformed("a wallet chain can't follow itself") }
    for unit in offer.operations.units + offer.late.units where unit.count > Wallet.maximumGroup {
      throw ExchangeError.tooMany("wallet operations that count together")
    }
    for operation in offer.operations + offer.late {
      do { try operation.check() } catch { throw ExchangeError.malformed("a wallet operation: \(error)") }
    }
  }
}

extension BankState.Chain {
  /// Whether a statement on this chain says the same as one on `other`.
  fileprivate func says(_ other: BankState.Chain) -> Bool { head == other.head && totals == other.totals }
}
