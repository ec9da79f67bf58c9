import KeepsakeReplication

extension [BankOrder] {
  /// What the orders add to the player's money and take from it, by currency.
  var sums: [String: Int64] {
    reduce(into: [:]) { $0[$1.currency, default: 0] += $1.isCredit ? $1.amount : -$1.amount }
  }
}
