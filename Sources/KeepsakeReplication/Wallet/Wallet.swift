/// The store's side of the wallet: what it may do by itself, and how it handles the bank's replies.
package struct Wallet: Hashable, Sendable {
  /// The most that one operation moves: far above any game's prices, while the sum of as many operations as a container
  /// can hold fits into 64 bits.
  package static let maximumAmount: Int64 = 1 << 40
  /// The greatest value of one of a chain's totals, so that four of them together fit into 64 bits.
  package static let maximumTotal: Int64 = 1 << 60
  /// The most operations in one exchange, of the chain and late ones each; the rest follows in the next exchange.
  package static let maximumBatch = 500
  /// How many operations a store remembers by id after the bank has them: repeats come soon or not at all, and the bank
  /// remembers all of them.
  package static let rememberedOperations = 256
  /// The most bytes of a currency's name, a claim's key or a good's name, and of a reason.
  package static let maximumNameBytes = 128
  package static let maximumReasonBytes = 512
  package static let maximumGoods = 64
  /// The most currencies for which a store may ask for a level.
  package static let maximumWanted = 256

  package var state: WalletState

  package init(_ state: WalletState) { self.state = state }

  // MARK: What the game sees

  /// Returns what the store may spend by itself.
  package func spendable(_ currency: String) -> Int64 { state.totals[currency]?.rights ?? 0 }

  /// Returns the player's money as this store knows it: what the bank last reported, and what was done here since.
  /// Claims aren't counted.
  package func total(_ currency: String) -> Int64 {
    var sum = Int128(state.balances[currency] ?? 0)
    for sums in sums(currency) { sum += sums.earned - sums.spent }
    return Int64(clamping: sum)
  }

  /// Returns what is claimed and not yet decided.
  package func pending(_ currency: String) -> Int64 { Int64(clamping: sums(currency).reduce(0) { $0 + $1.claimed }) }

  /// Every currency that the wallet knows, sorted.
  package var currencies: [String] {
    Set(state.totals.keys).union(state.balances.keys).union(state.operations.sums.keys).union(state.late.sums.keys)
      .sorted()
  }

  private func sums(_ currency: String) -> [OperationList.Sums] {
    [state.operations.sums[currency], state.late.sums[currency]].compactMap { $0 }
  }

  // MARK: What the game does

  /// Performs `operation`, or does nothing if it was performed before under its id (or its claim's key). Costs the same
  /// however many operations the bank doesn't know.
  ///
  /// - Returns: Whether anything changed.
  /// - Throws: ``WalletError``; nothing has changed then.
  @discardableResult
  package mutating func perform(_ operation: WalletOperation) throws(WalletError) -> Bool {
    try operation.check()
    if knows(operation) { return false }
    var totals = state.totals[operation.currency] ?? WalletTotals()
    switch operation.effect {
    case .debit, .giveBack:
      guard totals.rights >= operation.amount else {
        throw .insufficientRights(
          currency: operation.currency, spendable: totals.rights, balance: total(operation.currency))
      }
    case .credit, .claim: break
    }
    guard totals.count(operation) else { throw .overflow(currency: operation.currency) }
    state.totals[operation.currency] = totals
    state.operations.append(operation)
    state.head = state.head.appending(operation)
    state.recent.append(operation.id)
    if state.recent.count > Self.rememberedOperations {
      state.recent.removeFirst(state.recent.count - Self.rememberedOperations)
    }
    return true
  }

  /// Sets how much the store would like to be able to spend by itself, which the bank may grant in the next exchange;
  /// nil for a fair share.
  package mutating func want(_ level: Int64?, of currency: String) {
    state.wanted[currency] = level.map { min(max(0, $0), Self.maximumTotal) }
  }

  /// Returns whether performing the operation changes nothing, because it was performed before.
  package func knows(_ operation: WalletOperation) -> Bool {
    if state.recent.contains(operation.id) || state.operations.contains(operation.id)
      || state.late.contains(operation.id)
    {
      return true
    }
    guard let key = operation.kind.key else { return false }
    return isSettled(claim: key) || state.operations.containsClaim(key) || state.late.containsClaim(key)
  }

  /// Uses a binary search: a daily gift is claimed for years.
  private func isSettled(claim key: String) -> Bool {
    var (low, high) = (0, state.settledClaims.count)
    while low < high {
      let middle = (low + high) / 2
      if state.settledClaims[middle] < key { low = middle + 1 } else { high = middle }
    }
    return low < state.settledClaims.count && state.settledClaims[low] == key
  }

  // MARK: The bank

  /// Whether there are operations here that the bank doesn't know yet.
  package var hasUnreportedOperations: Bool { !state.operations.isEmpty || !state.late.isEmpty }

  /// The currencies of those operations.
  package var unreported: Set<String> { Set(state.operations.sums.keys).union(state.late.sums.keys) }

  /// The offer to the bank for the next exchange.
  package var offer: WalletOffer {
    WalletOffer(
      chain: state.chain, follows: state.follows, base: state.acknowledged,
      operations: Array(state.operations.prefix(Self.maximumBatch)), late: Array(state.late.prefix(Self.maximumBatch)),
      wanted: state.wanted)
  }

  /// The effect of a reply.
  package struct Change: Hashable, Sendable {
    package var balancesChanged = false
    /// Claims, late operations and declined operations that this reply decided.
    package var decisions: [WalletDecision] = []
    /// There is something to report to the bank immediately: a new chain, or returned rights.
    package var hasMore = false

    package init() {}
  }

  /// Handles the bank's reply to the offer in flight. A reply about another chain or with impossible amounts changes
  /// nothing; of one that contradicts this store's own chain only the decisions apply. Costs time in proportion to the
  /// operations that it settles.
  package mutating func receive(_ reply: WalletReply, using random: inout some RandomNumberGenerator) -> Change {
    var change = Change()
    guard reply.chain == state.chain, Self.arePossible(reply.totals), Self.arePossible(reply.balances) else {
      return change
    }
    let before = state
    settle(reply.decisions, &change)
    switch reply.state {
    case .accepted(let head):
      guard let index = position(of: head) else { return change }
      state.acknowledged = head
      state.operations.removeFirst(index)
      state.balances = reply.balances
      rebuildTotals(from: reply.totals)
      giveBack(reply.recalled, using: &random)
    case .begun:
      state.balances = reply.balances
      change.balancesChanged = before.balances != state.balances
      change.hasMore = true
      return change
    case .fork(let head, let common):
      // A head that is part of our own chain is from before a retry that was accepted.
      guard position(of: head) == nil else { return change }
      startChain(after: common, using: &random)
    case .fenced(let common):
      startChain(after: common, using: &random)
    case .behind:
      // What the bank lost of this chain can't be offered again from here; what it never had can be.
      startChain(after: state.acknowledged, using: &random)
    }
    change.hasMore = state != before && (hasUnreportedOperations || state.chain != before.chain)
    change.balancesChanged = before.balances != state.balances || before.totals != state.totals
    return change
  }

  /// Returns how many of the unacknowledged operations lead to `head`; nil if it isn't on the chain from there on.
  private func position(of head: ChainHead) -> Int? {
    guard head.count >= state.acknowledged.count, head.count <= state.head.count else { return nil }
    var current = state.acknowledged
    var index = 0
    while current.count < head.count, index < state.operations.count {
      current = current.appending(state.operations[index])
      index += 1
    }
    return current == head ? index : nil
  }

  private mutating func settle(_ decisions: [WalletDecision], _ change: inout Change) {
    var claims: Set<String> = []
    var isLate = false
    for decision in decisions {
      let late = state.late.operation(decision.id)
      guard let operation = late ?? state.operations.operation(decision.id) else { continue }
      change.decisions.append(decision)
      if late != nil { isLate = true }
      if let key = operation.kind.key, !isSettled(claim: key) { claims.insert(key) }
    }
    if !claims.isEmpty { state.settledClaims = (state.settledClaims + claims).sorted() }
    guard isLate else { return }
    // They were sent from the front, and are decided there.
    let decided = Set(decisions.map(\.id))
    state.late.removeFirst(state.late.prefix { decided.contains($0.id) }.count)
    if decided.contains(where: state.late.contains) { state.late.removeAll { decided.contains($0.id) } }
  }

  private mutating func rebuildTotals(from bank: [String: WalletTotals]) {
    state.totals = bank
    for (currency, sums) in state.operations.sums {
      var totals = bank[currency] ?? WalletTotals()
      // An operation that makes totals too great is refused when it is made; the bank's can be no greater.
      totals.count(sums)
      state.totals[currency] = totals
    }
  }

  /// Returns what the bank recalls, but keeps half of what there is, because the game may be offline next.
  private mutating func giveBack(_ recalled: [String: Int64], using random: inout some RandomNumberGenerator) {
    for (currency, asked) in recalled.sorted(by: { $0.key < $1.key }) {
      let rights = spendable(currency)
      var left = min(asked, rights - rights / 2)
      // What these operations can't return is recalled again by the next reply.
      for _ in 0..<WalletParcel.maximumSpends where left > 0 {
        let operation = WalletOperation(
          id: OperationID(using: &random), kind: .giveBack, currency: currency, amount: min(left, Self.maximumAmount),
          reason: "recalled")
        // It is within rights and limits by construction; an invalid name made up by the bank isn't worth an error
        // here.
        guard (try? perform(operation)) != nil else { break }
        left -= operation.amount
      }
    }
  }

  /// Continues with a new chain; what came after `common` on the old one, and what never counted there, is late.
  private mutating func startChain(after common: ChainHead, using random: inout some RandomNumberGenerator) {
    let kept = position(of: common) ?? 0
    var late = state.late
    for operation in state.operations.dropFirst(kept) {
      // The bank takes back the rights of a chain that it closes, so there is nothing left to return.
      if operation.effect != .giveBack { late.append(operation) }
    }
    var next = WalletState(chain: ChainID(using: &random), follows: state.chain)
    next.late = late
    next.balances = state.balances
    next.wanted = state.wanted
    next.settledClaims = state.settledClaims
    next.recent = state.recent
    state = next
  }
}

extension Wallet {
  /// Returns whether a bank or a store can have such amounts, of currencies with such names.
  static func arePossible(_ amounts: [String: Int64]) -> Bool {
    amounts.allSatisfy { isPossible(currency: $0.key) && (0...maximumTotal).contains($0.value) }
  }

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

  /// Adds an operation; returns false, and changes nothing, if a total would become too great. Claims count when they
  /// are paid.
  mutating func count(_ operation: WalletOperation) -> Bool {
    func grown(_ total: Int64) -> Int64? {
      let (sum, overflow) = total.addingReportingOverflow(operation.amount)
      return overflow || sum > Wallet.maximumTotal ? nil : sum
    }
    switch operation.effect {
    case .credit:
      guard let sum = grown(earned) else { return false }
      earned = sum
    case .debit:
      guard let sum = grown(spent) else { return false }
      spent = sum
    case .giveBack:
      guard let sum = grown(returned) else { return false }
      returned = sum
    case .claim: break
    }
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
    if let key = kind.key { try check(key, .claim) }
  }
}

extension Int64 {
  func addingClamped(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? (other < 0 ? .min : .max) : sum
  }
}
