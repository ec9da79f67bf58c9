/// The store's side of the wallet: what it may do by itself, and how it handles the bank's replies.
package struct Wallet: Hashable, Sendable {
  /// The most that one operation moves: far above any game's prices, while the sum of as many operations as a container
  /// can hold fits into 64 bits.
  package static let maximumAmount: Int64 = 1 << 40
  /// The greatest value of one of a chain's totals, so that four of them together fit into 64 bits.
  package static let maximumTotal: Int64 = 1 << 60
  /// The most operations in one exchange, of the chain and late ones each; the rest follows in the next exchange.
  package static let maximumBatch = 500
  /// The most operations that count together. Fewer than a batch has, so that each fits into one.
  package static let maximumGroup = 100
  /// The most bytes of a currency's name, a claim's key or a good's name, and of a reason.
  package static let maximumNameBytes = 128
  package static let maximumReasonBytes = 512
  package static let maximumGoods = 64
  /// The most currencies of a player: a bank looks at all of them in each exchange.
  package static let maximumCurrencies = 256
  /// The most currencies that a store may need at a time.
  package static let maximumNeeds = 256

  package var state: WalletState
  /// Bugs planted by a test.
  let faults: Faults

  package init(_ state: WalletState, faults: Faults = Faults()) { (self.state, self.faults) = (state, faults) }

  // MARK: What the game sees

  /// Returns what the store may spend by itself; 0 while operations that were made here aren't covered, because an
  /// earning before them counted on another device under the same id.
  package func spendable(_ currency: String) -> Int64 { max(0, state.totals[currency]?.rights ?? 0) }

  /// Returns the player's money as this store knows it: what the bank last reported, and what was done here since.
  /// Claims aren't counted.
  package func total(_ currency: String) -> Int64 {
    var sum = Int128(state.balances[currency] ?? 0)
    // The bank's balance is already without those that wait there.
    for sums in [state.operations.sums[currency], state.late.sums[currency]].compactMap(\.self) {
      sum += sums.earned - sums.spent
    }
    for movement in counted.flatMap(\.movements) where movement.currency == currency {
      sum -= Int128(movement.earned) - Int128(movement.spent)
    }
    return Int64(clamping: sum)
  }

  /// Returns what is claimed and not yet decided.
  package func pending(_ currency: String) -> Int64 {
    let claimed = state.undecided.reduce(Int128(0)) { $0 + ($1.sums[currency]?.claimed ?? 0) }
    return Int64(
      clamping: counted.reduce(claimed) { $0 - ($1.isClaim && $1.currency == currency ? Int128($1.amount) : 0) })
  }

  /// Operations that are offered again to a bank that was set back, and that the last balance still includes.
  private var counted: [WalletOperation] {
    guard state.proving != nil else { return [] }
    return Array(state.operations.prefix(state.replayed)) + Array(state.late.prefix(state.again))
  }

  /// Returns how many of each good the player has: by the bank, and by what was done here since.
  package func goods(_ bank: PlayerGoods) -> [String: Int64] {
    var counts = state.undecided.reduce(bank.counts) {
      $0.merging($1.goods.mapValues(Int64.init)) { $0.addingClamped($1) }
    }
    for good in counted.flatMap(\.goods) { counts[good, default: 0] -= 1 }
    return counts.filter { $0.value > 0 }
  }

  /// Every currency that the wallet knows, sorted.
  package var currencies: [String] {
    var names = Set(state.totals.keys).union(state.balances.keys).union(state.vouchers.flatMap(\.amounts.keys))
    for list in state.undecided { names.formUnion(list.sums.keys) }
    return names.sorted()
  }

  // MARK: What the game does

  /// Performs operations that count together, or does nothing for those that were performed before under their ids (or
  /// their claims' keys) and aren't decided yet. Costs the same however many operations the bank doesn't know.
  ///
  /// - Returns: Those that were performed now.
  /// - Throws: ``WalletError``; nothing has changed then.
  @discardableResult
  package mutating func perform(_ operations: [WalletOperation]) throws(WalletError) -> [WalletOperation] {
    guard operations.count <= Self.maximumGroup else { throw .tooMany(operations.count) }
    var fresh: [WalletOperation] = []
    for operation in operations {
      try operation.check()
      var isKnown = try isUndecided(operation)
      for other in fresh where try other.isRepeated(by: operation) { isKnown = true }
      guard !isKnown else { continue }
      if let currency = operation.gainedCurrency, state.authoritative.contains(currency) {
        throw .serverAuthoritative(currency: currency)
      }
      fresh.append(operation)
    }
    let before = state
    do throws(WalletError) {
      for index in fresh.indices {
        if fresh.count > 1 { fresh[index].group = fresh[0].id }
        try append(fresh[index])
      }
    } catch {
      state = before
      throw error
    }
    return fresh
  }

  /// Performs one operation.
  ///
  /// - Returns: Whether anything changed.
  @discardableResult
  package mutating func perform(_ operation: WalletOperation) throws(WalletError) -> Bool {
    try !perform([operation]).isEmpty
  }

  private mutating func append(_ operation: WalletOperation) throws(WalletError) {
    var totals = state.totals
    for movement in operation.movements + operation.returns {
      var its = totals[movement.currency] ?? WalletTotals()
      guard movement.spent <= its.rights else {
        throw .insufficientRights(
          currency: movement.currency, spendable: its.rights, balance: total(movement.currency))
      }
      guard totals[movement.currency] != nil || totals.count < Self.maximumCurrencies else {
        throw .invalidText("a player can have at most \(Self.maximumCurrencies) currencies")
      }
      guard its.count(movement, isReturn: operation.effect == .giveBack) else {
        throw .overflow(currency: movement.currency)
      }
      totals[movement.currency] = its
    }
    state.totals = totals
    state.operations.append(operation)
    state.head = state.head.appending(operation)
  }

  /// Sets what has to be spendable here for a purchase that is being made; nil for one that is made or given up. The
  /// next offer asks the bank for it.
  package mutating func need(_ amount: Int64?, of currency: String) {
    state.needs[currency] = amount.map { min(max(0, $0), Self.maximumTotal) }
    state.held[currency] = nil
  }

  /// Returns whether performing the operation changes nothing, because it was performed before and isn't decided yet.
  ///
  /// - Throws: ``WalletError`` for another operation under the same id.
  package func isUndecided(_ operation: WalletOperation) throws(WalletError) -> Bool {
    for list in state.undecided {
      if let known = list.operation(operation.id) {
        guard try known.isRepeated(by: operation) else { continue }
        return true
      }
      if let key = operation.kind.key, list.containsClaim(key) { return true }
    }
    return false
  }
}

extension WalletOperation {
  /// Returns whether `other` is this operation once more, or a claim of the same payment.
  ///
  /// - Throws: ``WalletError`` if it has the same id, but is another operation.
  fileprivate func isRepeated(by other: WalletOperation) throws(WalletError) -> Bool {
    if id == other.id {
      guard fingerprint == other.fingerprint else { throw .idReused(id) }
      return true
    }
    return kind.key != nil && kind.key == other.kind.key
  }

  /// What it returns to the bank.
  fileprivate var returns: [Movement] {
    effect == .giveBack ? [Movement(currency: currency, spent: amount)] : []
  }
}

extension Wallet {
  /// Returns whether a bank or a store can have such amounts, of currencies with such names.
  static func arePossible(_ amounts: [String: Int64]) -> Bool {
    amounts.allSatisfy { isPossible(currency: $0.key) && (0...maximumTotal).contains($0.value) }
  }

  /// Returns whether a player can owe this.
  static func arePossible(owed: [String: Int64]) -> Bool { owed.count <= maximumCurrencies && arePossible(owed) }

  static func arePossible(_ totals: [String: WalletTotals]) -> Bool {
    totals.allSatisfy { currency, totals in
      let terms = [totals.granted, totals.earned, totals.spent, totals.returned]
      return isPossible(currency: currency) && terms.allSatisfy((0...maximumTotal).contains)
    }
  }

  private static func isPossible(currency: String) -> Bool {
    NameRule.currency.allows(currency)
  }
}

extension WalletTotals {
  /// Adds the sums of operations; a total that would become too great is capped.
  mutating func count(_ sums: OperationList.Sums) {
    func grown(_ total: Int64, by sum: Int128) -> Int64 {
      Int64(clamping: min(Int128(total) + sum, Int128(Wallet.maximumTotal)))
    }
    earned = grown(earned, by: sums.earned)
    spent = grown(spent, by: sums.spent)
    returned = grown(returned, by: sums.returned)
  }

  /// Adds a movement; returns false, and changes nothing, if a total would become too great.
  ///
  /// - Parameter isReturn: Whether what is spent is returned to the bank.
  mutating func count(_ movement: WalletOperation.Movement, isReturn: Bool = false) -> Bool {
    var next = self
    next.earned += movement.earned
    if isReturn { next.returned += movement.spent } else { next.spent += movement.spent }
    // Totals and amounts are far below what 64 bits hold.
    guard max(next.earned, next.spent, next.returned) <= Wallet.maximumTotal else { return false }
    self = next
    return true
  }
}

extension WalletOperation {
  /// Throws unless amount and texts are within their limits.
  package func check() throws(WalletError) {
    guard amount > 0, amount <= Wallet.maximumAmount else { throw .invalidAmount(amount) }
    func check(_ text: String, _ rule: NameRule) throws(WalletError) {
      if let objection = rule.objection(to: text) { throw .invalidText(objection) }
    }
    try check(currency, .currency)
    try check(reason, .reason)
    guard goods.count <= Wallet.maximumGoods else {
      throw .invalidText("a purchase can have at most \(Wallet.maximumGoods) goods, not \(goods.count)")
    }
    for good in goods { try check(good, .good) }
    switch effect {
    case .claim: try check(kind.key ?? "", .claim)
    case .convert(let other, let received):
      try check(other, .currency)
      guard other != currency else { throw .invalidText("\(currency) can't be converted to itself") }
      guard received > 0, received <= Wallet.maximumAmount else { throw .invalidAmount(received) }
    case .credit, .debit, .giveBack: break
    }
  }
}

extension Int64 {
  package func addingClamped(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? (other < 0 ? .min : .max) : sum
  }
}
