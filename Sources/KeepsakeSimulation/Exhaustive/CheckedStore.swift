import KeepsakeReplication

/// The store of a device: a wallet, and what the ledger keeps of its operations. Immutable, so that states share it.
final class CheckedStore: Sendable {
  struct Line: Hashable, Sendable {
    let operation: WalletOperation
    /// What the bank reported; nil for an operation that counts, or that isn't reported yet.
    var verdict: WalletDecision.Verdict?
    var owner = Owner.present
  }

  /// Whose wallet has an operation.
  enum Owner: UInt64, Hashable, Sendable {
    case present
    /// It was made for a bank that was left since.
    case former
    /// It came with a wallet that was adopted.
    case adopted
    /// It went to another store.
    case handed
  }

  /// Where the store belongs, and what it left elsewhere.
  struct Membership: Hashable, Sendable {
    /// The bank of its container.
    var place = 0
    /// Its wallets at banks that it left.
    var former: [FormerWallet] = []
    /// How often it joined another player, adopted wallets or gave them away: a backup from before that doesn't know of
    /// the chains that came with it.
    var changes: UInt8 = 0
  }

  let wallet: WalletState
  let membership: Membership
  /// What the game did, oldest first.
  let ledger: [Line]
  /// The operations of the wallet's chain that the bank has acknowledged.
  let acknowledged: [WalletOperation]
  /// What the bank says that the player has.
  let goods: PlayerGoods
  /// Which install this is, so that a backup of it is told from the store of another device.
  let install: UInt8
  let offer: CheckedOffer
  let digest: StateDigest
  /// The rule that the store violates by itself.
  let violation: CheckedViolation?

  init(
    _ wallet: WalletState, membership: Membership, ledger: [Line] = [], acknowledged: [WalletOperation] = [],
    goods: PlayerGoods = PlayerGoods(), install: UInt8, batch: Int, violation: CheckedViolation? = nil
  ) {
    (self.wallet, self.membership, self.ledger, self.goods) = (wallet, membership, ledger, goods)
    self.install = install
    self.acknowledged = acknowledged
    offer = CheckedOffer(Wallet(wallet).offer(upTo: batch, knowingGoods: goods.number))
    var digest = StateDigest(tag: 1)
    digest.add(wallet)
    digest.add(UInt64(membership.place) << 8 | UInt64(membership.changes))
    digest.add(membership.former.count)
    for former in membership.former { digest.add(former) }
    digest.add(ledger.count)
    for line in ledger {
      digest.add(line.operation)
      digest.add(line.owner.rawValue << 8 | (line.verdict.map { $0.code } ?? 0))
    }
    digest.add(goods.number)
    digest.add(goods.counts)
    digest.add(UInt64(install))
    self.digest = digest
    // What a device earned under an id that counted elsewhere may be spent before it learns of that.
    let isShared = ledger.contains { $0.operation.id == WalletDeed.sharedID }
    let negative = isShared ? nil : wallet.totals.first { $0.value.rights < 0 }
    self.violation =
      violation ?? negative.map { CheckedViolation(.deviceRights, "a device may spend \($0.value.rights) \($0.key)") }
  }

  func with(
    _ wallet: WalletState, membership: Membership? = nil, ledger: [Line]? = nil, goods: PlayerGoods? = nil,
    violation: CheckedViolation? = nil, _ options: ExhaustiveOptions
  ) -> CheckedStore {
    CheckedStore(
      wallet, membership: membership ?? self.membership, ledger: ledger ?? self.ledger,
      acknowledged: acknowledged(by: wallet), goods: goods ?? self.goods, install: install, batch: options.batch,
      violation: violation)
  }

  /// Returns the acknowledged operations of the chain after a change of the wallet.
  private func acknowledged(by state: WalletState) -> [WalletOperation] {
    guard state.chain == wallet.chain else { return [] }
    let (before, after) = (wallet.acknowledged.count, state.acknowledged.count)
    if after < before { return acknowledged.dropLast(Int(before - after)) }
    return acknowledged + wallet.operations.prefix(Int(after - before))
  }

  /// Returns the acknowledged operations after a head.
  private func acknowledged(after head: ChainHead) -> AcknowledgedOperations {
    guard head.count <= wallet.acknowledged.count else { return .branched }
    let asked = Int(wallet.acknowledged.count - head.count)
    guard asked <= acknowledged.count else { return .notKept }
    let operations = acknowledged.suffix(asked)
    return operations.reduce(head) { $0.appending($1) } == wallet.acknowledged ? .kept(Array(operations)) : .branched
  }

  /// Returns what counts.
  private func settled(includingChain: Bool) -> [WalletOperation] {
    let others = Set(((includingChain ? [] : acknowledged) + wallet.undecided.flatMap { Array($0) }).map(\.id))
    // What was made for a bank before isn't offered to this one.
    let own = ledger.filter { $0.owner == .present && !others.contains($0.operation.id) }
    return own.filter { $0.verdict.map(\.counts) ?? true }.map(\.operation)
  }

  /// Returns this store as another install has it after a copy.
  func copied(as install: UInt8, _ options: ExhaustiveOptions) -> CheckedStore {
    CheckedStore(
      wallet, membership: membership, ledger: ledger, acknowledged: acknowledged, goods: goods, install: install,
      batch: options.batch)
  }

  /// Returns the store after a checkpoint; nil if that changes nothing, or if the wallet refuses it.
  func performing(_ operations: [WalletOperation], _ options: ExhaustiveOptions) -> CheckedStore? {
    for operation in operations {
      let isKnown = ledger.contains { line in
        line.operation.id == operation.id
          || line.owner != .adopted && line.operation.kind.key != nil && line.operation.kind.key == operation.kind.key
      }
      if isKnown { return nil }
    }
    var wallet = Wallet(self.wallet, faults: options.faults)
    guard let performed = try? wallet.perform(operations), !performed.isEmpty else { return nil }
    for movement in performed.flatMap(\.movements) where movement.spent > 0 { wallet.need(nil, of: movement.currency) }
    return with(wallet.state, ledger: ledger + performed.map { Line(operation: $0) }, options)
  }

  /// Returns the store of a game that needs money for a large spend; nil if it has enough, or needs it already.
  func needing(_ options: ExhaustiveOptions) -> CheckedStore? {
    var wallet = Wallet(self.wallet, faults: options.faults)
    guard wallet.state.needs.isEmpty, wallet.spendable(WalletDeed.gems) < WalletDeed.large else { return nil }
    wallet.need(WalletDeed.large, of: WalletDeed.gems)
    return with(wallet.state, options)
  }

  /// Returns the store after it was opened again; nil if that changes nothing.
  func reopened(_ options: ExhaustiveOptions) -> CheckedStore? {
    guard !wallet.needs.isEmpty || !wallet.held.isEmpty else { return nil }
    var wallet = wallet
    (wallet.needs, wallet.held) = ([:], [:])
    return with(wallet, options)
  }

  /// Returns the store after it made an offer.
  func offering(_ options: ExhaustiveOptions) -> CheckedStore {
    let bank = CheckedBank.id(of: membership.place)
    guard !wallet.isBound || wallet.bank != bank else { return self }
    var wallet = wallet
    (wallet.isBound, wallet.bank) = (true, bank)
    return with(wallet, options)
  }

  /// Returns the store after a reply.
  func receiving(
    _ reply: WalletReply, using random: inout some RandomNumberGenerator, _ options: ExhaustiveOptions
  ) -> CheckedStore {
    var wallet = Wallet(self.wallet, faults: options.faults)
    let change = wallet.receive(
      reply, using: &random, acknowledged: acknowledged(after:), settled: settled(includingChain:))
    var goods = goods
    if case .restored = reply.state { goods.number = 0 }
    let hasNewGoods = reply.goods.map { goods.take($0) } ?? false
    guard wallet.state != self.wallet || !change.decisions.isEmpty || hasNewGoods || goods != self.goods else {
      return self
    }
    return with(
      wallet.state, ledger: ledger(after: change.decisions), goods: goods,
      violation: Self.objection(to: change.declinedVouchers) ?? returnViolation(of: wallet), options)
  }

  /// Returns the ledger with the bank's decisions.
  func ledger(after decisions: [Wallet.Decided]) -> [Line] {
    var ledger = ledger
    for decided in decisions {
      guard let index = ledger.firstIndex(where: { $0.operation.id == decided.operation.id }) else { continue }
      ledger[index].verdict = decided.verdict
    }
    return ledger
  }

  /// Every voucher is of one of the two banks.
  static func objection(to declined: [WalletVoucher]) -> CheckedViolation? {
    declined.first.map {
      CheckedViolation(.exchange, "a bank declines the voucher for \(CheckedWords.of($0.amounts))")
    }
  }

  /// What a purchase needs isn't returned once it is here.
  private func returnViolation(of after: Wallet) -> CheckedViolation? {
    guard after.state.chain == wallet.chain else { return nil }
    for (currency, need) in wallet.needs {
      let returned = after.state.operations.dropFirst(after.state.operations.count - newOperations(of: after.state))
        .reduce(0 as Int64) { $0 + ($1.effect == .giveBack && $1.currency == currency ? $1.amount : 0) }
      let left = after.spendable(currency)
      if left < need, left + returned >= need {
        return CheckedViolation(
          .needs, "a device that needs \(need) \(currency) returns \(returned), and may spend \(left)")
      }
    }
    return nil
  }

  /// How many operations a reply added.
  private func newOperations(of after: WalletState) -> Int { Int(after.head.count - wallet.head.count) }
}

/// An offer with its digest.
final class CheckedOffer: Sendable {
  let offer: WalletOffer
  let digest: StateDigest

  init(_ offer: WalletOffer) {
    self.offer = offer
    var digest = StateDigest(tag: 2)
    digest.add(offer)
    self.digest = digest
  }
}

extension WalletDecision.Verdict {
  var code: UInt64 {
    switch self {
    case .accepted: 1
    case .declined: 2
    case .waiting: 3
    case .idReused: 4
    case .notAllowed: 5
    case .unknown: 6
    }
  }
}
