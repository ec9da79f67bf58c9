public import Foundation
public import KeepsakeReplication
import KeepsakeStore

/// What became of an operation that a game can't take for granted: a claim, or an operation that the bank declined. Or
/// what the game's own servers did.
public struct WalletNotice: Sendable, Hashable, Identifiable {
  /// What the bank decided.
  public enum Verdict: Sendable, Hashable {
    /// The bank has paid the claim.
    case paid
    /// The operation doesn't count, and what it granted has to be taken back. A claim was paid before, to this device
    /// or another one. A spend wasn't covered, because copies of an installation spent the same money, the device had
    /// been set back to a backup, or it had been removed; what was earned in the same checkpoint doesn't count either.
    /// What was added would exceed a limit of the player's account.
    case declined
    /// The operation doesn't count, because another one has the same identifier.
    case idReused
    /// The operation doesn't count, because only the game's own servers make more of the currency; nor does what was
    /// done in the same checkpoint, which is `declined`.
    case notAllowed
    /// The game's own servers have granted this, or paid a receipt: the goods, if any, are the player's. Every device
    /// is told: show it, and don't add the goods to a save. `WalletStore.goods()` has them.
    case received
    /// The game's own servers have taken this back (a refund) or away (a charge): the goods, if any, are gone from
    /// `WalletStore.goods()`. A refund has returned the money. Every device is told: show it.
    case takenBack
  }

  /// The operation's identifier.
  public var id: OperationID
  /// The kind of operation.
  public var kind: LedgerEntry.Kind
  /// The amount; greater than zero for every kind.
  public var amount: Int
  /// The currency.
  public var currency: Currency
  /// The reason that the game gave.
  public var reason: String
  /// The goods that the operation granted.
  public var goods: [Goods]
  /// When the operation was made, by this device's clock; for one of the bank, by the server's.
  public var date: Date
  /// What the bank decided.
  public var verdict: Verdict
  /// Identifies the notice on this device.
  let number: Int64

  /// Creates a notice; nil for an operation that no game made.
  init?(_ notice: KeepsakeStore.WalletNotice) {
    let operation = notice.operation
    guard let kind = LedgerEntry.Kind(operation, notice.order) else { return nil }
    switch notice.verdict {
    case .accepted:
      if let order = notice.order { verdict = order.kind == .grant ? .received : .takenBack } else { verdict = .paid }
    case .declined: verdict = .declined
    case .notAllowed: verdict = .notAllowed
    case .idReused: verdict = .idReused
    case .waiting, .unknown: return nil
    }
    self.kind = kind
    id = operation.id
    amount = Int(clamping: operation.amount)
    currency = Currency(operation.currency)
    reason = operation.reason
    goods = operation.goods.map { Goods($0) }
    date = Date(timeIntervalSince1970: Double(operation.madeAtMilliseconds) / 1000)
    number = notice.number
  }
}

extension WalletStore {
  /// Lists what the bank decided about claims, which operations it declined, and what the game's own servers granted,
  /// charged and refunded, until the game confirms it. Notices are kept with the wallet, so a crash loses none. What
  /// the servers did before this install first synced with the player is only in the ledger and in `goods()`.
  ///
  /// ```swift
  /// for notice in try game.wallet.notices() {
  ///   switch (notice.kind, notice.verdict) {
  ///   case (_, .received), (_, .takenBack): show(notice)  // on every device: change nothing, goods() has it
  ///   case (.claimed, .paid): world.grant(notice.goods)   // on the device that made the claim
  ///   case (.claimed, _): break                           // nothing was granted before
  ///   default: world.takeBack(notice.goods)
  ///   }
  ///   try game.saves.capture(world, to: .main).wait()
  ///   try game.wallet.confirm(through: notice)
  /// }
  /// ```
  ///
  /// A crash between the save and `confirm` reports the notice again, so handling it twice must do no harm. At most
  /// 1,000 are kept, the newest. While `Cloud.delivery` holds the bank's decisions back, their notices are held
  /// back, too. Costs reading them.
  ///
  /// - Returns: The notices that aren't confirmed, oldest first, each operation at most once.
  /// - Throws: `StoreError` if the store can't be read.
  public func notices() throws -> [WalletNotice] {
    let notices = try core.store.read { try $0.walletNotices() }
    let last = shownNotice
    return notices.compactMap(WalletNotice.init).filter { notice in last.map { notice.number <= $0 } ?? true }
  }

  /// Confirms a notice and all before it: the game has done what follows from them. Durable on return; one wait for the
  /// disk. Confirming twice does nothing.
  ///
  /// - Parameter notice: A notice from `notices()` of this game data.
  /// - Throws: `StoreError` if the disk can't be written; the notices are kept then. `GameDataError` with `closed`.
  public func confirm(through notice: WalletNotice) throws {
    try core.store.write { try $0.removeWalletNotices(upTo: notice.number) }
  }
}
