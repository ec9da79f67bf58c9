import GRDB
import KeepsakeReplication

/// The claims of a voucher that the wallet shows to its bank, in a row of their own: there may be 20,000 of them, and
/// each operation writes the rest of the wallet.
struct VoucherClaims: Codable {
  /// The names of all such rows are between these two.
  private static let (first, last) = ("voucher claims ", "voucher claims:")

  var claims: [WalletVoucher.Claim]

  fileprivate static func name(of chain: ChainID) -> String { "\(first)\(chain)" }

  fileprivate static func names(_ transaction: StoreTransaction) throws -> [String] {
    try String.fetchAll(
      transaction.statement("SELECT name FROM fact WHERE name > ? AND name < ?"), arguments: [first, last])
  }
}

extension StoreTransaction {
  /// Returns the vouchers with their claims. One whose claims are lost has none: its bank declines it, and the loss is
  /// reported then.
  func completed(_ vouchers: [WalletVoucher]) throws -> [WalletVoucher] {
    try vouchers.map { voucher in
      var voucher = voucher
      do {
        let kept: VoucherClaims? = try fact(VoucherClaims.name(of: voucher.chain))
        if let kept { voucher.claims = kept.claims }
      } catch let error as StoreError where error.code == .damaged {
        voucher.claims = []
      }
      return voucher
    }
  }

  /// Keeps the claims of these vouchers, and of no others. Those that are kept already aren't written again: a bank
  /// issues one voucher for a chain.
  mutating func keepClaims(of vouchers: [WalletVoucher]) throws {
    var fresh: [String: VoucherClaims] = [:]
    for voucher in vouchers where !voucher.claims.isEmpty {
      fresh[VoucherClaims.name(of: voucher.chain)] = VoucherClaims(claims: voucher.claims)
    }
    for name in try VoucherClaims.names(self) where fresh.removeValue(forKey: name) == nil {
      try run("DELETE FROM fact WHERE name = ?", [name])
    }
    for (name, claims) in fresh.sorted(by: { $0.key < $1.key }) { try setFact(name, claims) }
  }
}
