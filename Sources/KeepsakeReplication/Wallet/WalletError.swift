/// Why a wallet refuses an operation.
package enum WalletError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The store may not spend that much by itself; the balance is what the player has in total.
  case insufficientRights(currency: String, spendable: Int64, balance: Int64)
  /// Amounts are positive and at most `Wallet.maximumAmount`.
  case invalidAmount(Int64)
  /// A name or reason is empty or too long, or there are too many goods: what is wrong.
  case invalidText(String)
  /// The operation would raise a total of this currency above `Wallet.maximumTotal`.
  case overflow(currency: String)
  /// Another operation was performed under this id.
  case idReused(OperationID)
  /// Only the bank's own operations make more of this currency (``BankRules/authoritative``).
  case serverAuthoritative(currency: String)
  /// More operations at once than count together.
  case tooMany(Int)

  package var description: String {
    switch self {
    case .insufficientRights(let currency, let spendable, let balance):
      "only \(spendable) \(currency) can be spent here now, of \(balance) in all"
        + (balance > spendable ? ": the rest is reserved for the player's other devices" : "")
    case .invalidAmount(let amount): "\(amount) is not an amount between 1 and \(Wallet.maximumAmount)"
    case .invalidText(let objection): objection
    case .overflow(let currency): "the totals of \(currency) would exceed their maximum"
    case .idReused(let id): "another operation was performed under the identifier \(id)"
    case .serverAuthoritative(let currency):
      "no device can earn \(currency): the game's server orders a grant, or hands in a receipt"
    case .tooMany(let count):
      "at most \(Wallet.maximumGroup) wallet operations can be performed together, not \(count)"
    }
  }
}
