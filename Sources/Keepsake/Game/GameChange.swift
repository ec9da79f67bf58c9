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
  /// The bank decided on claims, or on spends that it has to confirm.
  case decisions([WalletVerdict])
  /// Something went wrong; see `GameData.incidents`.
  case incident(Incident)
}

/// The bank's decision about one operation.
public struct WalletVerdict: Sendable, Hashable {
  /// The operation's identifier, as `spend`, `earn` or `claim` returned it.
  public let operation: OperationID
  /// Whether the bank accepted it. If not, it was never charged or paid, and its goods are revoked.
  public let isAccepted: Bool

  package init(_ decision: WalletDecision) {
    operation = decision.id
    isAccepted = decision.verdict == .accepted
  }
}
