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
}
