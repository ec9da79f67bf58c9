/// The store's side of the money: what it may do by itself, and what the bank's answers make of it.
package struct Wallet: Hashable, Sendable {
  /// The most that one operation moves: far above any game's prices, and any number of them that a container can hold adds
  /// up within 64 bits.
  package static let maximumAmount: Int64 = 1 << 40
  /// What one chain's totals may reach: four of them stay within 64 bits.
  package static let maximumTotal: Int64 = 1 << 60
  /// Operations that one exchange carries, of the chain and late ones each: the rest follows in the next.
  package static let maximumBatch = 500
  /// Operations that a store remembers by name after the bank has them: repeats come soon or not at all, and the bank
  /// remembers all of them.
  package static let rememberedOperations = 256
  /// Bytes of a currency's name, a claim's key or a good's name, and of a reason.
  package static let maximumNameBytes = 128
  package static let maximumReasonBytes = 512
  package static let maximumGoods = 64
  /// Currencies for which a store may name a level.
  package static let maximumWanted = 256

  package var state: WalletState

  package init(_ state: WalletState) { self.state = state }

  // MARK: What the game sees

  /// What the store may spend by itself.
  package func spendable(_ currency: String) -> Int64 { state.totals[currency]?.rights ?? 0 }

  /// The player's money as this store knows it: what the bank said last, and what was done here since. Claims not counted.
  package func total(_ currency: String) -> Int64 {
    var sum = Int128(state.balances[currency] ?? 0)
    for sums in sums(currency) { sum += sums.earned - sums.spent }
    return Int64(clamping: sum)
  }

  /// Claimed and not yet decided.
  package func pending(_ currency: String) -> Int64 { Int64(clamping: sums(currency).reduce(0) { $0 + $1.claimed }) }

  /// Every currency that the wallet has heard of, sorted.
  package var currencies: [String] {
    Set(state.totals.keys).union(state.balances.keys).union(state.operations.sums.keys).union(state.late.sums.keys).sorted()
  }

  private func sums(_ currency: String) -> [OperationList.Sums] {
    [state.operations.sums[currency], state.late.sums[currency]].compactMap { $0 }
  }

  // MARK: What the game does

  /// Does `operation`, or nothing if it was done before under its id (or its claim's key). Costs the same however many the bank doesn't know.
  ///
  /// - Returns: whether anything changed.
  /// - Throws: ``WalletError``; nothing has changed then.
  @discardableResult
  package mutating func perform(_ operation: WalletOperation) throws(WalletError) -> Bool {
    try operation.check()
    if knows(operation) { return false }
    var totals = state.totals[operation.currency] ?? WalletTotals()
    switch operation.kind {
    case .spend, .giveBack:
      guard totals.rights >= operation.amount else {
        throw .insufficientRights(
          currency: operation.currency, spendable: totals.rights, balance: total(operation.currency))
      }
    case .earn, .claim: break
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

  /// Says how much the store would like to be able to spend by itself, for the bank to grant in the next exchange; nil for a
  /// fair share.
  package mutating func want(_ level: Int64?, of currency: String) {
    state.wanted[currency] = level.map { min(max(0, $0), Self.maximumTotal) }
  }

  /// Whether performing it changes nothing, because it was done before.
  package func knows(_ operation: WalletOperation) -> Bool {
    if state.recent.contains(operation.id) || state.operations.contains(operation.id) || state.late.contains(operation.id) { return true }
    guard case .claim(let key) = operation.kind else { return false }
    return isSettled(claim: key) || state.operations.containsClaim(key) || state.late.containsClaim(key)
  }

  /// By halves: a daily gift is claimed for years.
  private func isSettled(claim key: String) -> Bool {
    var (low, high) = (0, state.settledClaims.count)
    while low < high {
      let middle = (low + high) / 2
      if state.settledClaims[middle] < key { low = middle + 1 } else { high = middle }
    }
    return low < state.settledClaims.count && state.settledClaims[low] == key
  }

  // MARK: The bank

  /// Something here that the bank doesn't know yet.
  package var hasUnreportedOperations: Bool { !state.operations.isEmpty || !state.late.isEmpty }

  /// The currencies of that.
  package var unreported: Set<String> { Set(state.operations.sums.keys).union(state.late.sums.keys) }

  /// What to say to the bank in the next exchange.
  package var offer: WalletOffer {
    WalletOffer(
      chain: state.chain, follows: state.follows, base: state.acknowledged,
      operations: Array(state.operations.prefix(Self.maximumBatch)), late: Array(state.late.prefix(Self.maximumBatch)),
      wanted: state.wanted)
  }

  /// What a reply did.
  package struct Change: Hashable, Sendable {
    package var balancesChanged = false
    /// Claims, late operations and declined ones that are decided now.
    package var decisions: [WalletDecision] = []
    /// There is something to tell the bank at once: a new chain, or rights given back.
    package var hasMore = false

    package init() {}
  }

  /// Takes the bank's answer to the offer that is in flight. A reply about another chain, or one that this store's own chain
  /// refutes, changes nothing; nor does one with amounts that can't be. Costs the operations that it settles.
  package mutating func receive(_ reply: WalletReply, using random: inout some RandomNumberGenerator) -> Change {
    var change = Change()
    guard reply.chain == state.chain, Self.arePossible(reply.totals), Self.arePossible(reply.balances) else { return change }
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
      // A head that stands on our own chain is from before a retry that was accepted.
      guard position(of: head) == nil else { return change }
      startChain(after: common, using: &random)
    case .fenced(let common):
      startChain(after: common, using: &random)
    case .behind:
      // What the bank lost of this chain can't be offered again from here; what it never had can.
      startChain(after: state.acknowledged, using: &random)
    }
    change.hasMore = state != before && (hasUnreportedOperations || state.chain != before.chain)
    change.balancesChanged = before.balances != state.balances || before.totals != state.totals
    return change
  }

  /// How many of the operations not yet acknowledged lead to `head`; nil if it isn't on the chain from there on.
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
      if case .claim(let key) = operation.kind, !isSettled(claim: key) { claims.insert(key) }
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
      // Full totals were refused when the operation was made; the bank's can be no greater.
      totals.count(sums)
      state.totals[currency] = totals
    }
  }

  /// Gives back what the bank recalls, but keeps half of what there is: the game may be offline next.
  private mutating func giveBack(_ recalled: [String: Int64], using random: inout some RandomNumberGenerator) {
    for (currency, asked) in recalled.sorted(by: { $0.key < $1.key }) {
      let rights = spendable(currency)
      let amount = min(asked, rights - rights / 2)
      guard amount > 0 else { continue }
      let operation = WalletOperation(
        id: OperationID(using: &random), kind: .giveBack, currency: currency, amount: amount, reason: "recalled")
      // Within rights by construction; a name that the bank made up badly is not worth an error here.
      _ = try? perform(operation)
    }
  }

  /// Goes on with a new chain; what came after `common` on the old one, and what never counted there, is late.
  private mutating func startChain(after common: ChainHead, using random: inout some RandomNumberGenerator) {
    let kept = position(of: common) ?? 0
    var late = state.late
    for operation in state.operations.dropFirst(kept) {
      // The bank takes back the rights of a chain that it closes: there is nothing left to give.
      if operation.kind != .giveBack { late.append(operation) }
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
  /// Whether a bank or a store can have such amounts, of currencies with such names.
  static func arePossible(_ amounts: [String: Int64]) -> Bool {
    amounts.allSatisfy { isPossible(currency: $0.key) && (0...maximumTotal).contains($0.value) }
  }

  static func arePossible(_ totals: [String: WalletTotals]) -> Bool {
    totals.allSatisfy { currency, totals in
      let terms = [totals.granted, totals.earned, totals.spent, totals.returned]
      return isPossible(currency: currency) && terms.allSatisfy((0...maximumTotal).contains)
    }
  }

  private static func isPossible(currency: String) -> Bool { !currency.isEmpty && currency.utf8.count <= maximumNameBytes }
}

extension WalletTotals {
  /// Counts in what operations come to; a total that would become too great stays full.
  mutating func count(_ sums: OperationList.Sums) {
    func grown(_ total: Int64, by sum: Int128) -> Int64 { Int64(clamping: min(Int128(total) + sum, Int128(Wallet.maximumTotal))) }
    earned = grown(earned, by: sums.earned)
    spent = grown(spent, by: sums.spent)
    returned = grown(returned, by: sums.returned)
  }

  /// Counts an operation in; false, and nothing changed, if a total would become too great. Claims count when they are paid.
  mutating func count(_ operation: WalletOperation) -> Bool {
    func grown(_ total: Int64) -> Int64? {
      let (sum, overflow) = total.addingReportingOverflow(operation.amount)
      return overflow || sum > Wallet.maximumTotal ? nil : sum
    }
    switch operation.kind {
    case .earn:
      guard let sum = grown(earned) else { return false }
      earned = sum
    case .spend:
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
  /// Throws unless amount and texts are within limits.
  package func check() throws(WalletError) {
    guard amount > 0, amount <= Wallet.maximumAmount else { throw .invalidAmount(amount) }
    func check(_ text: String, _ what: String, _ limit: Int, emptyAllowed: Bool = false) throws(WalletError) {
      guard emptyAllowed || !text.isEmpty, text.utf8.count <= limit else { throw .invalidText(what) }
    }
    try check(currency, "the currency", Wallet.maximumNameBytes)
    try check(reason, "the reason", Wallet.maximumReasonBytes, emptyAllowed: true)
    guard goods.count <= Wallet.maximumGoods else { throw .invalidText("the list of goods") }
    for good in goods { try check(good, "a good", Wallet.maximumNameBytes) }
    if case .claim(let key) = kind { try check(key, "the claim's key", Wallet.maximumNameBytes) }
  }
}

extension Int64 {
  func addingClamped(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? (other < 0 ? .min : .max) : sum
  }
}
