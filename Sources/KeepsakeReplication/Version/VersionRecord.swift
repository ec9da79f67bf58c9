public import Foundation

/// What a slot list shows of a saved game without decoding it.
public struct SaveMetadata: Hashable, Sendable, Codable {
  /// The most that a title, a thumbnail, and keys and values of `custom` may take together, in bytes: metadata travels with
  /// every version, so it has to stay small beside the smallest saves.
  public static let maximumBytes = 64 * 1024

  /// What a list calls the save.
  public var title: String?
  /// Seconds played, as the game counts them.
  public var playtime: Double?
  /// How far the game has come, on a scale of the game's own; compared by the policy `mostProgress`.
  public var progress: Double?
  /// A small picture, encoded as the game likes.
  public var thumbnail: Data?
  /// What else the game wants to show, by names of its own.
  public var custom: [String: String]

  /// Makes metadata; whatever isn't given is empty.
  ///
  /// - Parameters:
  ///   - title: What a list calls the save.
  ///   - playtime: Seconds played.
  ///   - progress: How far the game has come, on a scale of the game's own.
  ///   - thumbnail: A small picture, encoded as the game likes.
  ///   - custom: What else the game wants to show.
  public init(
    title: String? = nil, playtime: Double? = nil, progress: Double? = nil, thumbnail: Data? = nil,
    custom: [String: String] = [:]
  ) {
    self.title = title
    self.playtime = playtime
    self.progress = progress
    self.thumbnail = thumbnail
    self.custom = custom
  }
}

/// One saved game or file as it was at one save: what it holds, by name, and which versions it replaces.
package struct VersionRecord: Hashable, Sendable {
  package var id: VersionID
  /// The text of its key.
  package var slot: String
  /// The versions that this one replaces, sorted. A version that no known version covers is a head.
  package var covers: [VersionID]
  /// The contents whose plain bytes, one after the other, are the save. Empty for a tombstone.
  package var contents: [ContentHash]
  /// Plain bytes in all.
  package var length: Int
  package var metadata: SaveMetadata
  /// The writer's clock, milliseconds since 1970. Shown to people; never decides between lineages.
  package var savedAtMilliseconds: Int64
  package var writer: WriterID
  /// True if this lineage began before its store had ever caught up with its cloud.
  package var provisional: Bool
  /// True for a delete.
  package var tombstone: Bool

  package init(
    id: VersionID, slot: String, covers: [VersionID], contents: [ContentHash], length: Int,
    metadata: SaveMetadata = SaveMetadata(), savedAtMilliseconds: Int64, writer: WriterID, provisional: Bool,
    tombstone: Bool = false
  ) {
    self.id = id
    self.slot = slot
    self.covers = covers
    self.contents = contents
    self.length = length
    self.metadata = metadata
    self.savedAtMilliseconds = savedAtMilliseconds
    self.writer = writer
    self.provisional = provisional
    self.tombstone = tombstone
  }
}

/// A version as a store keeps it, with what the store knows of its way.
package struct StoredVersion: Hashable, Sendable {
  package var record: VersionRecord
  /// Nothing about it is owed to the cloud any more: the cloud has it, or knows it as covered, and this store's cursor has
  /// passed that; or it was replaced here before anybody else could know it (then `offered` is false).
  package var acknowledged: Bool
  /// Others may know it: it was offered to the cloud, received from it, or stood here when the store was opened (a copy of
  /// the store may hold it too).
  package var offered: Bool

  package init(record: VersionRecord, acknowledged: Bool, offered: Bool) {
    self.record = record
    self.acknowledged = acknowledged
    self.offered = offered
  }

  /// Replaced here before anybody else could know it: never to be sent, nor to be named to the cloud but as a direct basis.
  package var neverLeft: Bool { acknowledged && !offered }

  /// It isn't to be sent any more. What replaces it names what it replaced, too.
  package mutating func withdraw() { (acknowledged, offered) = (true, false) }
}
