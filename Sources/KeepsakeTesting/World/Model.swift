import KeepsakeReplication

/// What the games of a world did, as an outside observer writes it down: what the checks compare with.
struct Model {
  enum Write {
    case version(VersionID)
    case cell(CellKey, CellDraft.Change)
    case operation(OperationID)
  }

  struct Made {
    var slot: String
    var device: Int
    /// What the game had seen when it saved: loaded, listed, or saved itself.
    var seen: Set<VersionID>
    /// The commit also put the id into the set `World.elements`.
    var paired: Bool
    /// Made on a store that was later set back to a backup: may be gone.
    var mayBeGone = false
  }

  var writes: [(write: Write, mayBeGone: Bool)] = []
  var versions: [VersionID: Made] = [:]
  /// Versions made next on the same device, or by games that had seen the key.
  var successors: [VersionID: [VersionID]] = [:]
  var operations: [OperationID: WalletOperation] = [:]
  var operationMayBeGone: Set<OperationID> = []
}
