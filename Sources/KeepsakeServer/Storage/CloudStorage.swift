#if Cloud
import Foundation
import KeepsakeReplication

/// Stores everything of a cloud: containers and their contents, devices, pairing codes.
///
/// Every transaction works on one container, which nothing else changes meanwhile.
protocol CloudStorage: Sendable {
  associatedtype Container: CloudContainer

  /// Runs `body` in one transaction on a container, which is created if it doesn't exist; durable when this returns. If
  /// `body` throws, everything it did is undone.
  func transaction<Result: Sendable>(
    on container: ContainerID, _ body: @escaping @Sendable (inout Container) throws -> Result
  ) async throws -> Result

  /// Returns how far a container has come.
  func position(of container: ContainerID) async throws -> Cursor

  /// Returns the same for a listener, which may name its cursor.
  func state(of container: ContainerID, for cursor: Cursor?) async throws -> ContainerState

  func hasContent(_ hash: ContentHash, of container: ContainerID) async throws -> Bool
  /// Returns a content to send; nil if it isn't here.
  func content(_ hash: ContentHash, of container: ContainerID) async throws -> KeptContent?
  /// Stores a content; durable when this returns. If it is here already, the existing one stays.
  ///
  /// A damaged content is replaced only by a full frame, and the heads that need it are then announced again: the seq
  /// to publish to the listeners is returned.
  ///
  /// Throws `MissingBase` for a delta whose base the container lacks, and `OverQuota`.
  func putContent(_ content: KeptContent, of container: ContainerID, quota: Int64?) async throws -> UInt64?
  /// Returns how much room is lacking for a content of `bytes` bytes, after what nobody needs has been removed; nil if
  /// it fits, or replaces a damaged one.
  func shortage(for hash: ContentHash, of bytes: Int, in container: ContainerID, quota: Int64) async throws
    -> QuotaShortage?

  /// Records a device, or that it was here.
  func recordDevice(_ device: DeviceRecord) async throws
  func devices(of container: ContainerID) async throws -> [DeviceRecord]
  /// Returns which devices have each of these versions, or one that replaced it.
  func devices(of container: ContainerID, holding versions: [VersionID]) async throws -> [VersionID: Set<DeviceID>]

  /// Whether a device was removed, or everything of its player deleted. Its token is then refused, although its
  /// signature is valid.
  func isRetired(_ identity: DeviceIdentity) async throws -> Bool
  /// Removes a device, closes its wallet's chains, and voids its player's pairing code; nil if the container never had
  /// it. Repeating it changes nothing.
  func retire(_ device: DeviceID, of container: ContainerID, now: Int64) async throws -> Retirement?
  /// Deletes everything of a container, and refuses its devices forever.
  func delete(_ container: ContainerID, now: Int64) async throws
  /// Returns a page of everything that is kept of a container.
  func exported(_ place: PlayerExport.Position, of container: ContainerID) async throws -> PlayerExport.Page

  /// Stores a pairing code in place of any earlier one of the same container, until it is used or expires, or a device
  /// of the container is removed. Throws `APIError.retired` if the requesting device was removed, or everything of its
  /// player deleted.
  func putPairing(_ pairing: Pairing, for device: DeviceID, now: Int64) async throws
  /// Uses up a code and records the new device, both or neither; nil if this app has no such code, it has expired, or
  /// everything of its player was deleted.
  func join(_ code: Data, app: AppID, as device: DeviceID, name: String, now: Int64) async throws -> DeviceIdentity?

  func close() async throws
}

/// How far a container has come, and what a listener must know before it receives changes.
struct ContainerState: Sendable {
  var seq: UInt64
  /// The listener's cursor, if it isn't from this history.
  var unknown: Cursor?
}

/// A container of a cloud that knows its devices.
protocol CloudContainer: ContainerStorage {
  /// Throws `APIError.retired` for a removed device. Records which chain of the wallet belongs to the device.
  mutating func admit(_ device: DeviceID, with chain: ChainID?) throws
}

/// The result of removing a device.
struct Retirement: Sendable {
  /// How far the container has come, if other devices have to be notified.
  var seq: UInt64?
}

/// A content as a cloud stores it: the encoding as it was received, not decoded.
struct KeptContent: Sendable {
  enum Bytes: Sendable {
    case memory(Data)
    /// A file of this many bytes. If it is passed to `putContent`, it must be on the same file system, and is taken
    /// over.
    case file(URL, count: Int)
  }
  var hash: ContentHash
  /// The length in bytes, uncompressed.
  var length: Int
  var base: ContentHash?
  var bytes: Bytes
}

/// A device as the cloud knows it.
struct DeviceRecord: Hashable, Sendable {
  var identity: DeviceIdentity
  /// Nil if only the device's token is known: it registered after the backup that this cloud was restored from.
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

/// The container doesn't have the base of a delta.
struct MissingBase: Error {
  var base: ContentHash
}
#endif
