public import Foundation
public import KeepsakeReplication

/// One version of a saved game, without its contents.
public struct Version: Sendable, Hashable, Identifiable {
  /// How far a version has come.
  public enum State: String, Sendable, Hashable {
    /// Durable on this device, and waiting to be sent or for a cloud.
    case queued
    /// Durable on this device, in a local slot (`SaveSlots.keepLocal`).
    case local
    /// The cloud has it too.
    case stored
  }

  /// The version's identifier, the same on every device.
  public let id: VersionID
  /// The slot's name; for a tracked file, the name under which it is tracked.
  public let slot: String
  /// When it was saved, by the clock of the device that saved it.
  public let savedAt: Date
  /// The metadata that it was saved with.
  public let metadata: SaveMetadata
  /// The size of the save in bytes, as the game wrote it.
  public let length: Int
  /// Whether this version is a delete.
  public let isDeleted: Bool
  /// How far it has come.
  public let state: State
  /// Whether it is pinned on this device (`SaveSlots.pin`).
  public let isPinned: Bool

  package init(_ version: StoredVersion, isPinned: Bool) {
    self.isPinned = isPinned
    let record = version.record
    id = record.id
    slot = record.key.name
    savedAt = Date(timeIntervalSince1970: Double(record.savedAtMilliseconds) / 1000)
    metadata = record.metadata
    length = record.length
    isDeleted = record.tombstone
    // A version that was replaced before anybody else could know of it is never sent.
    state = record.key.isLocal ? .local : version.acknowledged && version.offered ? .stored : .queued
  }
}

/// A slot as `SaveSlots.list` shows it.
public struct SlotSummary: Sendable, Hashable, Identifiable {
  /// The slot's name.
  public let name: String
  /// The current version; in a conflict, the one with the most progress.
  public let current: Version
  /// Whether the slot has an unresolved conflict.
  public let isConflicted: Bool
  /// Whether the slot is local (`SaveSlots.keepLocal`).
  public let isLocal: Bool
  /// Whether it can be loaded without the cloud; false if `Cloud.downloads` left the save there.
  public let isDownloaded: Bool

  /// The slot's name.
  public var id: String { name }
}
