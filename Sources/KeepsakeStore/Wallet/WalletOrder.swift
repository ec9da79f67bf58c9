import KeepsakeReplication

/// One of the bank's own operations in the ledger, in a row of its own: the pages have what this device made, which a
/// bank may be offered again.
struct WalletOrder: Codable {
  /// Numbers the orders in this store, in the sequence in which they came, from 1.
  var number: Int64
  /// The number that this device's next operation had then: in the ledger, the order comes before that one.
  var place: Int64
  var order: BankOrder

  static let names = FactNames("wallet order", numbers: 1...WalletBook.maximumNumber)

  /// Whether a store can have written this row: it may have been written by somebody who knows the format.
  var isSound: Bool {
    guard Self.names.numbers.contains(number), (0...WalletBook.maximumNumber).contains(place) else { return false }
    do throws(BankOrderError) {
      try order.check()
      return true
    } catch {
      return false
    }
  }

  /// The ledger's entry of the order.
  var entry: WalletEntry {
    WalletEntry(number: place, operation: order.operation, status: .settled, order: order)
  }
}

extension BankOrder {
  /// The operation of a device that would move the same money.
  var operation: WalletOperation {
    WalletOperation(
      id: id, kind: isCredit ? .earn : .spend, currency: currency, amount: amount, reason: reason, goods: goods,
      madeAtMilliseconds: madeAtMilliseconds)
  }

  /// Whether the game has to know: goods come, or have to be taken back. The rest is money that the player had.
  var isNoticed: Bool {
    switch kind {
    case .grant, .charge, .refund: true
    case .voucher, .shortfall: false
    }
  }
}
