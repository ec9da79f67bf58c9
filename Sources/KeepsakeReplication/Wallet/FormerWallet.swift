/// The wallet of a store that has joined another player, at the bank of the player before: kept until that bank has
/// settled it and has issued a voucher for what it held.
package struct FormerWallet: Hashable, Sendable, Codable {
  /// The container of the bank that knows its chain.
  package var bank: ContainerID
  /// The container whose bank gets the money, noted before the first offer that names it; nil for the one that the
  /// store belongs to by then.
  package var receiver: ContainerID?
  package var state: WalletState

  package init(bank: ContainerID, receiver: ContainerID? = nil, state: WalletState) {
    self.bank = bank
    self.receiver = receiver
    self.state = state
  }

  /// Returns what is on its way, as far as this store knows it: what may be spent there, claims that aren't decided,
  /// and what other banks owe that one. If the bank hasn't said yet what the chain may spend, all that the player had.
  package func pending(_ currency: String) -> Int64 {
    let wallet = Wallet(state)
    let own = state.statement > 0 || state.follows == nil ? wallet.spendable(currency) : wallet.total(currency)
    return max(0, own).addingClamped(wallet.pending(currency)).addingClamped(wallet.vouched(currency))
  }

  /// The currencies in which something may be on its way.
  package var currencies: [String] { Wallet(state).currencies }

  /// Whether all that the bank doesn't know yet fits into one offer.
  private var fitsIntoOffer: Bool {
    state.operations.count <= Wallet.maximumBatch && state.late.count <= Wallet.maximumBatch
      && state.waiting.count <= Wallet.maximumBatch
  }

  /// Returns the next offer to the bank that is left. The last one, which has everything that the bank doesn't know
  /// yet, asks it to close the chain, and brings the vouchers of banks before it.
  package func offer(leavingFor receiver: ContainerID) -> WalletOffer {
    var offer = Wallet(state).offer()
    offer.needs = [:]
    if fitsIntoOffer { offer.leaving = receiver } else { offer.vouchers = [] }
    return offer
  }

  /// Adds what a copy of the wallet, which was used after it was made, has beside this one: the bank decides what of it
  /// counts, as of anything that comes late.
  mutating func add(_ copy: WalletState) {
    guard copy != state else { return }
    let known = Set(state.undecided.joined().map(\.id))
    let fresh = copy.undecided.joined().filter { !known.contains($0.id) && $0.effect != .giveBack }
    if !fresh.isEmpty { state.late.append(contentsOf: fresh) }
    let chains = Set(state.vouchers.map(\.chain))
    state.vouchers += copy.vouchers.filter { !chains.contains($0.chain) }
  }

  /// What a reply has changed.
  package struct Change: Sendable {
    package var decisions: [Wallet.Decided] = []
    /// The bank's own operations that are new here.
    package var orders: [BankOrder] = []
    /// Whether the game has to be told of them.
    package var areOrdersNews = false
    /// What the bank owes the receiver, if it has closed the chain.
    package var voucher: WalletVoucher?
    /// What the bank gave another receiver, which the store named that this one is a copy of: it won't arrive here.
    package var elsewhere: WalletVoucher?
    /// Vouchers of banks before it that this bank will never pay.
    package var declinedVouchers: [WalletVoucher] = []
    /// Nothing is left to settle here.
    package var isSettled = false
    /// Whether anything is different: otherwise the same offer would get the same reply.
    package var isProgress = false
  }

  /// Handles the reply of the bank that is left.
  ///
  /// A voucher is taken with the chain. If the bank issued it to a copy of this store, which hadn't these operations,
  /// what is left of them is offered once more, on a chain that follows.
  package mutating func receive(
    _ reply: WalletReply, using random: inout some RandomNumberGenerator
  ) -> Change {
    var wallet = Wallet(state)
    let (left, before) = (state.chain, state)
    let received = wallet.receive(reply, using: &random)
    var change = Change(
      decisions: received.decisions, orders: received.orders, areOrdersNews: received.areOrdersNews,
      declinedVouchers: received.declinedVouchers)
    state = wallet.state
    change.isProgress = state != before
    guard let voucher = reply.voucher, reply.chain == left, voucher.chain == left, state.chain != left,
      voucher.bank == bank, Wallet.arePossible(voucher.amounts),
      voucher.amounts.count <= Wallet.maximumCurrencies, voucher.claims.count <= WalletVoucher.maximumClaims
    else { return change }
    if voucher.receiver == receiver {
      change.voucher = voucher
    } else if !voucher.isEmpty {
      change.elsewhere = voucher
    }
    change.isSettled = !wallet.hasUnreportedOperations && state.waiting.isEmpty && state.vouchers.isEmpty
    return change
  }
}

extension Wallet {
  /// Returns what other banks owe the player, which this one hasn't paid yet.
  package func vouched(_ currency: String) -> Int64 {
    state.vouchers.reduce(0) { $0.addingClamped(max(0, $1.amounts[currency] ?? 0)) }
  }
}
