// Operations that came late: made on a chain that was closed meanwhile, or beyond a chain's rights.
extension Bank {
  /// Counts what came late: together from the pool, or when the pool covers it, or never.
  ///
  /// - Parameters:
  ///   - mayBeLeft: Whether it may stay undecided if there is no room for it to wait, or the bank is frozen; its store
  ///     offers it again.
  ///   - isSettled: Whether the bank had counted it before it was set back: it counts again, whatever the balance.
  mutating func applyLate(
    _ unit: [WalletOperation], of chain: ChainID, mayBeLeft: Bool = false, isSettled: Bool = false,
    in storage: inout some BankStorage
  ) throws {
    let fresh = try unit.filter { operation in
      guard let known = try storage.decision(on: operation.id) else { return true }
      return isSettled && !known.verdict.isFinal || faults.chargesLateTwice
    }
    // Also while the bank is frozen, and whatever a store says that it had settled: nothing can ever allow them.
    if hasForbidden(fresh) {
      for operation in fresh { try record(.declined, on: operation, of: chain, in: &storage) }
      return
    }
    if isFrozen, !isSettled, mayBeLeft, mustWaitWhileFrozen(fresh) { return }
    for claim in fresh where claim.isClaim {
      let isPaid = try pay(claim, to: nil, in: &storage)
      try record(isPaid ? .accepted : .declined, on: claim, of: chain, in: &storage)
    }
    // The rights went back to the pool when the chain was closed.
    for operation in fresh where operation.effect == .giveBack {
      try record(.accepted, on: operation, of: chain, in: &storage)
    }
    let moving = fresh.filter { !$0.movements.isEmpty }
    guard !moving.isEmpty else { return }
    if faults.splitsLateGroups, moving.count > 1 {
      for operation in moving { try applyLate([operation], of: chain, mayBeLeft: mayBeLeft, in: &storage) }
      return
    }
    if isSettled {
      try stopWaiting(for: moving, in: storage)
      let net = Self.net(moving)
      guard net.allSatisfy({ $1 > 0 ? canGrow($0, by: $1) : canHave($0) }) else {
        for operation in moving { try record(.declined, on: operation, of: chain, in: &storage) }
        return
      }
      for (currency, change) in net {
        if change < 0 { takeTrusted(-change, of: currency) } else { deposit(change, of: currency) }
      }
      for operation in moving { try record(.accepted, on: operation, of: chain, in: &storage) }
      return
    }
    if try hasUncounted(unit, in: storage) {
      for operation in moving { try record(.declined, on: operation, of: chain, in: &storage) }
      return
    }
    try decide(BankState.Waiting(operations: moving, chain: chain), isNew: true, mayBeLeft: mayBeLeft, in: &storage)
  }

  /// Removes from what waits the operations that were charged before the bank was set back, and that waited in the
  /// backup.
  private mutating func stopWaiting(for settled: [WalletOperation], in storage: some BankStorage) throws {
    guard !state.waiting.isEmpty, try settled.contains(where: { try storage.decision(on: $0.id) != nil })
    else { return }
    let ids = Set(settled.map(\.id))
    state.waiting.removeAll { $0.operations.contains { ids.contains($0.id) } }
    waitingSums = Self.sums(of: state.waiting)
  }

  /// Returns whether operations that count together have one that doesn't count: it was declined before, under the same
  /// id in another group, or its id is that of another operation.
  func hasUncounted(_ unit: [WalletOperation], in storage: some BankStorage) throws -> Bool {
    try unit.contains { operation in
      guard !operation.movements.isEmpty, let known = try storage.decision(on: operation.id) else { return false }
      return known.verdict == .declined || known.fingerprint != operation.fingerprint
    }
  }

  /// Pays debts, and then charges the spends that wait, in their order, as far as the pool covers them. Declines those
  /// that the balance doesn't cover any more, because devices have spent their rights, or because it is owed.
  mutating func settleWaiting(in storage: inout some BankStorage) throws {
    guard !isFrozen else { return }
    payDebts()
    guard !state.waiting.isEmpty else { return }
    let waiting = state.waiting
    (state.waiting, waitingSums) = ([], [:])
    for spend in waiting { try decide(spend, isNew: false, in: &storage) }
  }

  /// - Parameter isNew: Whether it doesn't wait yet.
  private mutating func decide(
    _ unit: BankState.Waiting, isNew: Bool, mayBeLeft: Bool = false, in storage: inout some BankStorage
  ) throws {
    let net = Self.net(unit.operations)
    var verdict = WalletDecision.Verdict.accepted
    for (currency, change) in net {
      // What those ahead take, if they are still waiting; what is owed comes first.
      let ahead = (waitingSums[currency] ?? 0).addingClamped(state.debts?[currency] ?? 0)
      let held = state.pool[currency] ?? 0
      if change >= 0 {
        if change > 0, !canGrow(currency, by: change) { verdict = .declined }
      } else if change + balance(currency) - ahead < 0 {
        verdict = .declined
      } else if change + held - ahead < 0, verdict == .accepted {
        verdict = faults.declinesThoughCovered ? .declined : .waiting
      }
    }
    // What waits may have become payable with what this offer brought, and bring what covers this.
    if verdict == .declined, isNew, !isFrozen, !state.waiting.isEmpty, settlements < Self.maximumSettlements {
      settlements += 1
      try settleWaiting(in: &storage)
      return try decide(unit, isNew: true, mayBeLeft: mayBeLeft, in: &storage)
    }
    if verdict == .accepted {
      for (currency, change) in net {
        if change < 0 { withdraw(-change, of: currency) } else { deposit(change, of: currency) }
      }
    }
    // On a chain, only a store that spends more than its rights gets here.
    if verdict == .waiting, isNew, !hasRoomToWait(for: unit.operations) {
      if mayBeLeft { return }
      verdict = .declined
    }
    if verdict == .waiting {
      state.waiting.append(unit)
      for (currency, change) in net where change < 0 { waitingSums[currency, default: 0] -= change }
      guard isNew else { return }
    }
    for operation in unit.operations { try record(verdict, on: operation, of: unit.chain, in: &storage) }
  }

  /// Whether a bank that was set back can't decide the operations before it knows what it had granted.
  func mustWaitWhileFrozen(_ fresh: [WalletOperation]) -> Bool {
    fresh.contains(where: \.isClaim) || Self.net(fresh).contains { $0.value < 0 }
  }

  /// Returns whether as many more operations may wait.
  private func hasRoomToWait(for unit: [WalletOperation]) -> Bool {
    state.waiting.reduce(unit.count) { $0 + $1.operations.count } <= Self.maximumWaiting
  }

  /// What the spends that wait will take from the pool, by currency.
  package func waitingSpends() -> [String: Int64] { waitingSums }

  static func sums(of waiting: [BankState.Waiting]) -> [String: Int64] {
    var sums: [String: Int64] = [:]
    for unit in waiting {
      for (currency, change) in net(unit.operations) where change < 0 { sums[currency, default: 0] -= change }
    }
    return sums
  }

  /// What operations that count together add to the money, by currency.
  private static func net(_ operations: [WalletOperation]) -> [String: Int64] {
    var sums: [String: Int64] = [:]
    for movement in operations.flatMap(\.movements) {
      sums[movement.currency, default: 0] += movement.earned - movement.spent
    }
    return sums
  }
}
