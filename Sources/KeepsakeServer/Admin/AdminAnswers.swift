#if Cloud
import Foundation
import KeepsakeReplication

/// A player as the studio asks for one. To find players by identities, add a case.
enum PlayerQuery: Sendable {
  case player(PlayerID)
  case device(DeviceID)
}

/// Where a player is kept, with the apps of all the player's devices.
struct AdminPlace: Hashable, Sendable {
  var player: PlayerID
  var container: ContainerID
  var apps: Set<AppID>

  /// Gathers rows of devices, recovery codes and identities, sorted by player.
  static func gathered(_ rows: [(player: PlayerID, container: ContainerID, app: AppID)]) -> [AdminPlace] {
    var found: [PlayerID: AdminPlace] = [:]
    for row in rows {
      found[row.player, default: AdminPlace(player: row.player, container: row.container, apps: [])].apps
        .insert(row.app)
    }
    return found.values.sorted { $0.player < $1.player }
  }
}

/// A slot of a player's saves.
struct AdminSlot: Sendable, Encodable {
  /// The text of its key, as a device sends it.
  var slot: String
  var versions: Int
  /// Versions that nothing has replaced: several are a conflict.
  var heads: Int
}

/// A version of a save.
struct AdminVersion: Sendable, Encodable {
  var version: VersionID
  var slot: String
  /// Its place in the order in which changes came.
  var seq: UInt64
  var savedAtMilliseconds: Int64
  var length: Int
  var isHead: Bool
  var isDelete: Bool
  /// Whether its bytes are still here.
  var isHere: Bool
  /// The versions that it replaces.
  var covers: [VersionID]
  var writer: WriterID
  /// The name of the device that made it, if it was recorded.
  var device: String?
  var title: String?
  var playtime: Double?
  var progress: Double?
  private(set) var contents: [ContentHash] = []
  fileprivate var recordBytes: Int

  private enum CodingKeys: String, CodingKey {
    case version, slot, seq, savedAtMilliseconds
    case length = "bytes"
    case isHead = "head"
    case isDelete = "tombstone"
    case isHere = "available"
    case covers, writer
    case device = "deviceName"
    case title, playtime, progress
  }

  init(_ sequenced: SequencedVersion, isHead: Bool, isHere: Bool) {
    let record = sequenced.record
    (version, slot, seq) = (record.id, record.slot, sequenced.seq)
    (savedAtMilliseconds, length, isDelete) = (record.savedAtMilliseconds, record.length, record.tombstone)
    (self.isHead, self.isHere) = (isHead, isHere)
    (covers, writer, contents) = (record.covers, record.writer, record.contents)
    recordBytes = record.size
    let metadata = record.metadata
    (device, title, playtime, progress) = (metadata.device, metadata.title, metadata.playtime, metadata.progress)
  }
}

/// A page of a slot's versions, the newest first.
struct AdminVersionPage: Sendable {
  private(set) var versions: [AdminVersion] = []
  /// Whether there are more.
  var hasMore = false
  private let limit: Int
  private let bytes: Int
  private var size = 0

  /// - Parameters: As of `AdminStorage.versions`.
  init(limit: Int, bytes: Int) { (self.limit, self.bytes) = (limit, bytes) }

  /// Adds the next version; false if the page was full before.
  mutating func add(_ version: AdminVersion) -> Bool {
    size += version.recordBytes
    hasMore = versions.count == limit || (!versions.isEmpty && size > bytes)
    if !hasMore { versions.append(version) }
    return !hasMore
  }
}
#endif
