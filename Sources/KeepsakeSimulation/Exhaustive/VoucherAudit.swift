import KeepsakeReplication

/// What a bank has to pay for vouchers: each once, less the claims that it had paid, too. A claim that another bank
/// has paid once is in each of its vouchers, and is taken back once.
struct VoucherAudit: Hashable, Sendable {
  private struct Report: Hashable, Sendable {
    let bank: ContainerID
    let key: String
  }

  /// How much is still to be taken back of what a bank has paid for a claim.
  private var excesses: [Report: Int64] = [:]
  /// The chains whose vouchers were paid.
  private(set) var taken: Set<ChainID> = []

  /// Returns what is due for vouchers that are paid now, by currency; of one that was paid before, nothing.
  ///
  /// - Parameters:
  ///   - vouchers: Those that the store showed, in its order.
  ///   - chains: The chains of those that the bank took.
  ///   - claimed: The claims that the bank had paid before it took them, or knew as paid.
  mutating func due(
    for vouchers: [WalletVoucher], taken chains: Set<ChainID>, claimed: Set<String>
  ) -> [String: Int64] {
    var (due, claimed) = ([String: Int64](), claimed)
    for voucher in vouchers where chains.contains(voucher.chain) && taken.insert(voucher.chain).inserted {
      for (currency, amount) in voucher.amounts {
        var left = amount
        for claim in voucher.claims where claim.currency == currency {
          let report = Report(bank: voucher.bank, key: claim.key)
          let excess = excesses[report] ?? (claimed.contains(claim.key) ? claim.amount : 0)
          excesses[report] = excess - min(excess, left)
          left -= min(excess, left)
        }
        due[currency, default: 0] += left
      }
      for claim in voucher.claims {
        let report = Report(bank: voucher.bank, key: claim.key)
        if excesses[report] == nil { excesses[report] = claimed.contains(claim.key) ? claim.amount : 0 }
      }
      claimed.formUnion(voucher.claims.map(\.key))
    }
    return due.filter { $0.value != 0 }
  }
}
