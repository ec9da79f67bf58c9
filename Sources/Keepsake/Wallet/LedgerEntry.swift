public import Foundation
public import KeepsakeReplication
import KeepsakeStore

/// One entry of the wallet's ledger: what was done, how much, why, and whether it counts. Besides what this device did,
/// the ledger has what the game's own servers ordered.
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
    /// The bank added money by itself: the game's own servers ordered it, or paid a receipt; or it came with what the
    /// player had at another bank.
    case granted
    /// The game's own servers took money.
    case charged
    /// The game's own servers took this purchase back: its money was returned, and its goods are gone. The purchase may
    /// have been made on another device.
    case refund(of: OperationID)
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
    /// What was spent was returned to the player by the game's own servers, and the goods are gone. The entry of kind
    /// `refund` says when and why.
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
  /// When the operation was made, by this device's clock; for one of the bank, by the server's.
  public var date: Date
  /// What became of the operation.
  public var status: Status

  /// Creates an entry; nil for transfers between the device and its bank, which don't change the player's money.
  init?(_ entry: WalletEntry) {
    let operation = entry.operation
    guard let kind = Kind(operation, entry.order) else { return nil }
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
  ///
  /// - Parameter order: The bank's own operation, if it is one.
  init?(_ operation: WalletOperation, _ order: BankOrder?) {
    if let order {
      switch (order.kind, order.purchase) {
      case (.refund, let purchase?): self = .refund(of: purchase)
      case (.charge, _): self = .charged
      case (.grant, _), (.voucher, _), (.shortfall, _), (.refund, nil): self = .granted
      }
      return
    }
    switch operation.kind {
    case .earn: self = .earned
    case .spend: self = .spent
    case .claim(let key): self = .claimed(key: key)
    case .convert(let currency, let received):
      self = .converted(to: Currency(currency), received: Int(clamping: received))
    case .giveBack: return nil
    }
  }
}
