public import KeepsakeReplication

/// A change that arrived from another device or from the cloud's bank.
public enum GameChange: Sendable, Hashable {
  /// Slots have new saves from other devices. Contains the slots' names, sorted. The running game's values don't
  /// change; `load` returns the new state.
  case slots([String])
  /// Tracked files have new versions from other devices. Contains the files' names, sorted. The files on disk don't
  /// change; `TrackedFile.update` writes the new version.
  case files([String])
  /// Values of `progress` changed. Contains their names, sorted.
  case progress([String])
  /// Synced preferences changed. Contains their names, sorted.
  case preferences([String])
  /// A player's best score changed on these boards. Contains the boards' names, sorted.
  case scores([String])
  /// A balance changed, or the amount that can be spent on this device.
  case wallet
  /// The bank decided about claims, about operations that it heard of too late, or about others that it declined. Not
  /// kept if the game ends before it sees this; `WalletStore.notices` are.
  case decisions([WalletVerdict])
  /// Something went wrong; see `GameData.incidents`.
  case incident(Incident)
}

/// The bank's decision about one operation.
public struct WalletVerdict: Sendable, Hashable {
  /// The operation's identifier, as `spend`, `earn`, `convert` or `claim` returned it.
  public let operation: OperationID
  /// Whether the bank accepted it. If not, it was never charged or paid, and its goods don't count.
  public let isAccepted: Bool

  package init(_ decided: KeepsakeReplication.Wallet.Decided) {
    operation = decided.operation.id
    isAccepted = decided.verdict.counts
  }
}
