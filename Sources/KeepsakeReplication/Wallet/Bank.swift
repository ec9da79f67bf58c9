import Foundation

/// The cloud's side of the wallet: handles a store's offer, in the transaction of the exchange.
///
/// Money is either in the pool or a right of a chain; only operations create or destroy it, once each. The bank never
/// lets the pool or a chain's rights fall below zero.
///
/// A bank that was restored from a backup gets back what it had granted and decided since (Bank+Restored.swift).
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
  /// How often in an answer what waits is looked at before something is declined.
  static let maximumSettlements = 8
  /// When a device was seen is recorded this exactly, so that an exchange seldom writes it.
  static let seenMilliseconds: Int64 = 3_600_000

  package var state: BankState
  /// What the spends that wait will take from the pool, by currency: kept, because it is asked for each of them.
  var waitingSums: [String: Int64]
  /// How often what waits was looked at before something was declined.
  var settlements = 0
  /// The server's clock.
  let now: Int64
  let rules: BankRules
  /// Bugs planted by a test.
  let faults: Faults

  package init(_ state: BankState, now: Int64 = 0, rules: BankRules = BankRules(), faults: Faults = Faults()) {
    (self.state, self.now, self.rules, self.faults) = (state, now, rules, faults)
    waitingSums = Self.sums(of: state.waiting)
  }

  /// Replies to an offer, and records decisions in `storage`. The caller stores `state` if it has changed.
  ///
  /// A chain that follows another one gets no rights, and none of its operations counts, until a device offers it that
  /// has the bank's first statement on it. Otherwise a delayed copy of a request whose store was restored meanwhile
  /// would leave money on a chain that nobody has.
  ///
  /// - Parameter device: The device that makes the offer; nil in a cloud that knows no devices.
  /// - Throws: ``ExchangeError`` for an offer that exceeds a limit, and what the storage throws.
  package mutating func answer(
    _ offered: WalletOffer, from device: DeviceID? = nil, in storage: inout some BankStorage
  ) throws -> WalletReply {
    var offer = offered
    try Self.check(offer)
    let empty = ChainHead(emptyChain: offer.chain)
    let goodsBefore = state.goodsNumber
    setBack(to: rules.epoch)
    // A store that knows nothing of epochs shows nothing, and goes on with what the bank has.
    if !offer.knowsRestores { offer.epoch = epoch }
    let closed = try storage.closedChain(offer.chain)
    let known = state.chains[offer.chain]
    if isToShow(offer, known, closed) {
      return WalletReply(chain: offer.chain, state: .restored, epoch: epoch)
    }
    let proof = proof(in: offer)
    if let proof, isLater(proof, than: known, closed) {
      setBack(to: max(epoch, proof.epoch) + 1)
    } else if known == nil, closed == nil, let shown = try laterFormer(offer, in: storage) {
      setBack(to: max(epoch, shown.epoch) + 1)
      if offer.proving == nil { return WalletReply(chain: offer.chain, state: .restored, epoch: epoch) }
    }
    if let closed {
      let common = try common(of: offer, heads(of: offer), upTo: closed.head, storage)
      if offer.leaving != nil, let voucher = try storage.voucher(of: offer.chain) {
        return try departure(offer, after: common.head, voucher, in: storage)
      }
      return try refusal(offer, .closed(common: common.head), in: storage)
    }
    if state.chains[offer.chain] == nil {
      guard offer.base == empty || offer.skipsLost && offer.base == proof?.head else {
        return try refusal(offer, .from(head: empty, common: nil), in: storage)
      }
      if offer.bringsNothing {
        if let reply = try emptyDeparture(offer, in: &storage) { return reply }
        // Nothing has ever been earned or spent: a game without a wallet costs the bank nothing.
        if state.isEmpty {
          return WalletReply(chain: offer.chain, state: .accepted(empty), authoritative: rules.listed)
        }
      }
      let isTrusted = proof != nil || hasProvenFormer(offer) || continuesReplay(offer)
      try begin(offer, at: empty, isTrusted: isTrusted, in: &storage)
      // A request from before the restore that was held up: its store has a statement to show.
      let isOlder = rules.seal != nil && offer.epoch != epoch
      if isTrusted || isOlder {
        state.chains[offer.chain]?.restored = BankState.Restored(statement: 0)
        state.chains[offer.chain]?.restored?.isProven = isTrusted && proof == nil
        // A store that follows another chain shares in what the bank still believes of that one's store.
        if isTrusted { trustMore(besides: proof != nil) }
      }
    }
    if let proof { take(proof, on: offer.chain, isWhole: offer.skipsLost && offer.base == proof.head) }
    guard let before = state.chains[offer.chain] else { throw ExchangeError.malformed("the wallet chain is missing") }
    let operations: [WalletOperation]
    switch try standing(of: offer, in: before, storage) {
    case .new(let new): operations = new
    case .refused(let reason): return try refusal(offer, reason, in: storage)
    }
    let isVerified = leadsToProof(offer, isShowing: proof != nil)
    state.chains[offer.chain]?.device = device ?? before.device
    if now - before.seenMilliseconds >= Self.seenMilliseconds {
      state.chains[offer.chain]?.seenMilliseconds = now - now % Self.seenMilliseconds
    }
    if offer.statement > 0 { state.chains[offer.chain]?.isShown = true }
    if state.chains[offer.chain]?.isShown == true {
      for unit in operations.units where try !apply(unit, to: offer.chain, isVerified, in: &storage) { break }
    }
    var again = state.chains[offer.chain]?.restored?.isProven == true ? offer.again : 0
    for unit in offer.late.units {
      let isSettled = try again >= unit.count && trusts(unit, in: storage)
      try applyLate(unit, of: offer.follows ?? offer.chain, mayBeLeft: true, isSettled: isSettled, in: &storage)
      again -= unit.count
    }
    note(offer.needs, of: offer.chain)
    noteReported(offer)
    try openIfReported(in: &storage)
    let vouchers = try take(offer.vouchers, in: &storage)
    if let reply = try leave(offer, with: vouchers, in: &storage) { return reply }
    try settleWaiting(in: &storage)
    let mayGrant = mayGrant(offer, before)
    // A chain that is to leave takes along what it has, and not what others left in the pool.
    if state.chains[offer.chain]?.isShown == true, mayGrant, offer.leaving == nil { grant(to: offer.chain) }
    // A store that shows a later statement, and can't prove it, has it from before the bank was set back.
    let isSetBack = offer.statement > before.statement
    if var chain = state.chains[offer.chain],
      chain.statement == 0 || isSetBack || offer.epoch != epoch || !chain.says(before)
    {
      chain.statement = max(chain.statement, offer.statement) + 1
      state.chains[offer.chain] = chain
    }
    var reply = try reply(offer, goodsBefore: goodsBefore, hasGranted: mayGrant && !isFrozen, in: storage)
    (reply.takenVouchers, reply.declinedVouchers) = (vouchers.taken, vouchers.declined)
    return reply
  }

  /// - Parameter isTrusted: Whether the store has shown a statement of a bank that was set back.
  private mutating func begin(
    _ offer: WalletOffer, at empty: ChainHead, isTrusted: Bool, in storage: inout some BankStorage
  ) throws {
    guard state.chains.count + state.closedChains < Self.maximumChains, state.chains.count < Self.maximumOpenChains
    else {
      throw ExchangeError.tooMany("wallet chains")
    }
    var chain = BankState.Chain(head: empty, follows: offer.follows)
    if faults.countsUnshownChains { chain.isShown = true }
    state.chains[offer.chain] = chain
    // Only a bank that was set back may not know that a chain before that one was followed.
    let older = offer.proving == nil ? [] : offer.ancestors
    let former = ([offer.follows].compactMap(\.self) + older).filter { $0 != offer.chain }
    guard !former.isEmpty else { return }
    try close(Set(former), sparing: offer.chain, in: &storage)
    // Anybody else could make up as many chains as a player can have.
    if isTrusted { try recordLost(former, in: &storage) }
  }

  // MARK: Operations

  /// Counts what came on a living chain: together, or as if it had come late.
  ///
  /// - Parameter isVerified: Whether what the bank had of the chain before it was set back is known to be this.
  /// - Returns: Whether the bank can go on; false, with nothing counted, if it was set back and can't decide this yet.
  private mutating func apply(
    _ unit: [WalletOperation], to id: ChainID, _ isVerified: Bool, in storage: inout some BankStorage
  ) throws -> Bool {
    guard let before = state.chains[id] else { return false }
    var chain = before
    for operation in unit { chain.head = chain.head.appending(operation) }
    // In place of what the bank had before it was set back.
    let isReplayed = before.restored.map { chain.head.count <= $0.count } ?? false
    let fresh = try unit.filter { try storage.decision(on: $0.id) == nil }
    if isFrozen, !isReplayed, fresh.contains(where: \.isClaim) { return false }
    guard !fresh.isEmpty else {
      state.chains[id]?.head = chain.head
      return true
    }
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
    let isAllowed = isReplayed && isVerified || !hasForbidden(fresh)
    let isCounted = try isCovered && isAllowed && !hasUncounted(unit, in: storage)
    if isFrozen, !isReplayed, !isCounted, !hasForbidden(fresh) { return false }
    guard isCounted else {
      state.chains[id]?.head = chain.head
      let isSettled = try isReplayed && (isVerified || trusts(unit, in: storage))
      try applyLate(unit, of: id, isSettled: isSettled, in: &storage)
      return true
    }
    state.chains[id] = chain
    for operation in fresh {
      var verdict = WalletDecision.Verdict.accepted
      switch operation.effect {
      case .credit, .debit, .convert: break
      case .giveBack: if !giveBack(operation, on: id) { verdict = .declined }
      // What was paid before the bank was set back is among what the chain's statement says.
      case .claim: if try !pay(operation, to: isReplayed ? nil : id, in: &storage) { verdict = .declined }
      }
      try record(verdict, on: operation, of: id, in: &storage)
    }
    return true
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
    deposit(operation.amount, of: operation.currency)
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
      deposit(claim.amount, of: claim.currency)
    }
    try storage.markClaimPaid(key, ClaimPayment(currency: claim.currency, amount: claim.amount))
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
    try openIfReported(in: &storage)
    try settleWaiting(in: &storage)
  }

  /// Closes these chains and every open one that descends from one of them: their rights go back to the pool.
  private mutating func close(
    _ former: Set<ChainID>, sparing new: ChainID, in storage: inout some BankStorage
  ) throws {
    // Whether a chain descends from them. Each is looked at once, although many may have a long history in common.
    var descends = Dictionary(uniqueKeysWithValues: former.map { ($0, true) })
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

  /// Records the chains that a bank which was set back doesn't know, as closed ones: a copy of the store from the time
  /// of one of them has to find what descends from it.
  ///
  /// - Parameter former: Each follows the next one.
  private mutating func recordLost(_ former: [ChainID], in storage: inout some BankStorage) throws {
    for (index, id) in former.enumerated() {
      guard state.chains.count + state.closedChains < Self.maximumChains else { return }
      guard try state.chains[id] == nil && storage.closedChain(id) == nil else { continue }
      let follows = index + 1 < former.count ? former[index + 1] : nil
      try storage.recordClosedChain(BankState.ClosedChain(head: ChainHead(emptyChain: id), follows: follows), id)
      state.closedChains += 1
    }
  }

  private mutating func close(_ id: ChainID, in storage: inout some BankStorage) throws {
    guard let chain = removeOpenChain(id) else { return }
    try storage.recordClosedChain(BankState.ClosedChain(head: chain.head, follows: chain.follows), id)
  }

  /// Takes a chain from the open ones: its rights go back to the pool. The caller records it as closed.
  mutating func removeOpenChain(_ id: ChainID) -> BankState.Chain? {
    guard let chain = state.chains.removeValue(forKey: id) else { return nil }
    for (currency, totals) in chain.totals where totals.rights > 0 { deposit(totals.rights, of: currency) }
    state.closedChains += 1
    if chain.restored?.isProven == true { noteReplay(of: id) }
    return chain
  }

  // MARK: Replies

  /// Returns a reply that counts nothing.
  private func refusal(
    _ offer: WalletOffer, _ replyState: WalletReply.State, in storage: some BankStorage
  ) throws -> WalletReply {
    WalletReply(
      chain: offer.chain, state: replyState, epoch: epoch,
      decisions: try decisions(for: offer, isRefused: true, in: storage), proof: try headStatement(offer, in: storage))
  }

  /// - Parameters:
  ///   - goodsBefore: The number of the last change of goods before this offer.
  ///   - hasGranted: Whether the chain has all that it could be granted.
  private func reply(
    _ offer: WalletOffer, goodsBefore: UInt64, hasGranted: Bool, in storage: some BankStorage
  ) throws -> WalletReply {
    guard let chain = state.chains[offer.chain] else {
      throw ExchangeError.malformed("the wallet chain is missing")
    }
    let statement = WalletStatement(
      epoch: epoch, number: chain.statement, head: chain.head, totals: chain.totals)
    var reply = WalletReply(
      chain: offer.chain, state: .accepted(chain.head), statement: chain.statement, epoch: epoch,
      code: rules.seal?.signed(statement, on: offer.chain).code ?? Data(), totals: chain.totals)
    reply.decisions = try decisions(for: offer, in: storage)
    reply.balances = shownBalances()
    reply.orders = try newOrders(since: offer.orders, in: storage)
    reply.owed = state.debts ?? [:]
    reply.authoritative = rules.listed
    reply.recalled = recall(from: offer.chain)
    reply.goods = try changedGoods(since: offer.goods, isLater: offer.goods > goodsBefore, in: storage)
    // To a store that has to show a later statement first, nobody is named: it asks again.
    for (currency, amount) in offer.needs where hasGranted && amount > chain.totals[currency]?.rights ?? 0 {
      reply.held[currency] = holdings(of: currency, except: offer.chain)
    }
    return reply
  }

  /// - Parameter isLater: Whether the store knew more than the bank did: it does so from before this bank was set back,
  ///   and the same number stands for something else by now.
  private func changedGoods(since number: UInt64, isLater: Bool, in storage: some BankStorage) throws -> WalletGoods? {
    guard isLater || number != state.goodsNumber else { return nil }
    let after = isLater ? 0 : number
    let goods = try storage.goods(changedAfter: after, limit: WalletGoods.maximumChanges)
    return WalletGoods(
      after: after, number: goods.last?.number ?? state.goodsNumber,
      counts: Dictionary(goods.map { ($0.name, $0.count) }) { $1 })
  }

  /// If an offer is repeated because a response was lost, the bank replies the same again.
  ///
  /// - Parameter isRefused: Whether only the operations of the chain are told about.
  func decisions(
    for offer: WalletOffer, isRefused: Bool = false, in storage: some BankStorage
  ) throws -> [WalletDecision] {
    var decisions: [WalletDecision] = []
    func decide(_ operation: WalletOperation, isLate: Bool) throws {
      guard let decided = try storage.decision(on: operation.id) else { return }
      var verdict = decided.fingerprint == operation.fingerprint ? decided.verdict : .idReused
      if verdict == .declined, offer.knowsAuthoritative, rules.forbids(operation) { verdict = .notAllowed }
      // A store takes its own operations for accepted, except for claims.
      guard isLate || verdict != .accepted || operation.isClaim else { return }
      decisions.append(WalletDecision(id: operation.id, verdict: verdict))
    }
    for operation in offer.operations { try decide(operation, isLate: false) }
    guard !isRefused else { return decisions }
    for operation in offer.late { try decide(operation, isLate: true) }
    for id in offer.waiting {
      let verdict = try storage.decision(on: id)?.verdict ?? .unknown
      if verdict != .waiting { decisions.append(WalletDecision(id: id, verdict: verdict)) }
    }
    return decisions
  }
}

extension BankState.Chain {
  /// Whether a statement on this chain says the same as one on `other`.
  fileprivate func says(_ other: BankState.Chain) -> Bool { head == other.head && totals == other.totals }
}
