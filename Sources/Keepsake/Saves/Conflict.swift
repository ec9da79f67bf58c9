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
  /// A save that this program can't read, most likely because a newer one made it.
  public struct UnreadableSide: Sendable {
    /// When and by whom it was saved, and its metadata.
    public let version: Version
    /// Why: an `ArchiveError`, or what the game's own decoding threw.
    public let error: any Error
  }
  /// Those that can be read, the one that `load` gives first. With `unreadable` two or more: a single one stands here if the others can't be read.
  public let sides: [Side]
  /// Those that can't. A choice leaves them where they are, for the program that can.
  public let unreadable: [UnreadableSide]
  /// What all of them came from, if it is known here.
  public let ancestor: Value?
  /// Every head that stood in the slot, deletes included, but for those that can't be read: what the choice replaces.
  let heads: [VersionID]
  let slot: String
}
