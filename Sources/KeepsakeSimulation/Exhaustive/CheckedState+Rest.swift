import KeepsakeReplication

// What must hold when nothing is under way and exchanges change nothing any more.
extension CheckedState {
  var restViolation: CheckedViolation? {
    strandedViolation ?? leftViolation ?? ledgerViolation ?? agreementViolation ?? needViolation ?? voucherViolation
  }

  /// The devices whose stores belong to a bank's container.
  private func slots(at place: Int) -> [Int] { [0, 1].filter { self[$0].store.membership.place == place } }

  /// The wallets that a bank knows, or will.
  private func wallets(at place: Int) -> [WalletState] {
    let former = [0, 1].flatMap { self[$0].store.membership.former }.filter { $0.bank == CheckedBank.id(of: place) }
    return slots(at: place).map { self[$0].store.wallet } + former.map(\.state)
  }

  /// What is on open chains that no device has.
  private func unheld(at place: Int) -> [ChainID: [String: Int64]] {
    let held = Set(wallets(at: place).map(\.chain))
    return self[bankAt: place].state.chains.filter { !held.contains($0.key) }.compactMapValues { chain in
      let rights = chain.totals.mapValues(\.rights).filter { $0.value > 0 }
      return rights.isEmpty ? nil : rights
    }
  }

  private var strandedViolation: CheckedViolation? {
    for place in [0, 1] {
      for (chain, amounts) in unheld(at: place) where !abandoned.contains(chain) {
        return CheckedViolation(
          .stranded, "\(CheckedWords.of(amounts)) on \(CheckedWords.of(chain)), which no device has")
      }
      // The last device takes everything along, unless its store was replaced.
      guard moves > 0, copies == 0 else { continue }
      let bank = self[bankAt: place]
      let left = bank.balances.filter { $0.value != 0 }
      guard wallets(at: place).isEmpty, bank.state.chains.isEmpty, !left.isEmpty else { continue }
      return CheckedViolation(.stranded, "\(CheckedWords.of(left)) at a bank that every device has left")
    }
    return nil
  }

  private var leftViolation: CheckedViolation? {
    for slot in [0, 1] {
      let store = self[slot].store
      if Wallet(store.wallet).hasUnreportedOperations {
        return CheckedViolation(.nothingLeft, "\(CheckedWords.device(slot)) still has operations to report")
      }
      if let voucher = store.wallet.vouchers.first {
        return CheckedViolation(
          .nothingLeft,
          "\(CheckedWords.device(slot)) still has a voucher for \(CheckedWords.of(voucher.amounts))")
      }
      for former in store.membership.former {
        // What waits there may wait for a chain that nobody has.
        let place = former.bank == CheckedBank.id(of: 0) ? 0 : 1
        guard unheld(at: place).isEmpty || self[bankAt: place].state.waiting.isEmpty else { continue }
        // Or for what a device needs for a purchase.
        guard !isNeedMet(at: place) || self[bankAt: place].state.waiting.isEmpty else { continue }
        return CheckedViolation(
          .nothingLeft, "\(CheckedWords.device(slot)) never settles \(CheckedWords.of(former.state.chain))")
      }
    }
    for place in [0, 1] where unheld(at: place).isEmpty {
      let waiting = self[bankAt: place].state.waiting.flatMap(\.operations) + wallets(at: place).flatMap(\.waiting)
      // What a device needs for a purchase isn't recalled from it.
      guard !waiting.isEmpty, !isNeedMet(at: place) else { continue }
      return CheckedViolation(
        .nothingLeft, "\(CheckedWords.of(waiting)) waits although the devices hold all the money")
    }
    return nil
  }

  private var ledgerViolation: CheckedViolation? {
    for slot in [0, 1] {
      for line in self[slot].store.ledger where line.owner != .handed {
        let operation = line.operation
        let words = "\(CheckedWords.device(slot)) made \"\(CheckedWords.of(operation))\""
        let decisions = [bank, secondBank].compactMap { $0.records.decision(on: operation.id) }
        guard let decided = decisions.first else {
          // What an earlier bank has declined isn't offered to a restored one.
          if restores > 0, let verdict = line.verdict, !verdict.counts { continue }
          return CheckedViolation(.ledger, "\(words), and the bank decided nothing")
        }
        let verdict = decided.fingerprint == operation.fingerprint ? decided.verdict : .idReused
        let isReported =
          line.verdict == verdict || line.verdict == nil && verdict == .accepted && operation.effect != .claim
        // An earlier bank may have declined what the restored one accepts, and paid a claim for which it now pays
        // another device. What counted counts.
        let isOlder = restores > 0 && (line.verdict.map { !$0.counts } ?? false || operation.effect == .claim)
        guard isReported || isOlder else {
          return CheckedViolation(
            .ledger,
            "\(words), which is \(verdict.rawValue), and its ledger has \(line.verdict?.rawValue ?? "not reported")")
        }
      }
    }
    return nil
  }

  private var agreementViolation: CheckedViolation? {
    for slot in [0, 1] {
      let bank = bank(of: slot)
      guard self[slot].store.goods.counts == bank.records.goods.mapValues(\.count) else {
        return CheckedViolation(
          .agreement,
          "\(CheckedWords.device(slot)) has the goods \(self[slot].store.goods.counts), and the bank "
            + "\(bank.records.goods.mapValues(\.count))")
      }
      let taken = CheckedBank.taken(by: bank.state.waiting.map(\.operations))
      let balances = bank.balances
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
  private func isNeedMet(at place: Int) -> Bool {
    slots(at: place).contains { slot in
      let wallet = Wallet(self[slot].store.wallet)
      return wallet.state.needs.contains { $1 <= wallet.spendable($0) }
    }
  }

  private var needViolation: CheckedViolation? {
    for place in [0, 1] {
      // Of two needs, one may have to wait; and what waits comes first. The bank keeps what a store needed that was
      // replaced meanwhile, until that need expires.
      let (bank, held) = (self[bankAt: place], Set(wallets(at: place).map(\.chain)))
      let isKept = bank.state.chains.contains { id, chain in
        !held.contains(id) && chain.need.map { $0.untilMilliseconds > bank.now } ?? false
      }
      guard !isNeedMet(at: place), !isKept, unheld(at: place).isEmpty, bank.state.waiting.isEmpty else { continue }
      for slot in slots(at: place) {
        let wallet = Wallet(self[slot].store.wallet)
        for (currency, amount) in wallet.state.needs where amount <= bank.balances[currency] ?? 0 {
          return CheckedViolation(
            .needs,
            "\(CheckedWords.device(slot)) needs \(amount) \(currency) of \(bank.balances[currency] ?? 0), and may "
              + "spend \(wallet.spendable(currency))")
        }
      }
    }
    return nil
  }

  // MARK: Two banks

  /// Every voucher was paid: no store that had one was replaced, and no bank lost that it was paid.
  private var voucherViolation: CheckedViolation? {
    guard moves > 0, copies == 0, restores == 0 else { return nil }
    for (bank, other) in [(bank, secondBank), (secondBank, bank)] {
      for voucher in bank.records.issued
      where voucher.receiver == CheckedBank.id(of: other.place) && !voucher.isEmpty
        && !other.records.audit.taken.contains(voucher.chain)
      {
        return CheckedViolation(
          .stranded,
          "the voucher for \(CheckedWords.of(voucher.amounts)) of \(CheckedWords.of(voucher.chain)) isn't paid")
      }
    }
    return nil
  }

  /// What must hold between the two banks in every state.
  var twoBanksViolation: CheckedViolation? {
    let (first, second) = (bank.records, secondBank.records)
    // What has the same id wherever it is done counts for each player.
    let twice = first.decisions.values.filter { decision in
      second.decisions[decision.operation.id] != nil && decision.operation.id != WalletDeed.sharedID
    }
    // The first one, so that the same state always has the same words.
    if let decision = twice.min(by: { $0.operation.id < $1.operation.id }) {
      return CheckedViolation(.decidedOnce, "both banks decide \(CheckedWords.of(decision.operation))")
    }
    guard restores == 0 else { return nil }
    for (paying, issuing) in [(bank, second), (secondBank, first)] {
      let issued = issuing.issued.filter { $0.receiver == CheckedBank.id(of: paying.place) }
      guard paying.records.audit.taken.isSubset(of: issued.map(\.chain)) else {
        return CheckedViolation(.money, "a voucher is paid that the other bank didn't issue")
      }
    }
    return nil
  }
}
