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
  ///
  /// - Parameter rules: Those of the container's bank.
  func retire(_ device: DeviceID, of container: ContainerID, rules: BankRules, now: Int64) async throws -> Retirement?
  /// Deletes everything of a container, and refuses its devices forever. What remains is which receipts were paid, and
  /// not to whom.
  func delete(_ container: ContainerID, now: Int64) async throws
  /// Returns a page of everything that is kept of a container.
  func exported(_ place: PlayerExport.Position, of container: ContainerID) async throws -> PlayerExport.Page

  /// Returns where a player is kept; nil for a player without any device.
  func place(of player: PlayerID) async throws -> PlayerPlace?
  /// Returns what the bank of a container has.
  ///
  /// - Parameters:
  ///   - goodsAfter: The number of the change after which goods are listed.
  ///   - ordersAfter: The number after which orders are listed; nil for the newest.
  func account(of container: ContainerID, goodsAfter: UInt64, ordersAfter: UInt64?) async throws -> BankAccount

  /// The epoch that every bank has to reach (``BankRules/epoch``).
  var bankEpoch: UInt64 { get }
  /// If an offer proves that its bank was set back to a backup and nobody has said so, begins a new epoch of all banks.
  ///
  /// - Parameter rules: Those of the container's bank.
  func noticeRestore(by offer: WalletOffer, of container: ContainerID, rules: BankRules) async throws
  /// Ends the wait of a bank that was set back for devices that haven't shown what they were granted.
  ///
  /// - Returns: The seq to publish to the listeners; nil if the bank didn't wait.
  func releaseBank(of container: ContainerID, rules: BankRules) async throws -> UInt64?
  /// The same for a page of all banks.
  ///
  /// - Parameter container: Where the page before ended; nil for the first one.
  func releaseBanks(after container: ContainerID?, rules: BankRules) async throws -> ReleasedBanks

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
  /// Does the same for a device that leaves, unless the chain has left already: the bank's answer is then always the
  /// same, and its money isn't this player's any more. So it doesn't matter whether the device was removed meanwhile.
  mutating func admit(_ device: DeviceID, leavingOn chain: ChainID) throws
  /// Marks a receipt as paid to this container's player, unless it was paid to another one.
  ///
  /// - Returns: Whether it is paid to this one, by now or before.
  mutating func takeReceipt(_ receipt: ContentHash, of app: AppID, for operation: OperationID) throws -> Bool
}

/// Where a player is kept.
struct PlayerPlace: Hashable, Sendable {
  var container: ContainerID
  var app: AppID
}

/// What became of a page of banks.
struct ReleasedBanks: Sendable {
  /// Those that waited, each with the seq to publish to its listeners.
  var seqs: [ContainerID: UInt64]
  /// How many couldn't be read.
  var unreadable: Int
  /// Where the next page begins; nil after the last one.
  var next: ContainerID?
}

/// What a player's bank has, for the game's own servers.
struct BankAccount: Sendable, Encodable {
  /// As the player's devices show them: without what is owed and what spends wait for.
  var balances: [String: Int64]
  var owed: [String: Int64]
  /// How many the player has of each good, in the order of their last changes.
  var goods: [String: Int64]
  /// The number of the last change among these; more may follow it.
  var goodsNumber: UInt64
  var orders: [NumberedOrder]
  /// The number of the newest order.
  var orderNumber: UInt64
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
