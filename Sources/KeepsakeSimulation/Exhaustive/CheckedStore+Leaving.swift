import KeepsakeReplication

// Wallets that a store left at the bank of a player before. What changes them is the same `StoreWallets` as in games.
extension CheckedStore {
  private var storeWallets: StoreWallets {
    StoreWallets(container: CheckedBank.id(of: membership.place), own: wallet, former: membership.former)
  }

  /// All wallets of the store.
  var wallets: [WalletState] { [wallet] + membership.former.map(\.state) }

  var chains: Set<ChainID> { Set(wallets.map(\.chain)) }

  /// Returns the store with its wallets after a change.
  private func with(
    _ wallets: StoreWallets, membership: Membership? = nil, ledger: [Line]? = nil, goods: PlayerGoods? = nil,
    violation: CheckedViolation? = nil, _ options: ExhaustiveOptions
  ) -> CheckedStore {
    var membership = membership ?? self.membership
    membership.former = wallets.former
    return with(
      wallets.own ?? wallet, membership: membership, ledger: ledger, goods: goods, violation: violation, options)
  }

  /// Returns the ledger after the wallet was put aside, if it was.
  private func ledger(leaving wallets: StoreWallets) -> [Line] {
    guard wallets.own?.chain != wallet.chain else { return ledger }
    return ledger.map { line in
      var line = line
      if line.owner == .present { line.owner = .former }
      return line
    }
  }

  // MARK: Moving

  /// Returns the store after it joined the player of the other bank (`DeviceCommit.moved`); nil if no bank knows its
  /// wallet, so that the operations would move: an older copy of the store could offer them to the bank before.
  func moved(using random: inout some RandomNumberGenerator, _ options: ExhaustiveOptions) -> CheckedStore? {
    var wallets = storeWallets
    wallets.leaveBank(faults: options.faults, using: &random)
    guard wallets.own?.chain != wallet.chain || options.faults.offersToSecondBanks else { return nil }
    var membership = membership
    membership.place = 1 - membership.place
    membership.changes += 1
    return with(
      wallets, membership: membership, ledger: ledger(leaving: wallets), goods: PlayerGoods(), options)
  }

  /// Returns this store and the one of a guest after it adopted the guest's wallets (`Adopter`); nil if no bank knows
  /// one of these, so that operations would move instead.
  ///
  /// - Parameter random: That of the guest's device.
  func adopting(
    _ guest: CheckedStore, using random: inout some RandomNumberGenerator, _ options: ExhaustiveOptions
  ) -> (own: CheckedStore, guest: CheckedStore)? {
    var (own, theirs) = (storeWallets, guest.storeWallets)
    theirs.leaveBank(faults: options.faults, using: &random)
    guard !theirs.former.isEmpty else { return nil }
    own.adopt(theirs.former)
    let undecided = Set(theirs.former.flatMap { $0.state.undecided.joined().map(\.id) })
    theirs.former = []
    // Whoever has the wallet learns what becomes of its operations.
    var (ledger, left) = (ledger, guest.ledger(leaving: theirs))
    for index in left.indices where undecided.contains(left[index].operation.id) {
      let operation = left[index].operation
      left[index].owner = .handed
      guard !ledger.contains(where: { $0.operation.id == operation.id }) else { continue }
      ledger.append(Line(operation: operation, verdict: guest.ledger[index].verdict, owner: .adopted))
    }
    var (mine, membership) = (self.membership, guest.membership)
    mine.changes += 1
    membership.changes += 1
    return (
      with(own, membership: mine, ledger: ledger, options),
      guest.with(theirs, membership: membership, ledger: left, options)
    )
  }

  // MARK: Settling

  /// A request to a bank that was left.
  struct LeavingRequest {
    /// The store, which has noted for whom the bank is left.
    let store: CheckedStore
    let offer: CheckedOffer
    let place: Int
  }

  /// Returns the next request about a former wallet.
  func request(about former: Int, _ options: ExhaustiveOptions) -> LeavingRequest? {
    var wallets = storeWallets
    let wallet = wallets.former[former]
    guard let offer = wallets.offer(leavingOn: wallet.state.chain) else { return nil }
    return LeavingRequest(
      store: wallets.former == membership.former ? self : with(wallets, options), offer: CheckedOffer(offer),
      place: wallet.bank == CheckedBank.id(of: 0) ? 0 : 1)
  }

  /// Returns the store after the reply of a bank that was left (`DeviceCommit.received`).
  func leaving(
    with reply: WalletReply, using random: inout some RandomNumberGenerator, _ options: ExhaustiveOptions
  ) -> CheckedStore {
    var wallets = storeWallets
    guard let settling = wallets.receive(reply, using: &random) else { return self }
    let change = settling.change
    guard change.isProgress || change.isSettled else { return self }
    return with(
      wallets, ledger: ledger(after: change.decisions), violation: Self.objection(to: change.declinedVouchers), options)
  }
}
