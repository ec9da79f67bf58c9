// A store that joins another player: its wallet stays with the bank that knows it until that one has settled it
// (`StoreWallets`).
extension DeviceCommit {
  /// Puts the wallet aside, for the bank that knows it, and begins another one. Does nothing for a wallet that no bank
  /// knows: its operations go to the next one.
  package static func leaveBank(
    in storage: inout some DeviceStorage, using random: inout some RandomNumberGenerator
  ) throws {
    try change(in: &storage) { $0.leaveBank(faults: $1, using: &random) }
  }

  /// Adds wallets of another store, which was adopted (``StoreWallets/adopt(_:)``).
  package static func adopt(_ wallets: [FormerWallet], in storage: inout some DeviceStorage) throws {
    try change(in: &storage) { own, _ in own.adopt(wallets) }
  }

  /// Changes the store's wallets.
  private static func change<Result>(
    in storage: inout some DeviceStorage, _ body: (inout StoreWallets, Faults) -> Result
  ) throws -> Result {
    let before = StoreWallets(
      container: try storage.facts().container, own: try storage.wallet(), former: try storage.formerWallets())
    var wallets = before
    let result = body(&wallets, storage.faults)
    if wallets.former != before.former { try storage.setFormerWallets(wallets.former) }
    if let own = wallets.own, own != before.own { try storage.setWallet(own) }
    return result
  }

  // MARK: Settling

  /// Returns the next offer to the bank that is left, and notes for whom it is left; nil if the wallet is settled, or
  /// if the store belongs to no container yet.
  ///
  /// - Parameter chain: The chain of a former wallet.
  package static func offer(
    leavingOn chain: ChainID, in storage: inout some DeviceStorage
  ) throws -> WalletOffer? {
    try change(in: &storage) { wallets, _ in wallets.offer(leavingOn: chain) }
  }

  /// What the reply of a bank that is left comes to.
  package struct LeavingStep: Sendable {
    /// The chain to ask about next; nil if there is nothing to ask now.
    package var next: ChainID?
    /// Whether the bank has settled the wallet.
    package var isSettled = false
    package var notifications: [EngineNotification] = []
  }

  /// Handles the reply of a bank that is left: takes its voucher to where it is paid.
  package static func received(
    _ reply: WalletReply, in storage: inout some DeviceStorage, using random: inout some RandomNumberGenerator
  ) throws -> LeavingStep {
    var step = LeavingStep()
    guard let settling = try Self.change(in: &storage, { wallets, _ in wallets.receive(reply, using: &random) }) else {
      return step
    }
    let change = settling.change
    guard change.isProgress || change.isSettled else { return step }
    if !change.orders.isEmpty { try storage.recordOrders(change.orders, areNews: change.areOrdersNews) }
    if !change.decisions.isEmpty {
      if !storage.faults.losesVerdicts { try storage.recordDecisions(change.decisions) }
      step.notifications.append(.decisions(change.decisions))
    }
    let lost = change.declinedVouchers + [change.elsewhere].compactMap(\.self)
    if !lost.isEmpty { step.notifications.append(.moneyLost(LostMoney(lost))) }
    step.notifications.append(.wallet)
    step.isSettled = change.isSettled
    step.next = settling.next
    return step
  }

  /// Gives up a wallet that can't be settled any more, because its bank refuses this device for good: the bank had
  /// closed its chain, and its money went to the devices of the player before.
  ///
  /// - Returns: What is lost; nil if the wallet is settled.
  package static func giveUp(_ chain: ChainID, in storage: inout some DeviceStorage) throws -> LostMoney? {
    var former = try storage.formerWallets()
    guard let index = former.firstIndex(where: { $0.state.chain == chain }) else { return nil }
    let wallet = former.remove(at: index)
    try storage.setFormerWallets(former)
    return LostMoney(wallet)
  }
}

extension WalletState {
  /// Whether a bank may know the chain, or owes it something. In a wallet of an older version, which didn't note the
  /// bank, a reply tells: a folder never gave one.
  package var isKnownToBank: Bool {
    isBound && (bank != nil || statement > 0 || acknowledged.count > 0 || follows != nil) || !vouchers.isEmpty
  }
}

/// Money that won't arrive from another bank.
package struct LostMoney: Hashable, Sendable {
  /// By currency; only what is more than zero.
  package var amounts: [String: Int64]

  init(_ vouchers: [WalletVoucher]) {
    amounts = vouchers.reduce(into: [:]) { $0.merge($1.amounts) { $0.addingClamped($1) } }.filter { $0.value > 0 }
  }

  package init(_ wallet: FormerWallet) {
    amounts = wallet.currencies.reduce(into: [:]) { $0[$1] = wallet.pending($1) }.filter { $0.value > 0 }
  }
}
