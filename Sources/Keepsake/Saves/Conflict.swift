import KeepsakeReplication

/// Saves of one slot that devices made without knowing of each other.
public struct Conflict<Value> {
  /// One of the saves.
  public struct Side {
    /// When it was saved, and its metadata. Put the device's name into `SaveMetadata.custom` if the player is to see
    /// it.
    public let version: Version
    /// The saved value.
    public let value: Value
  }
  /// A save that this program can't read, because a newer program wrote it, or because it is of another type.
  public struct UnreadableSide: Sendable {
    /// When it was saved, and its metadata. Put the device's name into `SaveMetadata.custom` if the player is to see
    /// it.
    public let version: Version
    /// Why it can't be read: an `ArchiveError`, or what the game's own decoding threw.
    public let error: any Error
  }
  /// The saves that can be read, ranked as for `load`, the best first. Together with `unreadable` there are at least
  /// two.
  public let sides: [Side]
  /// The saves that can't be read. Resolving the conflict leaves them for a program that can read them, unless it is
  /// told to replace them.
  public let unreadable: [UnreadableSide]
  /// The nearest version that all sides descend from, if it is known on this device.
  public let ancestor: Value?
  /// Every head of the slot, including deletes, but without the unreadable ones: what resolving replaces.
  let heads: [VersionID]
  let slot: Slot<Value>
}
