// Who may spend how much by itself.
extension Bank {
  /// Returns the player's money in one currency; at most twice of what a player can have, as while a bank that was set
  /// back knows what it had granted, and not yet what was returned.
  package func balance(_ currency: String) -> Int64 {
    var sum = Int128(state.pool[currency] ?? 0)
    for chain in state.chains.values { sum += Int128(chain.totals[currency]?.rights ?? 0) }
    return Int64(clamping: min(sum, Int128(2 * Wallet.maximumTotal)))
  }

  /// Every currency that the bank knows, sorted.
  package var currencies: [String] {
    var names = Set(state.pool.keys)
    for chain in state.chains.values { names.formUnion(chain.totals.keys) }
    return names.sorted()
  }

  /// Returns whether the player can have so much more of a currency.
  func canGrow(_ currency: String, by amount: Int64) -> Bool {
    balance(currency).addingClamped(amount) <= Wallet.maximumTotal && canHave(currency)
  }

  /// Returns whether the player has this currency, or can have another one.
  func canHave(_ currency: String) -> Bool {
    state.pool[currency] != nil || state.chains.values.contains { $0.totals[currency] != nil }
      || currencies.count < Wallet.maximumCurrencies
  }

  private func isActive(_ chain: BankState.Chain) -> Bool {
    chain.isShown && now - chain.seenMilliseconds < Self.activeMilliseconds + Self.seenMilliseconds
  }

  /// What each of the chains that were offered this week should have, and what the pool should have: one device alone
  /// has everything; of several each has the same, and so has the pool, for the one that needs it.
  private struct Shares {
    var each: Int64
    var pool: Int64
  }

  private func shares(of currency: String, _ waiting: Int64) -> Shares {
    let active = Int64(state.chains.values.count(where: isActive))
    let free = max(0, balance(currency) - waiting)
    guard active > 1 else { return Shares(each: free, pool: 0) }
    let each = free / (active + 1) + (free % (active + 1) == 0 ? 0 : 1)
    return Shares(each: each, pool: max(0, free - each * active))
  }

  // MARK: The pool

  /// Adds money to the pool. What is missing after the bank was set back is covered first.
  ///
  /// - Parameter isNew: Whether it can't be what devices have shown: it covers nothing, so that the player has both.
  mutating func deposit(_ amount: Int64, of currency: String, isNew: Bool = false) {
    var left = amount
    if !isNew, var missing = state.missing, let lack = missing[currency] {
      let covered = min(lack, left)
      left -= covered
      missing[currency] = lack > covered ? lack - covered : nil
      state.missing = missing.isEmpty ? nil : missing
    }
    // More can't be there, except in a bank that was set back, and to which stores show what nobody ever had.
    if left > 0 {
      state.pool[currency] = min((state.pool[currency] ?? 0).addingClamped(left), Wallet.maximumTotal)
    }
  }

  /// Takes money out of the pool, which the caller has checked to have it.
  mutating func withdraw(_ amount: Int64, of currency: String) { state.pool[currency, default: 0] -= amount }

  // MARK: Needs

  /// Records what a device needs for a purchase, in the order in which needs came.
  mutating func note(_ needs: [String: Int64], of id: ChainID) {
    guard var chain = state.chains[id], chain.isShown else { return }
    if needs.isEmpty {
      chain.need = nil
    } else {
      let known = chain.need.flatMap { $0.untilMilliseconds > now ? $0 : nil }
      chain.need = BankState.Need(
        amounts: needs, number: known?.number ?? state.nextNeed, untilMilliseconds: now + Self.needMilliseconds)
      if known == nil { state.nextNeed += 1 }
    }
    state.chains[id] = chain
  }

  private func need(of chain: BankState.Chain) -> BankState.Need? {
    chain.isShown ? chain.need.flatMap { $0.untilMilliseconds > now ? $0 : nil } : nil
  }

  /// What other chains lack for purchases whose needs come before that of this chain.
  private func needs(before chain: BankState.Chain, _ id: ChainID, _ currency: String) -> Int64 {
    let own = need(of: chain).flatMap { ($0.amounts[currency] ?? 0) > 0 ? $0.number : nil } ?? .max
    var sum: Int64 = 0
    for (other, its) in state.chains where other != id {
      guard let need = need(of: its), need.number < own || faults.recallsWhatIsSpent else { continue }
      sum = sum.addingClamped(max(0, (need.amounts[currency] ?? 0) - (its.totals[currency]?.rights ?? 0)))
    }
    return sum
  }

  // MARK: Granting and recalling

  /// Grants a chain what it needs, or its share, as far as the pool has something that nobody else waits for.
  mutating func grant(to id: ChainID) {
    guard !isFrozen || faults.grantsWhileFrozen, var chain = state.chains[id] else { return }
    let waiting = promised()
    for currency in currencies {
      let (held, waits) = (state.pool[currency] ?? 0, waiting[currency] ?? 0)
      var totals = chain.totals[currency] ?? WalletTotals()
      // Many needs together may be more than 64 bits hold.
      let free = (held - waits).addingClamped(-needs(before: chain, id, currency))
      let aim = max(shares(of: currency, waits).each, need(of: chain)?.amounts[currency] ?? 0)
      let amount = min(free, aim - totals.rights, Wallet.maximumTotal - totals.granted)
      guard amount > 0 else { continue }
      totals.granted += amount
      chain.totals[currency] = totals
      withdraw(amount, of: currency)
    }
    state.chains[id] = chain
  }

  /// Returns what a chain should give back: all that is owed, that spends wait for, or that others needed for purchases
  /// before it needed anything itself, except what it needs and has in full; and what it has above its share if others
  /// or the pool have less than half of theirs.
  func recall(from id: ChainID) -> [String: Int64] {
    guard !isFrozen, let chain = state.chains[id], chain.isShown else { return [:] }
    let waiting = promised()
    var result: [String: Int64] = [:]
    for currency in currencies {
      let rights = chain.totals[currency]?.rights ?? 0
      guard rights > 0 else { continue }
      let (held, waits) = (state.pool[currency] ?? 0, waiting[currency] ?? 0)
      let own = need(of: chain)?.amounts[currency] ?? 0
      let needed = waits.addingClamped(needs(before: chain, id, currency)) - held
      // If two devices kept what isn't enough for the purchase of either, neither could make one.
      let kept = faults.recallsWhatIsSpent || own > rights ? 0 : own
      let amount = max(
        min(needed, rights - kept),
        min(lack(of: currency, waits, besides: id), rights - max(shares(of: currency, waits).each, own)))
      if amount > 0 { result[currency] = amount }
    }
    return result
  }

  /// How much the others and the pool have less than their shares; zero unless somebody has less than half.
  private func lack(of currency: String, _ waiting: Int64, besides id: ChainID) -> Int64 {
    let (shares, free) = (shares(of: currency, waiting), (state.pool[currency] ?? 0) - waiting)
    var lack: Int64 = 0
    for (other, its) in state.chains where other != id && isActive(its) {
      let rights = its.totals[currency]?.rights ?? 0
      if rights < shares.each / 2 { lack = lack.addingClamped(shares.each - rights) }
    }
    let isShort = free - lack < shares.pool / 2
    return isShort ? lack.addingClamped(shares.pool) - free : 0
  }

  /// Which devices hold the money, the most first.
  func holdings(of currency: String, except id: ChainID) -> [WalletHolding] {
    state.chains.compactMap { other, chain in
      let rights = chain.totals[currency]?.rights ?? 0
      guard other != id, rights > 0 else { return nil }
      return WalletHolding(device: chain.device, amount: rights, seenMilliseconds: chain.seenMilliseconds)
    }
    .sorted { ($1.amount, $0.seenMilliseconds) < ($0.amount, $1.seenMilliseconds) }
    .prefix(WalletHolding.maximumListed).map(\.self)
  }
}
