public import Foundation
public import KeepsakeReplication
import KeepsakeStore

/// One entry of the wallet's ledger: what was done, how much, why, and whether it counts.
public struct LedgerEntry: Sendable, Hashable, Identifiable {
  /// The kind of operation.
  public enum Kind: Sendable, Hashable {
    /// Money was added.
    case earned
    /// Money was spent.
    case spent
    /// A payment was requested from the bank, which pays it once for each player and key.
    case claimed(key: String)
    /// The amount was exchanged for this amount of another currency.
    case converted(to: Currency, received: Int)
  }

  /// What became of the operation.
  public enum Status: Sendable, Hashable {
    /// No bank has decided about it, or the bank will charge it as soon as other devices have returned enough. It
    /// counts on this device nevertheless, except for a claim. Without a cloud every operation stays like this.
    case waiting
    /// The bank has it, and it counts.
    case settled
    /// The bank declined it, so it doesn't count.
    case declined
    /// What was spent was returned to the player. No cloud of this release does that.
    case refunded
  }

  /// The operation's identifier. Repeating an operation with the same identifier changes nothing.
  public var id: OperationID
  /// The kind of operation.
  public var kind: Kind
  /// The amount; greater than zero for every kind.
  public var amount: Int
  /// The currency; for a conversion the one that was given away.
  public var currency: Currency
  /// The reason that the game gave.
  public var reason: String
  /// The goods that the operation granted.
  public var goods: [Goods]
  /// When the operation was made, by this device's clock.
  public var date: Date
  /// What became of the operation.
  public var status: Status

  /// Creates an entry; nil for transfers between the device and its bank, which don't change the player's money.
  init?(_ entry: WalletEntry) {
    let operation = entry.operation
    guard let kind = Kind(operation.kind) else { return nil }
    self.kind = kind
    id = operation.id
    amount = Int(clamping: operation.amount)
    currency = Currency(operation.currency)
    reason = operation.reason
    goods = operation.goods.map { Goods($0) }
    date = Date(timeIntervalSince1970: Double(operation.madeAtMilliseconds) / 1000)
    status =
      switch entry.status {
      case .waiting: .waiting
      case .settled: .settled
      case .declined: .declined
      case .refunded: .refunded
      }
  }
}

extension LedgerEntry.Kind {
  /// Creates a kind; nil for transfers between the device and its bank.
  init?(_ kind: WalletOperation.Kind) {
    switch kind {
    case .earn: self = .earned
    case .spend: self = .spent
    case .claim(let key): self = .claimed(key: key)
    case .convert(let currency, let received):
      self = .converted(to: Currency(currency), received: Int(clamping: received))
    case .giveBack: return nil
    }
  }
}
