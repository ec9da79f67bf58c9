public import KeepsakeReplication

/// What arrived from other devices, or from the cloud's bank.
public enum GameChange: Sendable, Hashable {
  /// These slots have new saves of other devices. Names, sorted. The running game's values don't change; `load` returns
  /// the new state.
  case slots([String])
  /// These tracked files have new versions of other devices. Names, sorted. The files on disk don't change;
  /// `TrackedFile.update` writes the new version.
  case files([String])
  /// These values of `progress` changed. Names, sorted.
  case progress([String])
  /// These synced preferences changed. Names, sorted.
  case preferences([String])
  /// A player's best score changed on these boards. Names, sorted.
  case scores([String])
  /// A balance changed, or what can be spent on this device.
  case wallet
  /// The bank decided about claims, or about spends that it has to confirm.
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
