import GRDB
package import KeepsakeReplication

// The bank's own operations are recorded in the ledger and as notices, with the change of the wallet that the same
// reply makes, so that no crash loses one.
extension StoreTransaction {
  /// Records orders that a reply of the bank has brought. An order that was recorded before, however long ago, changes
  /// nothing. The newest 10,000 are kept.
  ///
  /// Costs writing a row or two for each order, and reading and writing the pages of refunded purchases, or the newest
  /// 10,000 operations if a purchase isn't of this device.
  ///
  /// - Parameter areNews: Whether there are notices of them: not of what the bank did before this store knew it. The
  ///   game would give once more what the player's saves and ``goods()`` have.
  package mutating func recordOrders(_ orders: [BankOrder], areNews: Bool) throws {
    guard !orders.isEmpty else { return }
    try markRefunded(orders)
    guard let place = try walletBody().map(book)?.next else { return }
    let fresh = try orders.filter { try performedOperation($0.id) == nil }
    guard !fresh.isEmpty else { return }
    var number = try newestOrder() ?? 0
    for order in fresh {
      number += 1
      try setFact(
        WalletOrder.names.name(of: number), WalletOrder(number: number, place: place, order: order))
      try markPerformed(order.operation)
    }
    try run(
      "DELETE FROM fact WHERE name > ? AND name <= ?",
      [WalletOrder.names.first, WalletOrder.names.name(of: max(0, number - Self.maximumSettledOperations))])
    guard areNews else { return }
    try appendNotices(
      fresh.filter(\.isNoticed)
        .map { WalletNotice(number: 0, operation: $0.operation, verdict: .accepted, order: $0) })
  }

  /// Records in the ledger that purchases were refunded, of those that this device made.
  private mutating func markRefunded(_ orders: [BankOrder]) throws {
    let purchases = Set(orders.filter { $0.kind == .refund }.compactMap(\.purchase))
    guard !purchases.isEmpty else { return }
    var pages: [Int64: WalletPage] = [:]
    for (_, number) in try numbers(of: purchases) {
      let first = WalletPage.first(of: number)
      guard var page = try pages[first] ?? soundPage(WalletPage.name(of: number)), number < page.end else { continue }
      page.record(.refunded, of: page.operations[Int(number - first)], at: number)
      pages[first] = page
    }
    for page in pages.values { try setFact(WalletPage.name(of: page.first), page) }
  }

  /// Returns the newest order before this number; nil if there is none. A row that can't be read is skipped: it was
  /// lost, or somebody who knows the format has written it.
  func order(before number: Int64? = nil) throws -> WalletOrder? {
    var end = number.map(WalletOrder.names.name) ?? WalletOrder.names.last
    while let name = try orderName(before: end) {
      do {
        if let row: WalletOrder = try fact(name), row.isSound, WalletOrder.names.name(of: row.number) == name {
          return row
        }
      } catch let error as StoreError where error.code == .damaged {}
      end = name
    }
    return nil
  }

  private func orderName(before name: String) throws -> String? {
    try String.fetchOne(
      statement("SELECT name FROM fact WHERE name > ? AND name < ? ORDER BY name DESC LIMIT 1"),
      arguments: [WalletOrder.names.first, name])
  }

  /// Returns the greatest number of a row that is kept; nil if there is none.
  private func newestOrder() throws -> Int64? {
    try orderName(before: WalletOrder.names.last).flatMap(WalletOrder.names.number)
  }
}
