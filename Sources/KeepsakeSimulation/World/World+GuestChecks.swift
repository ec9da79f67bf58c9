import KeepsakeReplication

// What must hold between the guest's bank and that of the devices.
extension World {
  /// A voucher is paid once, less the claims that were paid here, too.
  func checkVouchers(_ offer: WalletOffer?, _ reply: WalletReply?, _ before: MemoryContainer) {
    guard hasGuest, let offer, let reply, !offer.vouchers.isEmpty else { return }
    // Operations are decided before vouchers are taken.
    let claims = (offer.operations + offer.late).filter { operation in
      before.decision(on: operation.id) == nil && cloud.decision(on: operation.id)?.verdict == .accepted
    }
    let claimed = before.paidClaims.union(claims.compactMap(\.kind.key))
    let known = guest.audit.taken.count
    let due = guest.audit.due(for: offer.vouchers, taken: Set(reply.takenVouchers), claimed: claimed)
    report.statistics.vouchers += guest.audit.taken.count - known
    var paid: [String: Int64] = [:]
    for order in cloud.orders.dropFirst(before.orders.count) where order.kind == .voucher {
      paid[order.currency, default: 0] += order.amount
    }
    if paid != due { violation("\(words(paid)) is paid for vouchers, and \(words(due)) is due") }
    if let chain = reply.declinedVouchers.first { violation("the voucher of \(short(chain)) is declined") }
  }

  private func words(_ amounts: [String: Int64]) -> String {
    amounts.isEmpty ? "nothing" : amounts.sorted { $0.key < $1.key }.map { "\($1) \($0)" }.joined(separator: " and ")
  }

  /// The guest plays no more: the first device adopts what is left.
  func bringGuestHome() {
    guard hasGuest, !guest.isGone else { return }
    finishGuest(into: 0)
  }

  func guestFingerprint() -> [UInt64] {
    guard hasGuest else { return [] }
    return [guest.cloud.position().seq, UInt64(guest.cloud.decisions.count)]
      + devices.flatMap { device in
        let wallets = device.storage.formerWallets().map(\.state) + [device.storage.wallet()].compactMap(\.self)
        return [UInt64(wallets.count), UInt64(wallets.reduce(0) { $0 + $1.vouchers.count })]
      }
  }

  /// At rest, each operation is decided by one of the banks, every wallet is settled, every voucher is paid, and
  /// nothing is left with the guest's bank.
  func checkGuest() {
    guard hasGuest else { return }
    checkBank(of: guest.cloud)
    let twice = cloud.decisions.keys.filter { guest.cloud.decisions[$0] != nil }.sorted()
    if let first = twice.first { violation("both banks decided the operation \(first)") }
    for index in devices.indices {
      let storage = devices[index].storage
      if let voucher = storage.wallet()?.vouchers.first {
        violation("device \(index) still has a voucher for \(words(voucher.amounts))")
      }
      // Its spends may wait for the money of a chain that nobody has.
      if let former = storage.formerWallets().first, !guest.hasLost {
        violation("device \(index) never settles the guest's chain \(short(former.state.chain))")
      }
    }
    let issued = guest.cloud.vouchers.values.sorted { $0.chain < $1.chain }
    for voucher in issued where guest.audit.taken.contains(voucher.chain) {
      for claim in voucher.claims where !cloud.paidClaims.contains(claim.key) {
        violation("\(claim.key), which the guest's bank has paid, can be claimed again")
      }
    }
    guard !guest.hasLost else { return }
    for voucher in issued where !voucher.isEmpty && !guest.audit.taken.contains(voucher.chain) {
      violation("the voucher for \(words(voucher.amounts)) of \(short(voucher.chain)) was never paid")
    }
    let bank = Bank(guest.cloud.bank())
    for currency in bank.currencies where bank.balance(currency) != 0 {
      violation("\(bank.balance(currency)) \(currency) stay at the bank that the guest has left")
    }
  }
}
