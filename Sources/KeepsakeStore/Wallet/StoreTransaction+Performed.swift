import Foundation
import GRDB
package import KeepsakeReplication

// What was ever performed here, however long ago: the ledger keeps the newest operations only, but no operation may
// count twice, and no payment may be claimed twice.
extension StoreTransaction {
  package func performedOperation(_ id: OperationID) throws -> UInt64? {
    try performed(PerformedRow.key(of: id))?.fingerprint
  }

  package func hasClaimed(_ key: String) throws -> Bool { try performed(PerformedRow.key(ofClaim: key)) != nil }

  private func performed(_ key: Data) throws -> PerformedRow? {
    try Row.fetchOne(
      statement("SELECT \(PerformedRow.columns) FROM performed WHERE key = ?"), arguments: [key]
    ).map(PerformedRow.init)
  }

  /// Adds a row. If there is one with this key, it stays: the first operation of an id is the one that was performed.
  func insert(_ row: PerformedRow) throws {
    try run("INSERT OR IGNORE INTO performed (\(PerformedRow.columns)) VALUES (?, ?, ?)", row.arguments)
  }

  func markPerformed(_ operation: WalletOperation) throws {
    try insert(PerformedRow(operation))
    if let key = operation.kind.key { try insert(PerformedRow(claim: key)) }
  }

  /// Adds what the ledger contains, after a part of the table may have been lost, or in a store whose format
  /// had no such table. Costs reading the ledger.
  ///
  /// - Parameter claims: Keys of claims that were made, too.
  func fillPerformed(claims: [String] = []) throws {
    for key in claims { try insert(PerformedRow(claim: key)) }
    guard let book = try walletBody().map(book) else { return }
    var last = WalletPage.names.first
    // One by one: rows are added between.
    while let name = try String.fetchOne(
      statement("SELECT name FROM fact WHERE name > ? AND name < ? ORDER BY name LIMIT 1"),
      arguments: [last, WalletPage.names.last])
    {
      for operation in try page(name, of: book)?.operations ?? [] { try markPerformed(operation) }
      last = name
    }
    var order = try self.order()
    while let row = order {
      try markPerformed(row.order.operation)
      order = try self.order(before: row.number)
    }
  }
}
