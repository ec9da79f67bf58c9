// The bank's own operations: what the game's servers and its support order.
extension Bank {
  /// What became of an order.
  package enum OrderOutcome: Hashable, Sendable {
    /// It counts now.
    case done(NumberedOrder)
    /// It counted before, as this: repeating an order changes nothing.
    case alreadyDone(BankOrder)

    package var order: BankOrder {
      switch self {
      case .done(let numbered): numbered.order
      case .alreadyDone(let order): order
      }
    }
  }

  /// Performs an order once, however often it is repeated under its id. The caller stores `state` if it has changed.
  ///
  /// A refund names its purchase; its amount, currency and goods are those that the bank has recorded. A charge takes
  /// what the balance has; the rest is a debt, which is paid before anything else by what comes into the pool later.
  ///
  /// Looks at all open chains and at what waits, like an offer.
  ///
  /// - Throws: ``BankOrderError``, with nothing changed, and what the storage throws.
  package mutating func perform(_ order: BankOrder, in storage: inout some BankStorage) throws -> OrderOutcome {
    if let known = try storage.order(order.id), !repeats(order) {
      guard known.isRepeated(by: order) else { throw BankOrderError.idReused(order.id) }
      return .alreadyDone(known)
    }
    var order = order
    if order.kind == .refund { try complete(&order, in: storage) }
    try order.check()
    if state.isLeft, order.isForPlayer { throw BankOrderError.playerMoved }
    // Devices have both in one ledger.
    guard try storage.decision(on: order.id) == nil else { throw BankOrderError.idReused(order.id) }
    switch order.kind {
    case .charge:
      let (debt, isTooGreat) = (state.debts?[order.currency] ?? 0).addingReportingOverflow(order.amount)
      guard !isTooGreat, debt <= Wallet.maximumTotal, canGrow(order.currency, by: 0) else {
        throw BankOrderError.tooMuch(currency: order.currency)
      }
      // From now on the player has the currency.
      state.pool[order.currency, default: 0] += 0
      state.debts = (state.debts ?? [:]).merging([order.currency: debt]) { $1 }
    case .grant, .refund, .voucher, .shortfall:
      guard canGrow(order.currency, by: order.amount) else { throw BankOrderError.tooMuch(currency: order.currency) }
      deposit(order.amount, of: order.currency, isNew: true)
    }
    let numbered = NumberedOrder(number: (state.orderNumber ?? 0) + 1, order: order)
    state.orderNumber = numbered.number
    try storage.recordOrder(numbered)
    if !order.goods.isEmpty {
      state.goodsNumber += 1
      let change: Int64 = order.takesGoods ? -1 : 1
      for good in order.goods { try storage.addGood(good, change, number: state.goodsNumber) }
    }
    try settleWaiting(in: &storage)
    return .done(numbered)
  }

  /// Whether a planted bug counts the order again.
  private func repeats(_ order: BankOrder) -> Bool {
    faults.refundsTwice && order.kind == .refund || faults.paysReceiptsTwice && order.receipt != nil
      || faults.paysVouchersTwice && order.kind == .voucher
  }

  /// Gives a refund what the purchase was.
  private func complete(_ refund: inout BankOrder, in storage: some BankStorage) throws {
    guard let purchase = refund.purchase, refund.id == BankOrder.refundID(of: purchase) else {
      throw BankOrderError.invalid("a refund names its purchase, and has the id that follows from it")
    }
    guard let decided = try storage.decision(on: purchase) else { throw BankOrderError.unknownPurchase(purchase) }
    guard decided.verdict.counts else { throw BankOrderError.notCharged(purchase, decided.verdict) }
    guard let operation = try storage.decidedOperation(purchase) else {
      throw BankOrderError.detailsNotKept(purchase)
    }
    guard operation.effect == .debit else { throw BankOrderError.notPurchase(purchase) }
    (refund.currency, refund.amount, refund.goods) = (operation.currency, operation.amount, operation.goods)
  }

  /// Returns the orders after the last one that a store knows, as many as a reply lists.
  func newOrders(since number: UInt64, in storage: some BankStorage) throws -> [NumberedOrder] {
    let newest = state.orderNumber ?? 0
    guard number != newest else { return [] }
    // A store that knows more comes from before this bank was set back.
    return try storage.orders(after: number > newest ? 0 : number, limit: NumberedOrder.maximumListed)
  }

  // MARK: Debts

  /// Pays what the player owes, as far as the pool has it. Comes before anything else that the pool could pay.
  mutating func payDebts() {
    for (currency, debt) in state.debts ?? [:] {
      let paid = min(debt, state.pool[currency] ?? 0)
      guard paid > 0 else { continue }
      withdraw(paid, of: currency)
      state.debts?[currency] = debt > paid ? debt - paid : nil
    }
    if state.debts?.isEmpty == true { state.debts = nil }
  }

  /// What the pool has to have before it can give anything: what spends wait for, and what is owed. By currency.
  func promised() -> [String: Int64] {
    waitingSpends().merging(state.debts ?? [:]) { $0.addingClamped($1) }
  }

  /// The player's money by currency, as devices show it: without what spends wait for, and what is owed.
  package func shownBalances() -> [String: Int64] {
    let promised = promised()
    var balances: [String: Int64] = [:]
    for currency in currencies {
      balances[currency] = min(max(0, balance(currency) - (promised[currency] ?? 0)), Wallet.maximumTotal)
    }
    return balances
  }

  // MARK: Currencies that no device earns

  /// Returns whether operations that count together make more of a currency of which only orders make more.
  func hasForbidden(_ unit: [WalletOperation]) -> Bool { unit.contains(where: rules.forbids) }
}

extension BankRules {
  /// The currencies that no device earns, as a reply lists them.
  var listed: [String] { Array(authoritative.sorted().prefix(Wallet.maximumCurrencies)) }

  /// Returns whether the operation makes more of a currency that no device earns.
  package func forbids(_ operation: WalletOperation) -> Bool {
    !authoritative.isEmpty && (operation.gainedCurrency.map(authoritative.contains) ?? false)
  }
}

extension WalletOperation {
  /// The currency of which the operation makes more; nil if it makes none.
  var gainedCurrency: String? {
    switch effect {
    case .credit, .claim: currency
    case .convert(let other, _): other
    case .debit, .giveBack: nil
    }
  }
}

/// Why a bank refuses an order. Nothing has changed then.
package enum BankOrderError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Another order, or an operation of a device, has this id.
  case idReused(OperationID)
  /// An amount, a name or a reason is outside of its limits: what is wrong.
  case invalid(String)
  /// The player's money or debts in this currency would become too great, or the player has too many currencies.
  case tooMuch(currency: String)
  /// The bank has never seen the purchase: the device that made it may not have reported it yet.
  case unknownPurchase(OperationID)
  /// The bank has counted the purchase, but no longer keeps what it was.
  case detailsNotKept(OperationID)
  /// The purchase waits for money, or was declined: nothing was charged.
  case notCharged(OperationID, WalletDecision.Verdict)
  /// The operation isn't a spend.
  case notPurchase(OperationID)
  /// All devices that the bank knows have left for another player: what it paid would reach nobody.
  case playerMoved

  package var description: String {
    switch self {
    case .idReused(let id): "another order or operation has the identifier \(id): use a new one"
    case .invalid(let objection): objection
    case .tooMuch(let currency):
      "the player would have or owe more than \(Wallet.maximumTotal) \(currency), or more than "
        + "\(Wallet.maximumCurrencies) currencies"
    case .unknownPurchase(let id):
      "the bank doesn't know the purchase \(id): the device that made it may not have synced since"
    case .detailsNotKept(let id):
      "the bank doesn't keep the details of the purchase \(id) any more: order a grant of what it was"
    case .notCharged(let id, let verdict):
      verdict == .waiting
        ? "the purchase \(id) waits to be charged: try again later"
        : "the purchase \(id) was declined, so there is nothing to return"
    case .notPurchase(let id): "the operation \(id) isn't a purchase: order a grant or a charge"
    case .playerMoved:
      "the devices of this player have joined another player, and nobody is left to receive this: order it of that "
        + "player, or repeat it after a device of this player has synced"
    }
  }
}
