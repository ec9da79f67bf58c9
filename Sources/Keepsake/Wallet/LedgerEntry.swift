public import Foundation
public import KeepsakeReplication
import KeepsakeStore

/// One line of the wallet's ledger: what was done, how much, and why.
public struct LedgerEntry: Sendable, Hashable, Identifiable {
  /// What was done.
  public enum Kind: Sendable, Hashable {
    /// Money that the player got.
    case earned
    /// Money that the player spent.
    case spent
    /// Asked of the bank, once per player, under a key.
    case claimed(key: String)
  }

  /// The operation's id: repeating one under it changes nothing.
  public var id: OperationID
  /// What was done.
  public var kind: Kind
  /// Greater than zero, whatever the kind.
  public var amount: Int
  /// What the amount is of.
  public var currency: Currency
  /// As the game gave it.
  public var reason: String
  /// What came with it.
  public var goods: [Goods]
  /// When it was made, by this device's clock.
  public var date: Date
  /// Whether the cloud's bank has it. Without a cloud nothing ever is; it counts here all the same.
  public var isSettled: Bool

  /// Nil for what the device and its bank move between them: the player's money is the same before and after.
  init?(_ entry: WalletEntry) {
    let operation = entry.operation
    switch operation.kind {
    case .earn: kind = .earned
    case .spend: kind = .spent
    case .claim(let key): kind = .claimed(key: key)
    case .giveBack: return nil
    }
    id = operation.id
    amount = Int(clamping: operation.amount)
    currency = Currency(operation.currency)
    reason = operation.reason
    goods = operation.goods.map { Goods($0) }
    date = Date(timeIntervalSince1970: Double(operation.madeAtMilliseconds) / 1000)
    isSettled = !entry.isWaiting
  }
}
