// What the store offers the bank, and how it handles the replies.
extension Wallet {
  /// Whether there is something here that the bank doesn't know yet.
  package var hasUnreportedOperations: Bool { !state.operations.isEmpty || !state.late.isEmpty }

  /// Whether the bank should be asked: about operations, or for a purchase.
  package var hasQuestions: Bool {
    hasUnreportedOperations || state.needs.contains { spendable($0) < $1 && state.held[$0] == nil }
  }

  /// The currencies of the operations that no bank has decided.
  package var unreported: Set<String> { Set(state.undecided.flatMap(\.sums.keys)) }

  /// The offer to the bank for the next exchange.
  ///
  /// - Parameters:
  ///   - limit: The most operations of the chain, and of late ones.
  ///   - goods: The number of the last change of the player's goods that the store knows.
  package func offer(upTo limit: Int = maximumBatch, knowingGoods goods: UInt64 = 0) -> WalletOffer {
    WalletOffer(
      chain: state.chain, follows: state.follows, base: state.acknowledged, statement: state.statement,
      operations: state.operations.wholeUnits(upTo: limit), late: state.late.wholeUnits(upTo: limit),
      waiting: state.waiting.wholeUnits(upTo: limit).map(\.id), needs: state.needs, goods: goods)
  }

  /// The effect of a reply.
  package struct Change: Hashable, Sendable {
    package var balancesChanged = false
    /// Claims, late operations, and operations that nothing covered, which this reply decided.
    package var decisions: [Decided] = []
    /// There is something to report to the bank immediately: a new chain, or returned rights.
    package var hasMore = false
    /// Whether the wallet is any different. A reply that changes nothing although there are operations to report would
    /// be followed by the same offer.
    package var isProgress = false

    package init() {}
  }

  package struct Decided: Hashable, Sendable {
    package var operation: WalletOperation
    package var verdict: WalletDecision.Verdict

    package init(operation: WalletOperation, verdict: WalletDecision.Verdict) {
      self.operation = operation
      self.verdict = verdict
    }
  }

  /// Handles the bank's reply to the offer in flight. A reply about another chain or with impossible amounts changes
  /// nothing; so does an older statement than the one known here. Costs time in proportion to the operations that it
  /// settles.
  ///
  /// - Parameter operations: The operations after this head of the wallet's chain that the bank has acknowledged; nil
  ///   if the head isn't on the chain, or if they aren't kept. Needed for a bank that has lost some.
  package mutating func receive(
    _ reply: WalletReply, using random: inout some RandomNumberGenerator,
    acknowledged operations: (ChainHead) throws -> [WalletOperation]?
  ) rethrows -> Change {
    var change = Change()
    guard reply.chain == state.chain, reply.statement <= Cursor.maximumSeq, Self.arePossible(reply.totals),
      Self.arePossible(reply.balances)
    else {
      return change
    }
    let before = state
    switch reply.state {
    case .accepted(let head):
      guard reply.statement >= state.statement || faults.takesOldStatements, let index = position(of: head) else {
        return change
      }
      settle(reply.decisions, upTo: index, &change)
      state.acknowledged = head
      state.operations.removeFirst(index)
      state.statement = reply.statement
      state.balances = reply.balances
      // Kept with the wallet, which each operation writes.
      state.held = reply.held.filter { state.needs[$0.key] != nil }
        .mapValues { Array($0.prefix(WalletHolding.maximumListed)) }
      rebuildTotals(from: reply.totals)
      giveBack(reply.recalled, using: &random)
    case .from(let head, let common):
      try continueFrom(head, common, reply, &change, using: &random, acknowledged: operations)
    case .closed(let common):
      settle(reply.decisions, upTo: position(of: common) ?? 0, &change)
      startChain(after: common, using: &random)
    }
    change.isProgress = state != before
    // Nothing counts on a chain that follows another one before its first statement was shown.
    let isFirst = state.follows != nil && before.statement == 0 && state.statement > 0
    // An offer asks about the first of those that wait.
    let isPart = !state.waiting.isEmpty && state.waiting.count < before.waiting.count
    change.hasMore = change.isProgress && (hasUnreportedOperations || state.chain != before.chain || isFirst || isPart)
    change.balancesChanged = before.balances != state.balances || before.totals != state.totals
    return change
  }

  /// Handles a reply for a store that keeps none of its acknowledged operations.
  package mutating func receive(_ reply: WalletReply, using random: inout some RandomNumberGenerator) -> Change {
    receive(reply, using: &random) { _ in nil }
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

  /// Continues where the bank is, if that is on this chain; else with a new chain.
  private mutating func continueFrom(
    _ head: ChainHead, _ common: ChainHead?, _ reply: WalletReply, _ change: inout Change,
    using random: inout some RandomNumberGenerator, acknowledged operations: (ChainHead) throws -> [WalletOperation]?
  ) rethrows {
    if faults.ignoresHeadsBeyondBatch, position(of: head) != nil { return }
    if let common, let index = position(of: common), index > 0 {
      // A store that was set back: the bank has what was offered, and maybe more. Batch by batch, so that the verdicts
      // come, too.
      settle(reply.decisions, upTo: index, &change)
      state.acknowledged = common
      state.operations.removeFirst(index)
      if state.operations.isEmpty { startChain(after: common, using: &random) }
    } else if head.count < state.acknowledged.count, let lost = try operations(head) {
      // A bank that was set back. It is offered again what it lost, and everything after that.
      state.acknowledged = head
      state.operations = OperationList(lost + Array(state.operations))
    } else {
      startChain(after: common ?? state.acknowledged, using: &random)
    }
  }

  /// - Parameter index: How many operations of the chain the bank has.
  private mutating func settle(_ decisions: [WalletDecision], upTo index: Int, _ change: inout Change) {
    var verdicts: [OperationID: WalletDecision.Verdict] = [:]
    for decision in decisions { verdicts[decision.id] = decision.verdict }
    guard !verdicts.isEmpty else { return }
    func decide(_ operation: WalletOperation, _ wait: inout [WalletOperation]) {
      guard let verdict = verdicts[operation.id] else { return }
      if verdict == .waiting { wait.append(operation) }
      change.decisions.append(Decided(operation: operation, verdict: verdict))
    }
    var wait: [WalletOperation] = []
    for operation in state.operations.prefix(index) { decide(operation, &wait) }
    // They were sent from the front, and are decided there.
    let late = state.late.prefix { verdicts[$0.id] != nil }.count
    for operation in state.late.prefix(late) { decide(operation, &wait) }
    state.late.removeFirst(late)
    let answered = state.waiting.prefix(Self.maximumBatch).filter { verdicts[$0.id].map { $0 != .waiting } ?? false }
    if !answered.isEmpty {
      let ids = Set(answered.map(\.id))
      state.waiting.removeAll { ids.contains($0.id) }
      for operation in answered where verdicts[operation.id] != .unknown { decide(operation, &wait) }
      // A bank that was set back to before it had them.
      state.late.append(contentsOf: answered.filter { verdicts[$0.id] == .unknown })
    }
    if !faults.forgetsWaiting { state.waiting.append(contentsOf: wait) }
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

  /// Leaves the bank for another one, which gets what this one hasn't acknowledged.
  package mutating func leaveBank(using random: inout some RandomNumberGenerator) {
    startChain(after: state.acknowledged, using: &random)
    // The old bank has them, and will decide them.
    state.waiting = []
  }

  /// Returns what the bank recalls, except what a purchase needs here and has in full: the bank may not know yet what
  /// was spent meanwhile.
  private mutating func giveBack(_ recalled: [String: Int64], using random: inout some RandomNumberGenerator) {
    for (currency, asked) in recalled.sorted(by: { $0.key < $1.key }) {
      let need = state.needs[currency] ?? 0
      let kept = faults.recallsWhatIsSpent || need > spendable(currency) ? 0 : need
      var left = min(asked, spendable(currency) - kept)
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
    var next = WalletState(chain: ChainID(using: &random), follows: state.chain)
    next.late = state.late
    for operation in state.operations.dropFirst(kept) {
      // The bank takes back the rights of a chain that it closes, so there is nothing left to return.
      if operation.effect != .giveBack { next.late.append(operation) }
    }
    next.waiting = state.waiting
    next.balances = state.balances
    next.needs = state.needs
    next.isBound = state.isBound
    state = next
  }
}
