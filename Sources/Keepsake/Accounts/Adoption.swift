/// What an account got from another one, and what stays behind.
public struct Adoption: Sendable, Hashable {
  /// Slots that got saved games, sorted. Where the account has a save of its own the two stand beside each other, as after playing on two devices.
  public var saves: [String] = []
  /// Tracked files that got versions, by name, sorted. The file itself is wherever the game keeps it: `TrackedFiles.place` puts it somewhere.
  public var files: [String] = []
  /// Progress, bests and synced preferences that changed, as `progress/level`, sorted.
  public var values: [String] = []
  /// Preferences of this device that the account had none of, sorted.
  public var preferences: [String] = []
  /// How many scores came onto the boards.
  public var scores = 0
  /// What came into the wallet: earned less spent, without claims, which are pending until the bank confirms them.
  public var money: [Currency: Int] = [:]
  /// What stays with the one that it came from.
  public var left = Left()
  /// Whether the other's data were deleted from this device, as asked: only if nothing was left.
  public var isEmptied = false

  /// What can't be adopted.
  public struct Left: Sendable, Hashable {
    /// Slots whose saved game is damaged there, sorted.
    public var damagedSaves: [String] = []
    /// Slots that one of the two keeps on this device (`SaveSlots.keepLocal`), sorted.
    public var localSaves: [String] = []
    /// Slots, and tracked files by name, whose save is in the cloud of the one that it came from, and not on this device, sorted: open that, download, and
    /// adopt again.
    public var notDownloaded: [String] = []
    /// Tracked files whose versions are damaged there, by name, sorted.
    public var damagedFiles: [String] = []
    /// Values that both filled to more than a cloud takes, sorted; the account's own stay as they were.
    public var values: [String] = []
    /// Preferences of this device that are damaged there, or for which the account has no room, sorted.
    public var preferences: [String] = []
    /// Money that another bank keeps.
    public var money: [Currency: Int] = [:]
    /// Currencies of which the other's own cloud has to be told what was done there, above all that the money went, sorted by name. Its other devices
    /// could spend it again if it were never told: connect the other, `sync`, and adopt again.
    public var unreported: [Currency] = []
    /// Of what the other's devices changed something is still on its way here: connect the other until its status says so no more, and adopt again.
    public var hasIncoming = false
    /// Names of tracked files that one of the two keeps on this device, sorted: the versions stay, and the file is wherever the game keeps it.
    public var files: [String] = []
    /// The game's own tables, of which only the game knows how two go together.
    public var hasRecords = false

    /// Whether all was adopted.
    public var isEmpty: Bool { self == Left() }
  }
}
