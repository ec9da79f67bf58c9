// What a bank reads and writes.
extension SnapshotContainer {
  package func bank() throws -> BankState {
    if let bank = writes.bank { return bank }
    guard base.known.bank.state else { throw NotLoaded { $0.bank.state = true } }
    return base.bank
  }

  package mutating func setBank(_ state: BankState) { writes.bank = state }

  // MARK: Decisions

  package func decision(on operation: OperationID) throws -> DecidedOperation? {
    if let decided = newDecisions[operation] {
      return DecidedOperation(
        verdict: decided.verdict, fingerprint: decided.operation.fingerprint, chain: decided.chain)
    }
    guard base.known.bank.decisions.contains(operation) else { throw NotLoaded { $0.bank.decisions = [operation] } }
    return base.decisions[operation]
  }

  package mutating func recordDecision(
    _ verdict: WalletDecision.Verdict, on operation: WalletOperation, of chain: ChainID
  ) {
    let decision = WriteSet.Decision(verdict: verdict, operation: operation, chain: chain)
    writes.decisions.append(decision)
    newDecisions[operation.id] = decision
  }

  package func decidedOperation(_ id: OperationID) throws -> WalletOperation? {
    if let decided = newDecisions[id] { return decided.operation }
    guard base.known.bank.operations.contains(id) else { throw NotLoaded { $0.bank.operations = [id] } }
    return base.operations[id]
  }

  // MARK: Claims

  package func isClaimPaid(_ key: String) throws -> Bool {
    let name = ExactText(key)
    if newClaims.contains(name) { return true }
    guard base.known.bank.claims.contains(name) else { throw NotLoaded { $0.bank.claims = [name] } }
    return base.paidClaims.contains(name)
  }

  package mutating func markClaimPaid(_ key: String, _ payment: ClaimPayment?) throws {
    guard try !isClaimPaid(key) else { return }
    newClaims.insert(ExactText(key))
    writes.claims.append((key, payment))
  }

  package func payments(limit: Int) throws -> [WalletVoucher.Claim] {
    guard let known = base.known.bank.payments, known >= limit else { throw NotLoaded { $0.bank.payments = limit } }
    let new = writes.claims.compactMap { claim in
      claim.payment.map { WalletVoucher.Claim(key: claim.key, currency: $0.currency, amount: $0.amount) }
    }
    return Array((base.payments + new).prefix(limit))
  }

  // MARK: Vouchers

  package func isVoucherPaid(_ chain: ChainID, of bank: ContainerID) throws -> Bool {
    let voucher = BankReads.Voucher(bank: bank, chain: chain)
    if writes.paidVouchers.contains(voucher) { return true }
    guard base.known.bank.paidVouchers.contains(voucher) else {
      throw NotLoaded { $0.bank.paidVouchers = [voucher] }
    }
    return base.paidVouchers.contains(voucher)
  }

  package mutating func markVoucherPaid(_ chain: ChainID, of bank: ContainerID) {
    writes.paidVouchers.insert(BankReads.Voucher(bank: bank, chain: chain))
  }

  package func vouchedClaim(_ key: String, by bank: ContainerID) throws -> Int64? {
    let claim = BankReads.VouchedClaim(bank: bank, key: ExactText(key))
    if let left = writes.vouchedClaims[claim] { return left }
    guard base.known.bank.vouchedClaims.contains(claim) else {
      throw NotLoaded { $0.bank.vouchedClaims = [claim] }
    }
    return base.vouchedClaims[claim]
  }

  package mutating func setVouchedClaim(_ key: String, by bank: ContainerID, left: Int64) {
    writes.vouchedClaims[BankReads.VouchedClaim(bank: bank, key: ExactText(key))] = left
  }

  // MARK: Orders

  package func order(_ id: OperationID) throws -> BankOrder? {
    if let new = writes.orders.first(where: { $0.order.id == id }) { return new.order }
    guard base.known.bank.orders.contains(id) else { throw NotLoaded { $0.bank.orders = [id] } }
    return base.orders[id]
  }

  package func orders(after number: UInt64, limit: Int) throws -> [NumberedOrder] {
    let loaded = base.ordersAfter.filter { $0.number > number }
    guard let known = base.known.bank.ordersAfter, known.after <= number,
      base.ordersAfter.count < known.limit || loaded.count >= limit
    else {
      throw NotLoaded { $0.bank.ordersAfter = Self.more(than: base.known.bank.ordersAfter, after: number, limit) }
    }
    return Array((loaded + writes.orders.filter { $0.number > number }).prefix(limit))
  }

  /// Returns a range that has more than was loaded.
  private static func more(than known: BankReads.Range?, after number: UInt64, _ limit: Int) -> BankReads.Range {
    BankReads.Range(after: number, limit: limit + 2 * (known?.limit ?? 0))
  }

  package mutating func recordOrder(_ order: NumberedOrder) { writes.orders.append(order) }

  // MARK: Goods

  package func goods(changedAfter number: UInt64, limit: Int) throws -> [NumberedGood] {
    let old = base.goodsAfter.filter { $0.number > number && writes.goods[ExactText($0.name)] == nil }
    // Those that the decision changes come later, and make room for others.
    guard let known = base.known.bank.goodsAfter, known.after <= number,
      base.goodsAfter.count < known.limit || old.count >= limit
    else {
      throw NotLoaded { $0.bank.goodsAfter = Self.more(than: base.known.bank.goodsAfter, after: number, limit) }
    }
    let all = (old + writes.goods.values.filter { $0.number > number }).sorted {
      ($0.number, ExactText($0.name)) < ($1.number, ExactText($1.name))
    }
    guard let last = all.prefix(limit).last else { return [] }
    return all.filter { $0.number <= last.number }
  }

  package mutating func addGood(_ name: String, _ count: Int64, number: UInt64) throws {
    let key = ExactText(name)
    let before: Int64
    if let new = writes.goods[key] {
      before = new.count
    } else {
      // Those of spends that waited, and of refunds, aren't in the request.
      guard base.known.bank.allGoods || base.known.bank.goods.contains(key) else {
        throw NotLoaded { $0.bank.allGoods = true }
      }
      before = base.goods[key] ?? 0
    }
    writes.goods[key] = NumberedGood(name: name, count: max(0, before.addingClamped(count)), number: number)
  }

  // MARK: Closed chains

  package func closedChain(_ id: ChainID) throws -> BankState.ClosedChain? {
    if let new = newClosedChains[id] { return new }
    if !base.known.bank.allClosedChains, !base.known.bank.closedChains.contains(id) {
      // A chain that follows others is followed back through all of them.
      throw NotLoaded { $0.bank.allClosedChains = true }
    }
    return base.closedChains[id]
  }

  package mutating func recordClosedChain(_ chain: BankState.ClosedChain, _ id: ChainID) {
    guard newClosedChains[id] == nil, base.closedChains[id] == nil else { return }
    newClosedChains[id] = chain
    writes.closedChains.append((id, chain))
  }

  package func voucher(of chain: ChainID) throws -> WalletVoucher? {
    if let new = writes.vouchers.last(where: { $0.chain == chain }) { return new }
    guard base.known.bank.vouchers.contains(chain) else { throw NotLoaded { $0.bank.vouchers = [chain] } }
    return base.vouchers[chain]
  }

  package mutating func recordVoucher(_ voucher: WalletVoucher) { writes.vouchers.append(voucher) }

  // MARK: Receipts

  /// Marks a receipt as paid to this container's player, unless it was paid to another one.
  ///
  /// - Returns: Whether it is paid to this one, by now or before.
  package mutating func takeReceipt(_ receipt: Receipt, for container: ContainerID) throws -> Bool {
    guard base.known.bank.receipt == receipt else { throw NotLoaded { $0.bank.receipt = receipt } }
    if let holder = base.receiptHolder { return holder == container }
    writes.receipt = receipt
    return true
  }
}
