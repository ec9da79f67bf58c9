import KeepsakeReplication

/// Saves of one slot that were made on several devices without knowing of each other.
public struct Conflict<Value> {
  /// One of the saves.
  public struct Side {
    /// When and by whom it was saved, and its metadata.
    public let version: Version
    /// The save itself.
    public let value: Value
  }
  /// Two or more, the one that `load` gives first.
  public let sides: [Side]
  /// What all of them came from, if it is known here.
  public let ancestor: Value?
  /// Every head that stood in the slot, deletes included: what the choice replaces.
  let heads: [VersionID]
  let slot: String
}
