// What the store offers the bank, and how it handles the replies.
extension Wallet {
  /// Whether there is something here that the bank doesn't know yet.
  package var hasUnreportedOperations: Bool { !state.operations.isEmpty || !state.late.isEmpty }

  /// Whether the bank should be asked: about operations, for a purchase, or for what other banks owe the player.
  package var hasQuestions: Bool {
    hasUnreportedOperations || state.proving != nil || !state.vouchers.isEmpty
      || state.needs.contains { spendable($0) < $1 && state.held[$0] == nil }
  }

  /// The currencies of the operations that no bank has decided.
  package var unreported: Set<String> { Set(state.undecided.flatMap(\.sums.keys)) }

  /// The offer to the bank for the next exchange.
  ///
  /// - Parameters:
  ///   - limit: The most operations of the chain, and of late ones.
  ///   - goods: The number of the last change of the player's goods that the store knows.
  package func offer(upTo limit: Int = maximumBatch, knowingGoods goods: UInt64 = 0) -> WalletOffer {
    // That of the former chain, before the bank has said anything on this one: it may not know that it was set back.
    let isShowing = state.proving != nil || state.statement == 0 && state.follows != nil && state.proof != nil
    return WalletOffer(
      chain: state.chain, follows: state.follows, base: state.acknowledged, statement: state.statement,
      epoch: state.epoch, proving: state.proving, proof: isShowing ? state.proof : nil,
      settled: state.settled, skipsLost: state.skipsLost, operations: state.operations.wholeUnits(upTo: limit),
      late: state.late.wholeUnits(upTo: limit), ancestors: isShowing ? state.ancestors : [],
      again: state.again,
      waiting: state.waiting.wholeUnits(upTo: limit).map(\.id), needs: state.needs, goods: goods, orders: state.orders,
      vouchers: state.offeredVouchers)
  }

  /// The effect of a reply.
  package struct Change: Hashable, Sendable {
    package var balancesChanged = false
    /// Claims, late operations, and operations that nothing covered, which this reply decided.
    package var decisions: [Decided] = []
    /// What the bank will never pay of what the wallet showed: it is removed from the wallet.
    package var declinedVouchers: [WalletVoucher] = []
    /// The bank's own operations that are new here, in their sequence.
    package var orders: [BankOrder] = []
    /// Whether the bank has made these orders since this store first reached it, so that the game has to be told.
    package var areOrdersNews = false
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
  /// - Parameters:
  ///   - operations: The operations after this head of the wallet's chain that the bank has acknowledged. Needed for a
  ///     bank that has lost some.
  ///   - settled: The operations that count, oldest first, as far as they are kept; those on the wallet's chain only if
  ///     the parameter is true. Needed for such a bank, too.
  package mutating func receive(
    _ reply: WalletReply, using random: inout some RandomNumberGenerator,
    acknowledged operations: (ChainHead) throws -> AcknowledgedOperations, settled: (Bool) throws -> [WalletOperation]
  ) rethrows -> Change {
    var change = Change()
    guard reply.chain == state.chain, max(reply.statement, reply.epoch) <= Cursor.maximumSeq,
      Self.arePossible(reply.totals), Self.arePossible(reply.balances), Self.arePossible(owed: reply.owed),
      Self.arePossible(reply.orders)
    else {
      return change
    }
    let before = state
    removeVouchers(reply, &change)
    switch reply.state {
    case .accepted(let head):
      // The epoch may be an earlier one, of a bank to which this store couldn't prove that there was a later one.
      guard
        state.proving == reply.epoch || (reply.epoch, reply.statement) >= (state.epoch, state.statement)
          || faults.takesOldStatements,
        let index = position(of: head)
      else { return change }
      settle(reply.decisions, upTo: index, &change)
      acknowledge(head, index)
      note(reply, at: head)
      state.balances = reply.balances
      state.owed = reply.owed
      state.authoritative = Array(
        reply.authoritative.filter(NameRule.currency.allows).prefix(Self.maximumCurrencies))
      take(reply.orders, &change)
      // Kept with the wallet, which each operation writes.
      state.held = reply.held.filter { state.needs[$0.key] != nil }
        .mapValues { Array($0.prefix(WalletHolding.maximumListed)) }
      rebuildTotals(from: reply.totals)
      giveBack(reply.recalled, using: &random)
    case .from(let head, let common):
      try continueFrom(head, common, reply, &change, using: &random, acknowledged: operations, settled: settled)
    case .closed(let common):
      settle(reply.decisions, upTo: position(of: common) ?? 0, &change)
      try startChain(
        after: common, lost: lost(settled), showing: reply.proof, settled: lastSettled(operations), using: &random)
    case .restored:
      if state.proving != reply.epoch { try offerAgain(settled(false)) }
      state.proving = reply.epoch
      // The bank's orders are numbered anew. Those that are known here are recognized by their ids.
      state.orders = 0
    }
    change.isProgress = state != before
    // Being asked once more, before anything was shown, may go on for ever.
    if case .restored = reply.state, before.proving != nil { change.isProgress = false }
    // Nothing counts on a chain that follows another one before its first statement was shown.
    let isFirst = state.follows != nil && before.statement == 0 && state.statement > 0
    // An offer asks about the first of those that wait.
    let isPart = !state.waiting.isEmpty && state.waiting.count < before.waiting.count
    let hasMoreOrders = change.orders.count == NumberedOrder.maximumListed
    let hasMoreVouchers = !state.vouchers.isEmpty && state.vouchers.count < before.vouchers.count
    change.hasMore =
      change.isProgress
      && (hasUnreportedOperations || state.chain != before.chain || state.proving != nil || isFirst || isPart
        || hasMoreOrders || hasMoreVouchers)
    change.balancesChanged =
      before.balances != state.balances || before.totals != state.totals || before.owed != state.owed
      || before.vouchers != state.vouchers
    // Those that can't be paid yet don't keep the others from being shown. That is no progress: it changes no money.
    let shown = before.offeredVouchers.count
    if shown > 0, shown < before.vouchers.count, state.vouchers == before.vouchers {
      state.vouchers = Array(state.vouchers.dropFirst(shown) + state.vouchers.prefix(shown))
    }
    return change
  }

  /// Handles a reply for a store that keeps none of its acknowledged operations.
  package mutating func receive(_ reply: WalletReply, using random: inout some RandomNumberGenerator) -> Change {
    receive(reply, using: &random, acknowledged: { _ in .notKept }, settled: { _ in [] })
  }

  private mutating func acknowledge(_ head: ChainHead, _ count: Int) {
    let most = SettledOperations.maximumCount
    let isNear = state.previous.map { head.count.subtractingReportingOverflow($0.count).partialValue <= UInt64(most) }
    if count > 0, isNear != true {
      state.previous = state.operations.prefix(max(0, count - most)).reduce(state.acknowledged) { $0.appending($1) }
    }
    state.acknowledged = head
    state.operations.removeFirst(count)
    state.replayed = max(0, state.replayed - count)
  }

  /// Keeps the bank's statement.
  private mutating func note(_ reply: WalletReply, at head: ChainHead) {
    (state.statement, state.epoch) = (reply.statement, reply.epoch)
    (state.proving, state.skipsLost, state.settled) = (nil, false, nil)
    let isSealed = reply.code.count == BankSeal.codeBytes
    state.proof =
      isSealed
      ? WalletStatement(
        epoch: reply.epoch, number: reply.statement, head: head, totals: reply.totals, code: reply.code) : nil
  }

  /// Offers the bank again what it had settled on other chains before it was set back.
  private mutating func offerAgain(_ settled: [WalletOperation]) {
    // Some may be offered for an earlier restore still.
    let known = Array(state.late.prefix(state.again))
    let ids = Set(known.map(\.id))
    let again = settled.filter { !ids.contains($0.id) && $0.effect != .giveBack } + known
    state.late = OperationList(again + Array(state.late.dropFirst(state.again)))
    state.again = again.count
  }

  private mutating func removeVouchers(_ reply: WalletReply, _ change: inout Change) {
    let (taken, declined) = (Set(reply.takenVouchers), Set(reply.declinedVouchers))
    guard !taken.isEmpty || !declined.isEmpty else { return }
    change.declinedVouchers = state.vouchers.filter { declined.contains($0.chain) }
    state.vouchers.removeAll { taken.contains($0.chain) || declined.contains($0.chain) }
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
    using random: inout some RandomNumberGenerator,
    acknowledged operations: (ChainHead) throws -> AcknowledgedOperations, settled: (Bool) throws -> [WalletOperation]
  ) rethrows {
    if faults.ignoresHeadsBeyondBatch, position(of: head) != nil { return }
    if let common, let index = position(of: common), index > 0 {
      // A store that was set back: the bank has what was offered, and maybe more. Batch by batch, so that the verdicts
      // come, too.
      settle(reply.decisions, upTo: index, &change)
      let shown = try lastSettled(operations)
      acknowledge(common, index)
      if state.operations.isEmpty {
        try startChain(
          after: common, lost: lost(settled), showing: reply.proof, settled: shown, using: &random)
      }
      return
    }
    switch head.count < state.acknowledged.count ? try operations(head) : .branched {
    case .kept(let lost):
      // A bank that was set back. It is offered again what it lost, and everything after that.
      (state.acknowledged, state.previous) = (head, nil)
      state.operations = OperationList(lost + Array(state.operations))
      state.replayed += lost.count
    case .notKept where state.proving != nil && state.proof != nil && !state.skipsLost:
      state.skipsLost = true
    case .branched, .notKept:
      // Also a bank that was set back, after which a copy of this store continued the chain first.
      try startChain(
        after: common ?? state.acknowledged, lost: lost(settled), showing: reply.proof,
        settled: lastSettled(operations), using: &random)
    }
  }

  /// Returns what a bank that was set back may have lost of a chain that ends.
  private func lost(_ settled: (Bool) throws -> [WalletOperation]) rethrows -> [WalletOperation] {
    state.proving == nil ? [] : try settled(true)
  }

  /// Returns what shows that the bank had settled the last operations of a chain which ends, if there is such a thing.
  /// A bank that has asked for a statement has found out without it.
  private func lastSettled(_ operations: (ChainHead) throws -> AcknowledgedOperations) rethrows -> SettledOperations? {
    guard state.proving == nil else { return nil }
    guard let proof = state.proof, proof.head == state.acknowledged, let previous = state.previous,
      case .kept(let kept) = try operations(previous), (1...SettledOperations.maximumCount).contains(kept.count)
    else { return state.settled }
    return SettledOperations(statement: proof, previous: previous.hash, operations: kept)
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
    /// What a bank that was set back settles again isn't decided anew. The game has to know what it declines or lets
    /// wait; not so of a claim, whose payment counts once, whichever device it is for.
    func decideAgain(_ operation: WalletOperation, _ wait: inout [WalletOperation]) {
      guard let verdict = verdicts[operation.id], !verdict.counts, verdict != .declined || !operation.isClaim else {
        return
      }
      decide(operation, &wait)
    }
    for operation in state.operations.prefix(min(index, state.replayed)) { decideAgain(operation, &wait) }
    for operation in state.operations.prefix(index).dropFirst(state.replayed) { decide(operation, &wait) }
    // They were sent from the front, and are decided there.
    let late = state.late.prefix { verdicts[$0.id] != nil }.count
    for operation in state.late.prefix(min(late, state.again)) { decideAgain(operation, &wait) }
    for operation in state.late.prefix(late).dropFirst(state.again) { decide(operation, &wait) }
    state.late.removeFirst(late)
    state.again = max(0, state.again - late)
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

  /// Takes orders that come after those that are known. A bank that was set back says so, and begins again.
  private mutating func take(_ orders: [NumberedOrder], _ change: inout Change) {
    if let first = orders.first, let last = orders.last {
      guard first.number == state.orders + 1 else { return }
      state.orders = last.number
      change.orders = orders.map(\.order)
      change.areOrdersNews = !state.isCatchingUp
    }
    // A full list may be followed by further ones.
    if orders.count < NumberedOrder.maximumListed { state.isCatchingUp = false }
  }

  /// Whether a bank can list these orders: one after the other, and none that it wouldn't perform.
  private static func arePossible(_ orders: [NumberedOrder]) -> Bool {
    guard let first = orders.first else { return true }
    guard orders.count <= NumberedOrder.maximumListed, (1...Cursor.maximumSeq).contains(first.number) else {
      return false
    }
    return zip(orders, first.number...).allSatisfy { numbered, number in
      guard numbered.number == number, number <= Cursor.maximumSeq else { return false }
      do { try numbered.order.check() } catch { return false }
      return true
    }
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
  ///
  /// - Parameters:
  ///   - lost: What the bank had settled, and may have lost.
  ///   - shown: Where the bank has the chain that ends.
  ///   - settled: What the bank had settled on it, or on one before.
  private mutating func startChain(
    after common: ChainHead, lost: [WalletOperation], showing shown: WalletStatement?, settled: SettledOperations?,
    using random: inout some RandomNumberGenerator
  ) {
    let kept = position(of: common) ?? 0
    var next = WalletState(chain: ChainID(using: &random), follows: state.chain)
    // The bank takes back the rights of a chain that it closes, so there is nothing left to return.
    let left = state.operations.dropFirst(kept)
    let replayed = left.prefix(max(0, state.replayed - kept))
    let undecided = Set((Array(state.late) + left).map(\.id))
    let again =
      Array(state.late.prefix(state.again))
      + (lost.filter { !undecided.contains($0.id) } + replayed).filter { $0.effect != .giveBack }
    next.late = OperationList(again + Array(state.late.dropFirst(state.again)))
    for operation in left.dropFirst(replayed.count) where operation.effect != .giveBack { next.late.append(operation) }
    next.waiting = state.waiting
    next.balances = state.balances
    next.needs = state.needs
    next.isBound = state.isBound
    next.bank = state.bank
    (next.epoch, next.proving, next.again) = (state.epoch, state.proving, again.count)
    // That of a former chain shows a bank which is set back that it had settled what it is offered again. A bank that
    // has asked for one from before it was set back isn't shown one that it has made since.
    next.proof = state.proof
    if let shown, shown.isPossibleOfHead, shown.epoch >= state.proof?.epoch ?? 0,
      state.proving == nil || state.proof == nil
    {
      next.proof = shown
    }
    next.settled = settled
    next.ancestors = Array(([state.follows].compactMap(\.self) + state.ancestors).prefix(WalletState.maximumAncestors))
    (next.orders, next.isCatchingUp) = (state.orders, state.isCatchingUp)
    (next.owed, next.authoritative) = (state.owed, state.authoritative)
    next.vouchers = state.vouchers
    state = next
  }
}

extension WalletState {
  /// The first vouchers, as many as an offer takes.
  fileprivate var offeredVouchers: [WalletVoucher] {
    var left = WalletVoucher.maximumClaims
    return Array(
      vouchers.prefix(WalletVoucher.maximumShown).prefix { voucher in
        left -= voucher.claims.count
        return left >= 0
      })
  }
}
