import Crypto
import Foundation

// A bank that was set back to a backup. The devices show what it had granted since, and offer again what it had
// decided. Until all of them have, it is frozen: what it still has may have been granted already.
extension Bank {
  /// For each store, of how many operations a bank that was set back believes that it had settled them: as many as a
  /// store's ledger keeps of those that the bank has settled.
  package static let maximumTrusted = 10_000
  /// How many copies of a store are believed, each for itself, that they follow the same chain.
  static let maximumCopies = 4

  /// How often it was set back.
  package var epoch: UInt64 { state.epoch ?? 0 }

  package var isFrozen: Bool { state.isFrozen ?? false }

  /// The open chains whose stores haven't shown yet what the bank had granted.
  package var unreported: [ChainID: BankState.Chain] {
    // On a chain of which no statement was shown nothing counts, but one that follows a proven one has late operations.
    state.chains.filter { _, chain in chain.restored.map { chain.isShown || $0.isProven } ?? false }
  }

  /// Begins a new epoch, because the bank's state is that of a backup.
  package mutating func setBack(to epoch: UInt64) {
    guard epoch > self.epoch else { return }
    (state.epoch, state.provenFormers, state.replaying) = (epoch, nil, nil)
    for (id, chain) in state.chains {
      state.chains[id]?.restored = BankState.Restored(statement: chain.statement)
    }
    guard !state.chains.isEmpty else { return }
    state.isFrozen = true
    state.trusted = state.chains.count * Self.maximumTrusted
  }

  /// Ends the time in which the bank is frozen, although some devices may be missing: what they were granted is paid
  /// from the pool when they come, and booked as a shortfall if the pool doesn't have it.
  package mutating func release(in storage: inout some BankStorage) throws {
    state.isFrozen = nil
    try bookMissing(in: &storage)
    try settleWaiting(in: &storage)
  }

  /// Ends that time when all have reported.
  mutating func openIfReported(in storage: inout some BankStorage) throws {
    if isFrozen, unreported.isEmpty { state.isFrozen = nil }
    if state.chains.values.allSatisfy({ $0.restored == nil }) { state.trusted = nil }
    // Also in an open bank, a store that has shown a statement first brings what it returned since.
    guard !state.chains.values.contains(where: { $0.restored?.isProven == true }) else { return }
    try bookMissing(in: &storage)
  }

  /// Books what devices were granted and nobody has brought: the player keeps it.
  private mutating func bookMissing(in storage: inout some BankStorage) throws {
    guard !isFrozen, let missing = state.missing else { return }
    state.missing = nil
    for (currency, amount) in missing.sorted(by: { $0.key < $1.key }) where amount > 0 {
      let number = (state.orderNumber ?? 0) + 1
      state.orderNumber = number
      let order = BankOrder(
        id: BankOrder.shortfallID(epoch: epoch, number: number, currency: currency), kind: .shortfall,
        currency: currency, amount: amount, reason: "restore shortfall", madeAtMilliseconds: now)
      try storage.recordOrder(NumberedOrder(number: number, order: order))
    }
  }

  // MARK: What devices show

  /// Returns whether a store has to show its newest statement before its offer can be handled.
  func isToShow(_ offer: WalletOffer, _ chain: BankState.Chain?, _ closed: BankState.ClosedChain?) -> Bool {
    guard rules.seal != nil, offer.knowsRestores, offer.proving != epoch, offer.statement > 0 || offer.follows != nil
    else { return false }
    // A request that was made for an earlier restore says nothing about this one.
    if offer.epoch != epoch || offer.proving != nil { return true }
    // Nobody has noticed yet that this is a backup.
    return isBeyond(offer.base, chain, closed) || closed == nil && offer.statement > chain?.statement ?? 0
  }

  /// Returns whether a statement of this bank on a chain is later than the bank itself: the bank was set back, and
  /// nobody has said so.
  func isLater(
    _ proof: WalletStatement, than chain: BankState.Chain?, _ closed: BankState.ClosedChain?
  ) -> Bool {
    guard proof.epoch == epoch else { return proof.epoch > epoch }
    return isBeyond(proof.head, chain, closed) || closed == nil && proof.number > chain?.statement ?? 0
  }

  /// Whether a head that a bank has acknowledged isn't among those that this one can have acknowledged. It remembers
  /// only the newest.
  private func isBeyond(
    _ head: ChainHead, _ chain: BankState.Chain?, _ closed: BankState.ClosedChain?
  ) -> Bool {
    guard let known = chain?.head ?? closed?.head else { return false }
    return head.count > known.count || head.count == known.count && head != known
  }

  /// Returns the statement that an offer shows of its chain, with the totals, if this bank made it.
  func proof(in offer: WalletOffer) -> WalletStatement? {
    guard offer.proving != nil, let proof = offer.proof, proof.isOfHead != true, let seal = rules.seal,
      seal.isValid(proof, on: offer.chain)
    else {
      return nil
    }
    return proof
  }

  /// Returns the statement that an offer shows of a chain which its own one follows, if this bank made it.
  func formerProof(in offer: WalletOffer) -> (chain: ChainID, statement: WalletStatement)? {
    guard let proof = offer.proof, let seal = rules.seal,
      let chain = offer.formers.first(where: { seal.isValid(proof, on: $0) })
    else { return nil }
    return (chain, proof)
  }

  /// Returns the statement by which an offer of a new chain shows that the bank was set back, and nobody has said so:
  /// it is later than the bank itself, or it settled operations of which the bank knows nothing. Where copies of a
  /// store have continued a chain, only the second tells.
  func laterFormer(_ offer: WalletOffer, in storage: some BankStorage) throws -> WalletStatement? {
    if let (former, shown) = formerProof(in: offer),
      try isLater(shown, than: state.chains[former], storage.closedChain(former))
    {
      return shown
    }
    guard let settled = offer.settled, let seal = rules.seal, settled.areLinked,
      try settled.operations.contains(where: { try storage.decision(on: $0.id) == nil }),
      offer.formers.contains(where: { seal.isValid(settled.statement, on: $0) })
    else { return nil }
    return settled.statement
  }

  /// Returns a statement for a store that has to continue with another chain, which may know nothing else of the bank:
  /// where this bank has the chain, and never what the offer says. Nil if the bank has no such chain.
  func headStatement(_ offer: WalletOffer, in storage: some BankStorage) throws -> WalletStatement? {
    guard let seal = rules.seal, offer.knowsRestores else { return nil }
    if let chain = state.chains[offer.chain] {
      guard chain.statement > 0 else { return nil }
      return seal.signed(
        WalletStatement(epoch: epoch, number: chain.statement, headOfChain: chain.head), on: offer.chain)
    }
    // It is later than any that a bank which still has the chain open has made.
    return try storage.closedChain(offer.chain).map {
      seal.signed(
        WalletStatement(epoch: epoch, number: WalletStatement.numberOfClosed, headOfChain: $0.head), on: offer.chain)
    }
  }

  /// Returns whether an offer of a new chain shows a statement of this bank on a chain that it follows, and notes that.
  /// In an epoch, each chain proves this once for each copy that its store can have: otherwise an old statement would
  /// be good for ever.
  mutating func hasProvenFormer(_ offer: WalletOffer) -> Bool {
    guard offer.proving != nil, let (former, proof) = formerProof(in: offer), proof.epoch < epoch else { return false }
    let known = state.provenFormers ?? []
    guard known.count < Self.maximumOpenChains, known.count(where: { $0 == former }) < Self.maximumCopies else {
      return false
    }
    state.provenFormers = known + [former]
    return true
  }

  /// Notes that a chain was closed, as by the removal of its device, before its store had brought everything.
  mutating func noteReplay(of id: ChainID) {
    let known = state.replaying ?? []
    guard known.count < Self.maximumOpenChains else { return }
    state.replaying = known + [id]
  }

  /// Returns whether an offer of a new chain goes on with what its store was bringing on a former one, and notes that:
  /// what is left of it is believed once.
  mutating func continuesReplay(_ offer: WalletOffer) -> Bool {
    guard offer.again > 0, let known = state.replaying,
      let index = known.firstIndex(where: { $0 == offer.follows || offer.ancestors.contains($0) })
    else { return false }
    var left = known
    left.remove(at: index)
    state.replaying = left.isEmpty ? nil : left
    return true
  }

  /// Takes from a statement what the bank had granted and paid since the backup.
  ///
  /// The claims among the operations that the chain's store offers again were paid with it.
  ///
  /// - Parameter isWhole: Whether to continue after the statement, because the store doesn't have the operations any
  ///   more.
  mutating func take(_ proof: WalletStatement, on id: ChainID, isWhole: Bool) {
    guard var chain = state.chains[id], var restored = chain.restored, proof.epoch < epoch else { return }
    if !restored.isProven { trustMore(besides: false) }
    restored.isProven = true
    // After it had shown this, the store was asked for the operations, and found that it doesn't have them any more.
    let isLeft = isWhole && proof.number == restored.statement && chain.head.count < proof.head.count
    // A request that was held up may have got a statement of the same number since.
    let isNewer = proof.number > restored.statement || isBeyond(proof.head, chain, nil)
    if isLeft || isNewer, !faults.forgetsProofs {
      for (currency, shown) in proof.totals {
        var totals = chain.totals[currency] ?? WalletTotals()
        var change = shown.granted - totals.granted
        totals.granted = shown.granted
        if isWhole {
          change -= shown.returned - totals.returned
          totals = shown
        }
        chain.totals[currency] = totals
        if change > 0 { takeTrusted(change, of: currency) } else { deposit(-change, of: currency) }
      }
      if isWhole { chain.head = proof.head }
      (restored.statement, restored.head) = (proof.number, proof.head)
      chain.isShown = true
      chain.statement = max(chain.statement, proof.number)
    }
    chain.restored = restored
    state.chains[id] = chain
  }

  /// Returns whether an offer of a chain has all that the bank had of it before it was set back, which ends with the
  /// head of the statement that was shown. The operations before, which come in several offers if they are many, can't
  /// be told from others until then.
  ///
  /// An offer that passes that head is of a copy of the store, or made up: from now on, nothing on the chain is taken
  /// for what the bank had, nor anything that its store calls settled, unless that store shows a statement of its own.
  ///
  /// - Parameters:
  ///   - offer: It continues the bank's chain.
  ///   - isShowing: Whether it shows a statement.
  mutating func leadsToProof(_ offer: WalletOffer, isShowing: Bool) -> Bool {
    let id = offer.chain
    guard let chain = state.chains[id], let head = chain.restored?.head, chain.head.count <= head.count else {
      return false
    }
    let heads = heads(of: offer)
    if heads.contains(head) { return true }
    guard let last = heads.last, last.count >= head.count else { return false }
    state.chains[id]?.restored?.head = nil
    state.chains[id]?.restored?.isProven = isShowing
    return false
  }

  /// Believes a store that has shown a statement.
  ///
  /// - Parameter besides: Whether that comes on top of what the bank still believes, because it didn't know the chain.
  mutating func trustMore(besides: Bool) {
    let left = state.trusted.map { besides ? $0 + Self.maximumTrusted : $0 }
    state.trusted = left ?? Self.maximumTrusted
  }

  /// Returns whether the bank takes a store's word for it that it had settled these operations, which it does a limited
  /// number of times: nothing proves it.
  mutating func trusts(_ unit: [WalletOperation], in storage: some BankStorage) throws -> Bool {
    let count = try unit.count { try storage.decision(on: $0.id)?.verdict.isFinal != true }
    guard count > 0 else { return true }
    guard let left = state.trusted, left >= count else { return false }
    state.trusted = left - count
    return true
  }

  /// Records that a chain's store has shown everything, if that is so.
  mutating func noteReported(_ offer: WalletOffer) {
    guard let chain = state.chains[offer.chain], let restored = chain.restored,
      offer.proving != nil || offer.epoch == epoch, chain.head.count >= restored.count, offer.again <= offer.late.count
    else { return }
    state.chains[offer.chain]?.restored = nil
  }

  /// Takes money out of the pool that a device has shown, or spent, before the bank was set back. What the pool doesn't
  /// have is missing.
  mutating func takeTrusted(_ amount: Int64, of currency: String) {
    let held = max(0, state.pool[currency] ?? 0)
    let taken = min(held, amount)
    // Also of nothing: the currency is one that the player has.
    state.pool[currency] = held - taken
    guard taken < amount else { return }
    var missing = state.missing ?? [:]
    missing[currency] = min((missing[currency] ?? 0).addingClamped(amount - taken), Wallet.maximumTotal)
    state.missing = missing
  }
}

extension BankOrder {
  fileprivate static func shortfallID(epoch: UInt64, number: UInt64, currency: String) -> OperationID {
    OperationID(derivedFrom: "shortfall \(epoch) \(number) \(currency)")
  }
}

extension NumberedOrder {
  /// Returns whether it is a shortfall that the bank booked in this epoch.
  package func isShortfall(of epoch: UInt64) -> Bool {
    order.kind == .shortfall
      && order.id == BankOrder.shortfallID(epoch: epoch, number: number, currency: order.currency)
  }
}

extension OperationID {
  /// Creates an id that is always the same for the same text.
  package init(derivedFrom text: String) {
    let words = SHA256.hash(data: Data(text.utf8)).withUnsafeBytes { bytes in
      [0, 8].map { UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: $0, as: UInt64.self)) }
    }
    self.init(high: words[0], low: words[1])
  }
}
