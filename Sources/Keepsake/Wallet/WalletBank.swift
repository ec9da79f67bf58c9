/// Whether the player's money is kept by a bank, which pays claims and moves money between devices.
public enum WalletBank: Sendable, Hashable {
  /// There is none: no cloud is connected, `Cloud.isEnabled` is false, or the cloud is a folder.
  ///
  /// This device spends what it holds, and claims stay pending. A copy of the installation can spend the same money
  /// once more, which nobody notices as long as there is no bank.
  case none
  /// The connected cloud has a bank. Whether it can be reached now is in `Cloud.availability`.
  case connected
}

extension WalletStore {
  /// Whether there is a bank. Never blocks.
  public var bank: WalletBank { core.cloud.hasBank ? .connected : .none }

  /// Returns what the player owes in a currency: what the game's own servers charged beyond the balance. What the
  /// player gets later pays it first. `Cloud.delivery` doesn't hold it back.
  ///
  /// - Parameter currency: The currency.
  /// - Returns: The amount, as the bank last reported it; zero without a bank.
  /// - Throws: `StoreError` if the wallet can't be read.
  public func owed(_ currency: Currency) throws -> Int {
    Int(clamping: try core.store.read { try $0.wallet()?.owed[currency.name] ?? 0 })
  }
}
