public import KeepsakeReplication

/// What came from other devices, or from the cloud's bank.
public enum GameChange: Sendable, Hashable {
  /// These slots have saves of other devices, by name, sorted. What runs is unchanged; `load` gives the new view.
  case slots([String])
  /// Of these tracked files other devices have versions, by name, sorted. The files themselves are unchanged; `TrackedFile.update` brings it in.
  case files([String])
  /// These values of `progress` changed, by name, sorted.
  case progress([String])
  /// These synced preferences changed, by name, sorted.
  case preferences([String])
  /// On these boards of `scores` a player's best changed, by name, sorted.
  case scores([String])
  /// Balances, or what may be spent here, changed.
  case wallet
  /// What became of claims, and of spending that the bank had to decide afterwards.
  case decisions([WalletVerdict])
  /// Something went wrong; see `GameData.incidents`.
  case incident(Incident)
}

/// What the bank decided about one operation.
public struct WalletVerdict: Sendable, Hashable {
  /// As `spend`, `earn` or `claim` returned it.
  public let operation: OperationID
  /// False: it was never charged or paid, and its goods are revoked.
  public let isAccepted: Bool

  package init(_ decision: WalletDecision) {
    operation = decision.id
    isAccepted = decision.verdict == .accepted
  }
}
