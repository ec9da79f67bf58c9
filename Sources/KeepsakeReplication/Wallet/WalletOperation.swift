/// One operation of a wallet chain.
package struct WalletOperation: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    /// Adds to what this chain may spend.
    case earn
    /// Takes from it.
    case spend
    /// Gives rights back to the bank.
    case giveBack
    /// Asks the bank to pay something once per player, under a key.
    case claim(key: String)
  }
  package var id: OperationID
  package var kind: Kind
  package var currency: String
  /// Positive.
  package var amount: Int64
  package var reason: String
  package var goods: [String]
  /// By the device's clock, milliseconds since 1970: for people who read the ledger. Nothing is decided by it.
  package var madeAtMilliseconds: Int64

  package init(
    id: OperationID, kind: Kind, currency: String, amount: Int64, reason: String, goods: [String] = [],
    madeAtMilliseconds: Int64 = 0
  ) {
    self.id = id
    self.kind = kind
    self.currency = currency
    self.amount = amount
    self.reason = reason
    self.goods = goods
    self.madeAtMilliseconds = madeAtMilliseconds
  }
}
