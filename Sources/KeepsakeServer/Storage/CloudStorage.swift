#if Cloud
import Foundation
import KeepsakeReplication

/// Where a cloud keeps everything: containers and their contents, devices, pairing codes.
///
/// Every transaction touches one container, in which nobody else does anything meanwhile.
protocol CloudStorage: Sendable {
  associatedtype Container: CloudContainer

  /// Runs `body` in one transaction on a container, which is made if it isn't there; durable when this returns. What `body`
  /// throws undoes all that it did.
  func transaction<Result: Sendable>(
    on container: ContainerID, _ body: @escaping @Sendable (inout Container) throws -> Result
  ) async throws -> Result

  /// How far a container has come.
  func position(of container: ContainerID) async throws -> Cursor

  /// The same for a listener, who may say where it stands.
  func state(of container: ContainerID, for cursor: Cursor?) async throws -> ContainerState

  func hasContent(_ hash: ContentHash, of container: ContainerID) async throws -> Bool
  /// A content for sending; nil if it isn't here.
  func content(_ hash: ContentHash, of container: ContainerID) async throws -> KeptContent?
  /// Keeps a content; durable when this returns. If it is here already, the one that is here stays.
  /// In place of a damaged one only a full frame is taken, and the heads that need it are then told of once more: what the listeners are
  /// to hear is returned.
  /// Throws `MissingBase` for a delta whose base the container lacks, and `OverQuota`.
  func putContent(_ content: KeptContent, of container: ContainerID, quota: Int64?) async throws -> UInt64?
  /// What a content of so many bytes lacks of room, after what nobody needs has gone; nil if it fits, or stands in for a damaged one.
  func shortage(for hash: ContentHash, of bytes: Int, in container: ContainerID, quota: Int64) async throws -> QuotaShortage?

  /// Remembers a device, or that it was here.
  func recordDevice(_ device: DeviceRecord) async throws
  func devices(of container: ContainerID) async throws -> [DeviceRecord]
  /// Which devices have each of these versions, or one that replaced it.
  func devices(of container: ContainerID, holding versions: [VersionID]) async throws -> [VersionID: Set<DeviceID>]

  /// Whether a device was removed, or everything of its player deleted: its token, which proves itself, isn't taken any more.
  func isRetired(_ identity: DeviceIdentity) async throws -> Bool
  /// Removes a device, closes its wallet's chains, and voids its player's pairing code; nil if the container never had it. Doing it again changes nothing.
  func retire(_ device: DeviceID, of container: ContainerID, now: Int64) async throws -> Retirement?
  /// Deletes everything of a container, and refuses its devices for ever.
  func delete(_ container: ContainerID, now: Int64) async throws
  /// A page of all that is kept of a container.
  func exported(_ place: PlayerExport.Position, of container: ContainerID) async throws -> PlayerExport.Page

  /// Keeps a pairing code, in place of any earlier one of the same container, until it is used or old, or a device of the container is removed.
  /// Throws `APIError.retired` if the device that asks for it was removed, or everything of its player deleted.
  func putPairing(_ pairing: Pairing, for device: DeviceID, now: Int64) async throws
  /// Uses up a code, and remembers the new device, both or neither; nil if there is no such code in this app, it is too old, or everything of its player
  /// was deleted.
  func join(_ code: Data, app: AppID, as device: DeviceID, name: String, now: Int64) async throws -> DeviceIdentity?

  func close() async throws
}

/// How far a container has come, and what a listener has to know before it hears of changes.
struct ContainerState: Sendable {
  var seq: UInt64
  /// The listener's cursor, if it isn't of this history.
  var unknown: Cursor?
}

/// A container of a cloud that knows its devices.
protocol CloudContainer: ContainerStorage {
  /// Throws `APIError.retired` for a device that was removed. Remembers which chain of the wallet is its.
  mutating func admit(_ device: DeviceID, with chain: ChainID?) throws
}

/// What the removal of a device did.
struct Retirement: Sendable {
  /// How far the container has come, if that is news to other devices.
  var seq: UInt64?
}

/// A content as a cloud keeps it: the encoding as it was received, unread.
struct KeptContent: Sendable {
  enum Bytes: Sendable {
    case memory(Data)
    /// A file of this many bytes. Given to `putContent`, the file must be on the same file system, and is taken over.
    case file(URL, count: Int)
  }
  var hash: ContentHash
  /// Plain bytes.
  var length: Int
  var base: ContentHash?
  var bytes: Bytes
}

/// A device as the cloud knows it.
struct DeviceRecord: Hashable, Sendable {
  var identity: DeviceIdentity
  /// Nil if only its token is known: it registered after the backup that this cloud was restored from.
  var name: String?
  var createdMilliseconds: Int64
  var seenMilliseconds: Int64
}

/// A pairing code that can be used once.
struct Pairing: Hashable, Sendable {
  /// The SHA-256 of the code.
  var code: Data
  var app: AppID
  var player: PlayerID
  var container: ContainerID
  var expiresMilliseconds: Int64
}

/// The player has no room for a content.
struct OverQuota: Error {
  var shortage: QuotaShortage
}

/// A delta came whose base the container doesn't have.
struct MissingBase: Error {
  var base: ContentHash
}
#endif
