/// The result of `GameData.adopt`: what was adopted, and what stays behind.
public struct Adoption: Sendable, Hashable {
  /// Slots that received saved games, sorted. Where the account has a save of its own, both are kept as a conflict.
  public var saves: [String] = []
  /// Names of tracked files that received versions, sorted. `TrackedFiles.place` writes such a file to disk.
  public var files: [String] = []
  /// Progress, best scores and synced preferences that changed, as `progress/level`, sorted.
  public var values: [String] = []
  /// Preferences of this device that the account didn't have, sorted.
  public var preferences: [String] = []
  /// The number of scores added to boards.
  public var scores = 0
  /// Money added to the wallet: earned minus spent, without claims, which are pending until the bank confirms them.
  public var money: [Currency: Int] = [:]
  /// Money that the other account's bank still has to settle, as far as this device knows. Part of `Balance.pending`
  /// until it arrives.
  public var pendingMoney: [Currency: Int] = [:]
  /// What stays with the other account.
  public var left = Left()
  /// Whether the other account's data was deleted from this device as requested; true only if nothing stays behind.
  public var isEmptied = false

  /// What can't be adopted.
  public struct Left: Sendable, Hashable {
    /// Slots whose saved game is damaged, sorted.
    public var damagedSaves: [String] = []
    /// Slots that are local in one of the two accounts (`SaveSlots.keepLocal`), sorted.
    public var localSaves: [String] = []
    /// Slots, and names of tracked files, whose save is only in the other account's cloud, sorted. Open that account,
    /// download them, and adopt again.
    public var notDownloaded: [String] = []
    /// Names of tracked files whose versions are damaged, sorted.
    public var damagedFiles: [String] = []
    /// Values that would exceed a cloud's limits if joined, sorted. The account's own values are unchanged.
    public var values: [String] = []
    /// Preferences of this device that are damaged or that the account has no room for, sorted.
    public var preferences: [String] = []
    /// Money held by a bank that can't be asked from here, because this device's credentials for it are gone.
    public var money: [Currency: Int] = [:]
    /// Currencies with operations that such a bank doesn't know yet, sorted by name.
    public var unreported: [Currency] = []
    /// Whether changes from the other account's devices are still being downloaded: connect that account until its
    /// status is up to date, and adopt again.
    public var hasIncoming = false
    /// Names of tracked files that are local in one of the two accounts, sorted. Their versions stay behind; the file
    /// itself stays where the game keeps it.
    public var files: [String] = []
    /// Names of shared containers of which the other account has data, sorted (`GameData.shared(_:)`). They are the
    /// player's with whom the account shares them: the account joins them by a code, if they are the same person.
    public var shared: [String] = []
    /// Whether the other account has the game's own tables, which only the game can combine.
    public var hasRecords = false

    /// Whether everything was adopted.
    public var isEmpty: Bool { self == Left() }
  }
}
