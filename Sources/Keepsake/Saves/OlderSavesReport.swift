/// The result of an import of an older game's saves. Every save that was passed in is in exactly one of the lists
/// `imported`, `known`, `skipped`, `unfit` and `others`.
public struct OlderSavesReport: Sendable {
  /// A save that was imported.
  public struct Imported: Sendable, Hashable {
    /// The name that the older game gave it.
    public let name: String
    /// The device that the older game named; nil if it named none.
    public let device: String?
    /// What it has become. Its slot is `Version.slot`.
    public let version: Version
  }

  /// A save that was not imported, because of what its slot has.
  public struct Skipped: Sendable, Hashable {
    /// Why a save was not imported.
    public enum Reason: Sendable, Hashable {
      /// The slot has a save that was made with Keepsake, on this device or another.
      case slotInUse
      /// The player has deleted the save in the slot.
      case deleted
      /// The slot is local (`SaveSlots.keepLocal`).
      case localSlot
      /// The slot has as many imported saves in conflict as it may have: `SaveSlots.maximumOlderSaves`.
      case tooMany
    }

    /// The name that the older game gave it.
    public let name: String
    /// The device that the older game named; nil if it named none.
    public let device: String?
    /// The slot that it would have gone to.
    public let slot: String
    /// Why it was not imported.
    public let reason: Reason
  }

  /// A save that can't be imported.
  public struct Unfit: Sendable {
    /// The name that the older game gave it.
    public let name: String
    /// The device that the older game named; nil if it named none.
    public let device: String?
    /// What the game's functions threw; `GameDataError` with `misuse` for an invalid slot name or metadata that can't
    /// be saved, or with `tooLarge`; `ArchiveError` for a value that can't be encoded.
    public let error: any Error
  }

  /// Saves that were imported, the newest of each slot first.
  public internal(set) var imported: [Imported] = []
  /// The names of saves that were imported before, on this device or another, or whose bytes are those of another save
  /// of the slot. They stay what they have become: replaced, deleted, or the slot's current save.
  public internal(set) var known: [String] = []
  /// Saves that were not imported, because of what their slots have.
  public internal(set) var skipped: [Skipped] = []
  /// Saves that can't be imported.
  public internal(set) var unfit: [Unfit] = []
  /// The names of saves for which the game returned no slot.
  public internal(set) var others: [String] = []
  /// The slots in which several imported saves were kept apart: they are in conflict, and the slot's policy decides
  /// what `load` returns. Lists only slots to which this import added a save.
  public internal(set) var conflicted: [String] = []
}
