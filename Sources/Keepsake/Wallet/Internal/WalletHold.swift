import KeepsakeReplication
import KeepsakeStore

/// What a game sees of its money while what arrives is held back: the balances from when that began, changed by the
/// game's own operations since then.
struct WalletHold: Sendable {
  private var balances: [String: Balance]
  /// The number of this device's first operation that isn't counted yet.
  private var next: Int64
  /// The number of the newest notice from before that; negative if there was none.
  let lastNotice: Int64

  init(in transaction: StoreTransaction) throws {
    balances = try Self.balances(in: transaction)
    next = try transaction.walletEntries(from: .max).next
    lastNotice = try transaction.walletNotices().last?.number ?? -1
  }

  /// Counts this device's operations since then. They are identified by their numbers, so that none counts twice,
  /// whatever the bank decides about them in the meantime.
  mutating func follow(in transaction: StoreTransaction) throws {
    let new = try transaction.walletEntries(from: next)
    next = new.next
    for operation in new.operations {
      // A transfer of rights to spend moves no money.
      for movement in operation.movements {
        balances[movement.currency, default: Balance(total: 0, spendable: 0, pending: 0)].count(movement)
      }
      if operation.effect == .claim {
        balances[operation.currency, default: Balance(total: 0, spendable: 0, pending: 0)].pending += Int(
          clamping: operation.amount)
      }
    }
  }

  /// Returns what is shown when the actual balances are `current`: no more can be spent than is on this device.
  func shown(over current: [String: Balance]) -> [String: Balance] {
    balances.reduce(into: [:]) { shown, entry in
      var balance = entry.value
      balance.spendable = max(min(balance.spendable, current[entry.key]?.spendable ?? 0), 0)
      shown[entry.key] = balance
    }
  }

  static func balances(in transaction: StoreTransaction) throws -> [String: Balance] {
    var balances: [String: Balance] = [:]
    var pending: [String: Int128] = [:]
    if let wallet = try transaction.wallet().map({ KeepsakeReplication.Wallet($0) }) {
      for currency in wallet.currencies {
        balances[currency] = Balance(
          total: Int(clamping: wallet.total(currency)), spendable: Int(clamping: wallet.spendable(currency)), pending: 0
        )
        pending[currency] = Int128(wallet.pending(currency)) + Int128(wallet.vouched(currency))
      }
    }
    for former in try transaction.formerWallets() {
      for currency in former.currencies { pending[currency, default: 0] += Int128(former.pending(currency)) }
    }
    for (currency, amount) in pending where amount > 0 {
      balances[currency, default: Balance(total: 0, spendable: 0, pending: 0)].pending = Int(clamping: amount)
    }
    return balances
  }
}
