#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore

/// One version as commands show it.
struct VersionReport: Codable, Hashable {
  var id: String
  var savedAt: String
  var savedAtMilliseconds: Int64
  /// The size in bytes, uncompressed.
  var bytes: Int
  /// The hash of the bytes if they are one content, as files are.
  var sha256: String?
  var contents: [Content]
  /// Whether the contents are in the store. Whether they are undamaged is only known once they are read.
  var downloaded: Bool
  var head: Bool
  var acknowledged: Bool
  var provisional: Bool
  var tombstone: Bool
  /// Whether it is kept regardless of the rules for history.
  var pinned: Bool
  var covers: [String]
  /// The opening of a store that made it.
  var writer: String
  /// The name of the device that made it, if that is recorded.
  var device: String?
  var title: String?
  var playtimeMilliseconds: Double?
  var progress: Double?

  struct Content: Codable, Hashable {
    var sha256: String
  }

  private enum CodingKeys: String, CodingKey {
    case id = "version"
    case savedAt, savedAtMilliseconds, bytes, sha256, contents, downloaded, head, acknowledged, provisional, tombstone
    case pinned, covers, writer
    case device = "deviceName"
    case title, playtimeMilliseconds, progress
  }

  init(_ version: StoredVersion, isHead: Bool, isPinned: Bool, in transaction: StoreTransaction) throws {
    let record = version.record
    id = record.id.description
    savedAt = TimeText.iso(milliseconds: record.savedAtMilliseconds)
    savedAtMilliseconds = record.savedAtMilliseconds
    bytes = record.length
    sha256 = record.contents.count == 1 ? record.contents[0].description : nil
    contents = record.contents.map { Content(sha256: $0.description) }
    downloaded =
      try !transaction.isNotDownloaded(record) && record.contents.allSatisfy { try transaction.hasContent($0) }
    head = isHead
    acknowledged = version.acknowledged
    provisional = record.provisional
    tombstone = record.tombstone
    pinned = isPinned
    covers = record.covers.map(\.description)
    writer = record.writer.description
    device = record.metadata.device
    title = record.metadata.title
    playtimeMilliseconds = record.metadata.playtime.map { $0 * 1_000 }
    progress = record.metadata.progress
  }
}

/// One slot: its heads that are only in the cloud, then its history that is kept, newest first.
struct SlotReport: Codable, Hashable {
  /// The name that people use and commands take: for a file that the game tracks, `tracked:` and the file's name.
  var slot: String
  /// Whether it stays on this device.
  var local: Bool
  /// The slot key in the store, if it differs.
  var slotKey: String?
  var heads: [String]
  /// Whether several devices changed it, and no version covers both sides yet.
  var conflict: Bool
  var versions: [VersionReport]

  /// - Parameter key: The slot key in the store.
  init(_ key: String, in transaction: StoreTransaction) throws {
    slot = SlotName.shown(key)
    local = SlotKey(text: key).isLocal
    slotKey = slot == key ? nil : key
    let view = try Resolution.view(of: key, in: transaction, policy: .newest)
    // The winner first; those with the same bytes as another, and deletions, last.
    let shown = view.heads.map(\.id)
    heads = (shown + view.parents.filter { !shown.contains($0) }).map(\.description)
    conflict = view.isConflict
    let known = try Set(transaction.heads(of: key))
    let pinned = try transaction.pinnedVersions(of: key)
    let history = try transaction.history(of: key)
    // Heads that are only in the cloud aren't part of it.
    let remote = try known.subtracting(history.map(\.record.id)).sorted().compactMap { try transaction.version($0) }
    versions = try (remote + history).map {
      try VersionReport(
        $0, isHead: known.contains($0.record.id), isPinned: pinned.contains($0.record.id), in: transaction)
    }
  }
}
#endif
