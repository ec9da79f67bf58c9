public import Foundation

/// What a list of slots shows of a saved game without decoding it.
public struct SaveMetadata: Hashable, Sendable, Codable {
  /// The most bytes that a title, a thumbnail, and keys and values of `custom` may take together: metadata travels with
  /// every version, so it has to be small even compared with the smallest saves.
  public static let maximumBytes = 64 * 1024

  /// The name of the save in a list.
  public var title: String?
  /// Seconds played, as counted by the game.
  public var playtime: Double?
  /// How far the player has come, on a scale of the game's own; compared by the policy `mostProgress`.
  public var progress: Double?
  /// A small picture, in any encoding that the game chooses.
  public var thumbnail: Data?
  /// Whatever else the game wants to show, by names of its own.
  public var custom: [String: String]

  /// Creates metadata; parameters that aren't given are empty.
  ///
  /// - Parameters:
  ///   - title: The name of the save in a list.
  ///   - playtime: Seconds played.
  ///   - progress: How far the player has come, on a scale of the game's own.
  ///   - thumbnail: A small picture, in any encoding that the game chooses.
  ///   - custom: Whatever else the game wants to show.
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

extension SaveMetadata {
  /// The field of `custom` in which `keepsake sync` and `keepsake wrap` record the name of the device that made a
  /// version. A version's writer is another one each time that a store is opened.
  package static let deviceField = "device"
  /// The most characters of a device's name.
  private static let longestDevice = 64

  /// The name of the device that made the version, if it was recorded.
  package var device: String? {
    get { custom[Self.deviceField] }
    set { custom[Self.deviceField] = newValue.map { String($0.prefix(Self.longestDevice)) } }
  }
}

/// One saved game or file as of one save: its contents, by hash, and which versions it replaces.
package struct VersionRecord: Hashable, Sendable {
  package var id: VersionID
  /// The text of its key.
  package var slot: String
  /// The versions that this one replaces, sorted. A version that no known version covers is a head.
  package var covers: [VersionID]
  /// The contents whose plain bytes, concatenated, are the save. Empty for a tombstone.
  package var contents: [ContentHash]
  /// Plain bytes in total.
  package var length: Int
  package var metadata: SaveMetadata
  /// The writer's clock, in milliseconds since 1970. Shown to people; never decides between unrelated versions.
  package var savedAtMilliseconds: Int64
  package var writer: WriterID
  /// True if the history of this version began before its store had ever caught up with its cloud.
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

/// A version as a store keeps it, with what the store knows about sending it.
package struct StoredVersion: Hashable, Sendable {
  package var record: VersionRecord
  /// Nothing about it has to be sent any more: the cloud has it, or knows it as covered, and this store's cursor has
  /// passed that; or it was replaced here before any other device could know it (then `offered` is false). It may also
  /// be history that the cloud never gets: adopted from another store, or with contents that nobody has any more. So
  /// this doesn't mean that the cloud knows what it covers.
  package var acknowledged: Bool
  /// Other devices may know it: it was offered to the cloud, received from it, or was here when the store was opened (a
  /// copy of the store may have it too).
  package var offered: Bool

  package init(record: VersionRecord, acknowledged: Bool, offered: Bool) {
    self.record = record
    self.acknowledged = acknowledged
    self.offered = offered
  }

  /// Whether it was replaced here before any other device could know it: it is never sent, and the cloud gets its id
  /// only as a direct parent of another version.
  package var neverLeft: Bool { acknowledged && !offered }

  /// Marks it as not to be sent any more. What replaces it also covers what it covered.
  package mutating func withdraw() { (acknowledged, offered) = (true, false) }
}
