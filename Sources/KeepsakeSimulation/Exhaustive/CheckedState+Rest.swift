import KeepsakeReplication

// What must hold when nothing is under way and exchanges change nothing any more.
extension CheckedState {
  var restViolation: CheckedViolation? {
    strandedViolation ?? leftViolation ?? ledgerViolation ?? agreementViolation ?? needViolation
  }

  /// What is on open chains that no device has.
  private var unheld: [ChainID: [String: Int64]] {
    let held = Set([0, 1].map { self[$0].store.wallet.chain })
    return bank.state.chains.filter { !held.contains($0.key) }.compactMapValues { chain in
      let rights = chain.totals.mapValues(\.rights).filter { $0.value > 0 }
      return rights.isEmpty ? nil : rights
    }
  }

  private var strandedViolation: CheckedViolation? {
    for (chain, amounts) in unheld where !abandoned.contains(chain) {
      return CheckedViolation(
        .stranded, "\(CheckedWords.of(amounts)) on \(CheckedWords.of(chain)), which no device has")
    }
    return nil
  }

  private var leftViolation: CheckedViolation? {
    for slot in [0, 1] where Wallet(self[slot].store.wallet).hasUnreportedOperations {
      return CheckedViolation(.nothingLeft, "\(CheckedWords.device(slot)) still has operations to report")
    }
    guard unheld.isEmpty else { return nil }
    let waiting = bank.state.waiting.flatMap(\.operations) + [0, 1].flatMap { self[$0].store.wallet.waiting }
    // What a device needs for a purchase isn't recalled from it.
    guard !waiting.isEmpty, !isNeedMet else { return nil }
    return CheckedViolation(.nothingLeft, "\(CheckedWords.of(waiting)) waits although the devices hold all the money")
  }

  private var ledgerViolation: CheckedViolation? {
    for slot in [0, 1] {
      for line in self[slot].store.ledger {
        let operation = line.operation
        let words = "\(CheckedWords.device(slot)) made \"\(CheckedWords.of(operation))\""
        guard let decided = bank.records.decision(on: operation.id) else {
          return CheckedViolation(.ledger, "\(words), and the bank decided nothing")
        }
        let verdict = decided.fingerprint == operation.fingerprint ? decided.verdict : .idReused
        let isReported =
          line.verdict == verdict || line.verdict == nil && verdict == .accepted && operation.effect != .claim
        guard isReported else {
          return CheckedViolation(
            .ledger,
            "\(words), which is \(verdict.rawValue), and its ledger has \(line.verdict?.rawValue ?? "not reported")")
        }
      }
    }
    return nil
  }

  private var agreementViolation: CheckedViolation? {
    for slot in [0, 1] where self[slot].store.goods.counts != bank.records.goods.mapValues(\.count) {
      return CheckedViolation(
        .agreement,
        "\(CheckedWords.device(slot)) has the goods \(self[slot].store.goods.counts), and the bank "
          + "\(bank.records.goods.mapValues(\.count))")
    }
    let taken = CheckedBank.taken(by: bank.state.waiting.map(\.operations))
    let balances = bank.balances
    for slot in [0, 1] {
      let wallet = Wallet(self[slot].store.wallet)
      for currency in Set(balances.keys).union(wallet.currencies) {
        let balance = max(0, (balances[currency] ?? 0) - (taken[currency] ?? 0))
        guard wallet.total(currency) == balance else {
          return CheckedViolation(
            .agreement,
            "\(CheckedWords.device(slot)) has \(wallet.total(currency)) \(currency), and the bank \(balance)")
        }
        let rights = bank.state.chains[wallet.state.chain]?.totals[currency]?.rights ?? 0
        guard wallet.spendable(currency) == rights else {
          return CheckedViolation(
            .agreement,
            "\(CheckedWords.device(slot)) may spend \(wallet.spendable(currency)) \(currency), by the bank \(rights)")
        }
      }
    }
    return nil
  }

  /// Whether a device has what it needs.
  private var isNeedMet: Bool {
    [0, 1].contains { slot in
      let wallet = Wallet(self[slot].store.wallet)
      return wallet.state.needs.contains { $1 <= wallet.spendable($0) }
    }
  }

  private var needViolation: CheckedViolation? {
    // Of two needs, one may have to wait; and what waits comes first. The bank keeps what a store needed that was
    // replaced meanwhile, until that need expires.
    let held = Set([0, 1].map { self[$0].store.wallet.chain })
    let isKept = bank.state.chains.contains { id, chain in
      !held.contains(id) && chain.need.map { $0.untilMilliseconds > bank.now } ?? false
    }
    guard !isNeedMet, !isKept, unheld.isEmpty, bank.state.waiting.isEmpty else { return nil }
    for slot in [0, 1] {
      let wallet = Wallet(self[slot].store.wallet)
      for (currency, amount) in wallet.state.needs where amount <= bank.balances[currency] ?? 0 {
        return CheckedViolation(
          .needs,
          "\(CheckedWords.device(slot)) needs \(amount) \(currency) of \(bank.balances[currency] ?? 0), and may spend "
            + "\(wallet.spendable(currency))")
      }
    }
    return nil
  }
}
