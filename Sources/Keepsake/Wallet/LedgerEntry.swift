public import Foundation
public import KeepsakeReplication
import KeepsakeStore

/// One entry of the wallet's ledger: what was done, how much, and why.
public struct LedgerEntry: Sendable, Hashable, Identifiable {
  /// The kind of operation.
  public enum Kind: Sendable, Hashable {
    /// Money was added.
    case earned
    /// Money was spent.
    case spent
    /// A payment was requested from the bank, which pays it once for each player and key.
    case claimed(key: String)
  }

  /// The operation's identifier. Repeating an operation with the same identifier changes nothing.
  public var id: OperationID
  /// The kind of operation.
  public var kind: Kind
  /// The amount; greater than zero for every kind.
  public var amount: Int
  /// The currency.
  public var currency: Currency
  /// The reason that the game gave.
  public var reason: String
  /// The goods that the operation granted.
  public var goods: [Goods]
  /// When the operation was made, by this device's clock.
  public var date: Date
  /// Whether the cloud's bank has it. Without a cloud no operation is settled; it counts on this device nevertheless.
  public var isSettled: Bool

  /// Creates an entry; nil for transfers between the device and its bank, which don't change the player's money.
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
