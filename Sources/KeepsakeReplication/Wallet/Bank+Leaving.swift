// Money that a device takes along to another bank.
extension Bank {
  // MARK: The bank that is left

  /// Closes the chain of a store that leaves, as soon as everything that it offered is decided, and issues the voucher
  /// for what the chain held; of the last open chain, for everything that the player has here.
  ///
  /// Debts, and spends that waited for the chain's rights, are charged before. A bank that was set back lets nobody
  /// leave before it knows what it had granted; one without a seal can't issue a voucher. Nor does a store leave while
  /// a voucher that it shows can't be paid: it would come back with it on chain after chain.
  ///
  /// - Parameter paid: The vouchers that came with the offer: their money leaves with the chain.
  /// - Returns: Nil if the chain can't leave yet.
  mutating func leave(
    _ offer: WalletOffer, with paid: VoucherOutcome, in storage: inout some BankStorage
  ) throws -> WalletReply? {
    guard let receiver = offer.leaving, let seal = rules.seal, !isFrozen,
      let chain = state.chains[offer.chain], chain.isShown, chain.restored == nil,
      paid.taken.count + paid.declined.count == offer.vouchers.count
    else { return nil }
    let isLast = state.chains.count == 1
    guard try isDecided(offer, isLast: isLast, in: storage) else { return nil }
    _ = removeOpenChain(offer.chain)
    try settleWaiting(in: &storage)
    var amounts: [String: Int64] = [:]
    // One that goes on at this very bank leaves its money in the pool.
    if receiver != seal.bank {
      let promised = promised()
      for currency in currencies {
        let free = (state.pool[currency] ?? 0).addingClamped(-(promised[currency] ?? 0))
        let own = (chain.totals[currency]?.rights ?? 0) + (paid.amounts[currency] ?? 0)
        let amount = isLast ? free : min(free, own)
        guard amount > 0 else { continue }
        amounts[currency] = amount
        withdraw(amount, of: currency)
      }
    }
    let voucher = seal.signed(
      WalletVoucher(
        bank: seal.bank, chain: offer.chain, receiver: receiver, amounts: amounts,
        // Every claim that was paid here, whichever device it was paid to: it counts once for the player, who is now
        // the other one.
        claims: receiver == seal.bank ? [] : try storage.payments(limit: WalletVoucher.maximumClaims)))
    if receiver != seal.bank { state.hasLeft = true }
    try storage.recordClosedChain(BankState.ClosedChain(head: chain.head, follows: chain.follows), offer.chain)
    try storage.recordVoucher(voucher)
    var reply = try departure(offer, after: chain.head, voucher, in: storage)
    (reply.takenVouchers, reply.declinedVouchers) = (paid.taken, paid.declined)
    return reply
  }

  /// Returns whether the bank has every late operation of a store, and none of its spends waits for other devices. With
  /// the last chain, which nobody else can return anything to, those that wait are decided.
  private func isDecided(_ offer: WalletOffer, isLast: Bool, in storage: some BankStorage) throws -> Bool {
    for operation in offer.late {
      guard let decided = try storage.decision(on: operation.id), isLast || decided.verdict.isFinal else {
        return false
      }
    }
    if isLast { return true }
    return try !state.waiting.contains { $0.chain == offer.chain || $0.chain == offer.follows }
      && offer.waiting.allSatisfy { try storage.decision(on: $0)?.verdict != .waiting }
  }

  /// Returns the reply to a store whose chain has left: the same whenever it asks, and to a copy of the store, which
  /// may have more operations.
  func departure(
    _ offer: WalletOffer, after common: ChainHead, _ voucher: WalletVoucher, in storage: some BankStorage
  ) throws -> WalletReply {
    WalletReply(
      chain: offer.chain, state: .closed(common: common), epoch: epoch,
      decisions: try decisions(for: offer, in: storage), voucher: voucher,
      proof: try headStatement(offer, in: storage))
  }

  /// Returns the reply to a store that leaves with an unknown chain, on which it has brought nothing, and for which
  /// there is nothing; nil for any other store, and for the last one, which gets what is left in the pool.
  ///
  /// No claims are listed: it costs a short row. Without it, a request of the chain that was held up would begin it,
  /// with a share of the money, after its store has gone. A bank without a wallet records nothing.
  mutating func emptyDeparture(_ offer: WalletOffer, in storage: inout some BankStorage) throws -> WalletReply? {
    guard let receiver = offer.leaving, let seal = rules.seal, offer.bringsNothing,
      state.isEmpty || !isFrozen && (!state.chains.isEmpty || state.pool.values.allSatisfy { $0 <= 0 })
    else { return nil }
    let head = ChainHead(emptyChain: offer.chain)
    let voucher = seal.signed(
      WalletVoucher(bank: seal.bank, chain: offer.chain, receiver: receiver, amounts: [:]))
    if !state.isEmpty, state.chains.count + state.closedChains < Self.maximumChains {
      state.closedChains += 1
      try storage.recordClosedChain(BankState.ClosedChain(head: head, follows: offer.follows), offer.chain)
      try storage.recordVoucher(voucher)
    }
    return try departure(offer, after: head, voucher, in: storage)
  }

  // MARK: The bank that pays

  /// What became of the vouchers that a store showed.
  struct VoucherOutcome {
    /// The chains of those that are paid, now or before.
    var taken: [ChainID] = []
    /// The chains of those that this bank will never pay.
    var declined: [ChainID] = []
    /// What was paid now, by currency.
    var amounts: [String: Int64] = [:]
  }

  /// Pays vouchers into the pool, each once. One that can't be paid yet, because the player would have too much or the
  /// bank was set back, is left for later; so are all at a bank without a seal, which can't tell who issued them. One
  /// whose order's id a device has used for an operation stays unpaid, and with the device that shows it.
  mutating func take(_ vouchers: [WalletVoucher], in storage: inout some BankStorage) throws -> VoucherOutcome {
    var outcome = VoucherOutcome()
    guard let seal = rules.seal, !isFrozen else { return outcome }
    for voucher in vouchers {
      guard seal.isValid(voucher), Wallet.arePossible(voucher.amounts) else {
        outcome.declined.append(voucher.chain)
        continue
      }
      if try faults.paysVouchersTwice || !storage.isVoucherPaid(voucher.chain, of: voucher.bank) {
        guard let amounts = try pay(voucher, in: &storage) else { continue }
        outcome.amounts.merge(amounts) { $0.addingClamped($1) }
      }
      outcome.taken.append(voucher.chain)
    }
    return outcome
  }

  /// Pays a voucher, less the claims that were paid here, too: each counts once for a player. Of those that an earlier
  /// voucher of the same bank has brought, only what that one hadn't enough for is subtracted.
  ///
  /// - Returns: What was paid; nil, with nothing changed, if the player would have too much, or an id is in use.
  private mutating func pay(
    _ voucher: WalletVoucher, in storage: inout some BankStorage
  ) throws -> [String: Int64]? {
    var amounts = voucher.amounts.filter { $0.value > 0 }
    // What there is no room for may be shown in each exchange: it doesn't cost looking at its claims.
    guard amounts.allSatisfy({ canGrow($0, by: $1) }),
      Set(currencies).union(amounts.keys).count <= Wallet.maximumCurrencies,
      try amounts.keys.allSatisfy({ try isFree(voucher.orderID(for: $0), in: storage) })
    else { return nil }
    /// What is still to be subtracted of a claim, where that changes.
    var changes: [(claim: WalletVoucher.Claim, left: Int64)] = []
    for claim in voucher.claims where !faults.paysClaimsAfterAdoption {
      let known = try storage.vouchedClaim(claim.key, by: voucher.bank)
      var left = try known ?? (storage.isClaimPaid(claim.key) ? max(0, claim.amount) : 0)
      if left > 0, let amount = amounts[claim.currency] {
        let subtracted = min(left, amount)
        amounts[claim.currency] = amount - subtracted
        left -= subtracted
      }
      if left != known { changes.append((claim, left)) }
    }
    amounts = amounts.filter { $0.value > 0 }
    for (currency, amount) in amounts.sorted(by: { $0.key < $1.key }) {
      let order = BankOrder(
        id: voucher.orderID(for: currency), kind: .voucher, currency: currency, amount: amount,
        reason: "from another bank", madeAtMilliseconds: now)
      _ = try perform(order, in: &storage)
    }
    for (claim, left) in changes {
      try storage.setVouchedClaim(claim.key, by: voucher.bank, left: left)
      guard try !storage.isClaimPaid(claim.key) else { continue }
      try storage.markClaimPaid(claim.key, ClaimPayment(currency: claim.currency, amount: claim.amount))
    }
    try storage.markVoucherPaid(voucher.chain, of: voucher.bank)
    return amounts
  }

  /// Returns whether neither an order nor an operation of a device has this id.
  private func isFree(_ id: OperationID, in storage: some BankStorage) throws -> Bool {
    guard try storage.decision(on: id) == nil else { return false }
    return try faults.paysVouchersTwice || storage.order(id) == nil
  }
}

extension WalletOffer {
  /// Whether the store has nothing on a chain that no bank may know, and nothing from before it.
  var bringsNothing: Bool {
    follows == nil && statement == 0 && operations.isEmpty && late.isEmpty && vouchers.isEmpty
  }
}

extension WalletVoucher {
  /// Whether there is nothing to pay, and nothing to tell.
  package var isEmpty: Bool { amounts.values.allSatisfy { $0 == 0 } && claims.isEmpty }

  /// Returns the id of the order that pays the voucher's amount of a currency: the same however often it is shown, and
  /// whatever amount a bank that was set back signed since.
  func orderID(for currency: String) -> OperationID {
    OperationID(derivedFrom: "voucher \(bank) \(chain) \(currency)")
  }
}
