#if Cloud
import Foundation
import GRDB
import KeepsakeReplication

/// What the game's own servers ask of a player's bank.
extension SQLiteCloudStorage {
  func place(of player: PlayerID) async throws -> PlayerPlace? {
    try await pool.read { db in
      let found = try Row.fetchOne(
        db.cachedStatement(sql: "SELECT container, app FROM device WHERE player = ? LIMIT 1"),
        arguments: [player.bytes])
      guard let found else { return nil }
      guard let container = try ContainerID(bytes: found.decode(atIndex: 0)) else {
        throw ServerError(.damaged, "A device's row can't be read.")
      }
      return PlayerPlace(container: container, app: AppID(bytes: try found.decode(atIndex: 1)))
    }
  }

  func account(of container: ContainerID, goodsAfter: UInt64, ordersAfter: UInt64?) async throws -> BankAccount {
    try await read(container) { storage in
      let bank = Bank(try storage.bank())
      let newest = bank.state.orderNumber ?? 0
      let (most, least) = (UInt64(NumberedOrder.maximumListed), ordersAfter ?? 0)
      // By default the newest ones.
      let after = ordersAfter == nil && newest > most ? newest - most : least
      let goods = try storage.goods(changedAfter: goodsAfter, limit: WalletGoods.maximumChanges)
      return BankAccount(
        balances: bank.shownBalances(), owed: bank.state.debts ?? [:],
        goods: Dictionary(goods.filter { $0.count > 0 }.map { ($0.name, $0.count) }) { $1 },
        goodsNumber: goods.last?.number ?? goodsAfter,
        orders: try storage.orders(after: after, limit: NumberedOrder.maximumListed), orderNumber: newest)
    }
  }
}

extension SQLiteContainer {
  mutating func takeReceipt(_ receipt: ContentHash, of app: AppID, for operation: OperationID) throws -> Bool {
    try run(
      "INSERT OR IGNORE INTO receipt (app, receipt, container, operation) VALUES (?, ?, ?, ?)",
      [app.bytes, receipt.bytes, id, operation.bytes])
    return try row(
      "SELECT 1 FROM receipt WHERE app = ? AND receipt = ? AND container = ?", [app.bytes, receipt.bytes, id]) != nil
  }
}
#endif
