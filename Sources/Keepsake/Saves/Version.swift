public import Foundation
public import KeepsakeReplication

/// One version of a saved game, without its bytes.
public struct Version: Sendable, Hashable, Identifiable {
  /// How far it has come.
  public enum State: String, Sendable, Hashable {
    /// Durable here, on its way to the cloud or waiting for one.
    case queued
    /// Durable here, and made to stay here (`SaveSlots.keepLocal`).
    case local
    /// The cloud has it too.
    case stored
  }

  /// Its name, on every device.
  public let id: VersionID
  /// The slot's name; for a tracked file, the name under which it is tracked.
  public let slot: String
  /// By the clock of the device that saved it.
  public let savedAt: Date
  /// What it was saved with.
  public let metadata: SaveMetadata
  /// Bytes of the save.
  public let length: Int
  /// Whether it is a delete.
  public let isDeleted: Bool
  /// How far it has come.
  public let state: State
  /// Kept on this device until it is unpinned, whatever the rules for history say (`SaveSlots.pin`).
  public let isPinned: Bool

  package init(_ version: StoredVersion, isPinned: Bool) {
    self.isPinned = isPinned
    let record = version.record
    id = record.id
    slot = FileSlot.shown(record.slot)
    savedAt = Date(timeIntervalSince1970: Double(record.savedAtMilliseconds) / 1000)
    metadata = record.metadata
    length = record.length
    isDeleted = record.tombstone
    // A version that was replaced before anybody else could know it is never sent.
    state = LocalSlot.contains(record.slot) ? .local : version.acknowledged && version.offered ? .stored : .queued
  }
}

/// A slot as a list shows it.
public struct SlotSummary: Sendable, Hashable, Identifiable {
  /// The slot's name.
  public let name: String
  /// What `load` would give, where the policy chooses by progress.
  public let current: Version
  /// Devices saved without knowing of each other, and it is not resolved yet.
  public let isConflicted: Bool
  /// It stays on this device (`SaveSlots.keepLocal`).
  public let isLocal: Bool
  /// It can be loaded without asking the cloud: false where `Cloud.downloads` left the save there.
  public let isDownloaded: Bool

  public var id: String { name }
}
