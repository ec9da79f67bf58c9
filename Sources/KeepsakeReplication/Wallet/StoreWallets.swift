/// The wallets of a store: its own, and those that it left with the banks of players that it belonged to before.
///
/// Has what joining a player, adopting a store and settling with a bank change in them. `DeviceCommit` applies it to
/// a store.
package struct StoreWallets: Hashable, Sendable {
  /// The container that the store belongs to; nil for none yet.
  package var container: ContainerID?
  /// Nil in a store that was never opened.
  package var own: WalletState?
  /// The oldest first.
  package var former: [FormerWallet]

  package init(container: ContainerID?, own: WalletState?, former: [FormerWallet] = []) {
    self.container = container
    self.own = own
    self.former = former
  }

  // MARK: Leaving

  /// Puts the store's own wallet aside, for the bank that knows it, and begins another one. Does nothing for a wallet
  /// that no bank knows: its operations go to the next one.
  ///
  /// - Parameter faults: Bugs planted by a test.
  package mutating func leaveBank(faults: Faults, using random: inout some RandomNumberGenerator) {
    guard let container, var state = own else { return }
    let bank = state.bank ?? container
    guard state.isKnownToBank || former.contains(where: { $0.receiver == bank }) else {
      // Offered by an older version to a folder, which has no bank.
      guard state.isBound else { return }
      (state.isBound, state.bank, state.held) = (false, nil, [:])
      own = state
      return
    }
    if faults.offersToSecondBanks {
      state.bank = nil
      own = state
      return
    }
    // A purchase that was being made is one at the next bank. What was kept for it here may be what spends wait for.
    (state.needs, state.held) = ([:], [:])
    for index in former.indices where former[index].receiver == nil { former[index].receiver = bank }
    former.append(FormerWallet(bank: bank, state: state))
    own = WalletState(chain: ChainID(using: &random))
  }

  /// Adds wallets of another store, which is adopted, to those that have to be settled: their money goes to this
  /// store's player.
  ///
  /// Of one that is here already, because the adoption is repeated, only what the other store did since is added. One
  /// that was settled already, and comes again with an older copy of the other store, brings nothing twice: its bank
  /// issues the same voucher, and this store's bank pays it once.
  package mutating func adopt(_ wallets: [FormerWallet]) {
    for wallet in wallets {
      if let index = former.firstIndex(where: { $0.state.chain == wallet.state.chain }) {
        former[index].add(wallet.state)
      } else {
        former.append(wallet)
      }
    }
  }

  // MARK: Settling

  /// Returns the next offer to a bank that is left, and notes for whom it is left; nil if the wallet is settled, or if
  /// the store belongs to no container yet.
  ///
  /// - Parameter chain: The chain of a former wallet.
  package mutating func offer(leavingOn chain: ChainID) -> WalletOffer? {
    guard let index = former.firstIndex(where: { $0.state.chain == chain }) else { return nil }
    guard let receiver = former[index].receiver ?? container else { return nil }
    former[index].receiver = receiver
    return former[index].offer(leavingFor: receiver)
  }

  /// What the reply of a bank that is left comes to.
  package struct Settling: Sendable {
    package var change: FormerWallet.Change
    /// The chain to ask about next; nil if the bank has settled the wallet.
    package var next: ChainID?
  }

  /// Handles the reply of a bank that is left: takes its voucher to where it is paid.
  ///
  /// - Returns: Nil, with nothing changed, if it is about none of the former wallets.
  package mutating func receive(
    _ reply: WalletReply, using random: inout some RandomNumberGenerator
  ) -> Settling? {
    guard let index = former.firstIndex(where: { $0.state.chain == reply.chain }) else { return nil }
    let change = former[index].receive(reply, using: &random)
    if let voucher = change.voucher, !voucher.isEmpty { deliver(voucher, after: index + 1, using: &random) }
    guard change.isSettled else { return Settling(change: change, next: former[index].state.chain) }
    former.remove(at: index)
    return Settling(change: change, next: nil)
  }

  /// Gives a voucher to the wallet that shows it to its bank: the next former one there, or the store's own. If that
  /// one is settled already, another one begins.
  private mutating func deliver(
    _ voucher: WalletVoucher, after index: Int, using random: inout some RandomNumberGenerator
  ) {
    if let next = former[index...].firstIndex(where: { $0.bank == voucher.receiver }) {
      return former[next].state.vouchers.append(voucher)
    }
    guard container != voucher.receiver else {
      var state = own ?? WalletState(chain: ChainID(using: &random))
      state.vouchers.append(voucher)
      own = state
      return
    }
    var state = WalletState(chain: ChainID(using: &random))
    (state.isBound, state.bank, state.vouchers) = (true, voucher.receiver, [voucher])
    former.insert(FormerWallet(bank: voucher.receiver, state: state), at: index)
  }
}
