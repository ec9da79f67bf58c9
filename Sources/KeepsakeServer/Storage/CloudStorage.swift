#if Cloud
import Foundation
import KeepsakeReplication
import Logging
import ServiceLifecycle

/// Stores everything of a cloud: containers and their contents, devices, the codes with which others join.
///
/// What changes a container is a decision over what was loaded of it (``decide(on:reading:work:_:)``).
protocol CloudStorage: DecidingStorage, TokenStorage {
  var logger: Logger { get }

  /// Returns the container's seq, as far as it is known; it may have grown since. Seldom asks the database.
  func newestSeq(of container: ContainerID) async throws -> UInt64

  func hasContent(_ hash: ContentHash, of container: ContainerID) async throws -> Bool
  /// Returns a content to send; nil if it isn't here.
  func content(_ hash: ContentHash, of container: ContainerID) async throws -> KeptContent?
  /// Takes over a file under this name, which must be new; durable when this returns. Until a content with this name is
  /// committed, nothing needs it.
  func adopt(_ file: URL, as name: String, of container: ContainerID) async throws
  /// Removes what was taken over under this name.
  func discard(_ name: String, of container: ContainerID) async throws

  /// Records a device, or that it was here.
  func recordDevice(_ device: DeviceRecord) async throws
  func devices(of container: ContainerID) async throws -> [DeviceRecord]

  /// Whether a device was removed, or everything of its player deleted. Its token is then refused, although its
  /// signature is valid.
  func isRetired(_ identity: DeviceIdentity) async throws -> Bool
  /// Returns the ban that refuses a device for now: that of its player, or for a device in a shared container, that of
  /// the player of the game to which it belongs. Nil for none. Doesn't ask the database.
  func ban(of identity: DeviceIdentity) -> Ban?
  /// Deletes everything of a container, and refuses its devices forever. What remains is a hash of the container's id,
  /// and which receipts were paid, not to whom. With it goes what the player has in shared containers that nobody else
  /// has; `SharedLeft` is thrown while the player has devices in others.
  @discardableResult
  func delete(_ container: ContainerID, now: Int64) async throws -> Deletion
  /// Returns a page of everything that is kept of a container.
  func exported(_ place: PlayerExport.Position, of container: ContainerID) async throws -> PlayerExport.Page

  /// Returns where a player is kept; nil for a player without any device.
  func place(of player: PlayerID) async throws -> PlayerPlace?

  /// The epoch that every bank has to reach (``BankRules/epoch``).
  var bankEpoch: UInt64 { get }
  /// Begins a new epoch of all banks, if the present one is `known`.
  ///
  /// - Returns: The epoch; nil if another one has begun meanwhile.
  func beginEpoch(after known: UInt64, now: Int64) async throws -> UInt64?
  /// Returns a page of the banks that wait for devices since they were set back.
  ///
  /// - Parameters:
  ///   - container: Where the page before ended; nil for the first one.
  ///   - epoch: The epoch that every bank has to reach.
  func frozenBanks(after container: ContainerID?, epoch: UInt64) async throws -> FrozenBanks

  /// Stores a pairing code in place of any earlier one of the same container, until it is used or expires, or a device
  /// of the container is removed. Throws `APIError.retired` if the requesting device was removed, or everything of its
  /// player deleted.
  func putPairing(_ pairing: Pairing, for device: DeviceID, now: Int64) async throws
  /// Uses up a code and records the new device, both or neither; nil if there is no such code for this right, it has
  /// expired, or everything of its player was deleted.
  func join(
    _ code: Data, by right: EntryRight, as device: DeviceID, name: String, now: Int64
  ) async throws -> DeviceIdentity?

  /// Returns what is known of a container's recovery code, and how many devices its player has.
  func recovery(of container: ContainerID) async throws -> RecoveryFacts
  /// Stores a recovery code in place of any earlier one of the same container, until it is used, or another device
  /// removes the one that made it. Throws `APIError.retired` as `putPairing`.
  ///
  /// - Parameter scope: In what it is valid (``EntryRight/scope``).
  func putRecovery(_ code: ContentHash, by identity: DeviceIdentity, scope: AppID, now: Int64) async throws
  /// Uses up a recovery code, records the new device, and puts the next code in its place, all or nothing; nil if there
  /// is no such code. The same request again returns the same device.
  ///
  /// - Parameter mayRecover: Whether a code of this app, or of this shared container, counts; `APIError.otherAppsCode`
  ///   is thrown otherwise.
  func recover(
    _ recovery: Recovery, as device: DeviceID, now: Int64, mayRecover: @escaping @Sendable (AppID) -> Bool
  ) async throws -> DeviceIdentity?

  /// Returns the identities that lead to a container's player, the oldest first.
  func identities(of container: ContainerID) async throws -> [LinkedIdentity]
  /// Has an identity lead to a device's player, unless it leads to another one. Throws `APIError.retired` as
  /// `putPairing`.
  func link(_ identity: VerifiedIdentity, to device: DeviceIdentity, now: Int64) async throws -> IdentityLink
  /// Records a new device of the player to whom an identity leads, for a device of another player. The same request
  /// again returns the same device, until another device signs in with the identity.
  ///
  /// - Parameters:
  ///   - device: The one that asks. It stays as it is.
  ///   - new: What the new one is called, and its id.
  func signIn(
    with identity: VerifiedIdentity, by device: DeviceIdentity, as new: NewDevice, now: Int64
  ) async throws -> IdentitySignIn
  /// Has an identity lead nowhere; false if it doesn't lead to this device's player.
  func unlink(_ identity: ContentHash, by device: DeviceIdentity) async throws -> Bool

  /// Records a new device of a shared container: of the one that the parent's player has, or of a new one.
  ///
  /// - Parameter new: The device, with the player and container if they are new.
  /// - Returns: The device as it was recorded.
  /// - Throws: `APIError.retired` if the parent's device was removed.
  func registerShared(
    _ new: DeviceIdentity, named name: String, by right: EntryRight, now: Int64
  ) async throws -> DeviceIdentity
  /// Says to other servers that a device of a game is being removed, or everything of its player deleted: it gets
  /// nothing in shared containers from now on, for a minute.
  func beginLeaving(_ container: ContainerID, _ device: DeviceID?, now: Int64) async throws
  /// Returns the devices in shared containers that belong to a device of a game, or to all of a player's in the game.
  func sharedDevices(of parent: ContainerID, _ device: DeviceID?) async throws -> [SharedDevice]
  /// Whether a container is a shared one, whatever the registry of apps says.
  func isShared(_ container: ContainerID) async throws -> Bool
  /// Returns the shared containers that a player has in a game, also those that were left for another one.
  func sharedContainers(of parent: ContainerID) async throws -> [SharedContainer]

  /// Returns a page of the containers, with those among them that are due for pruning.
  ///
  /// - Parameter place: Where the page before ended; nil for the first one.
  func containersToPrune(after place: PrunablePage.Place?, now: Int64, limit: Int) async throws -> PrunablePage
  /// Has the turn to look for these, so that no other server does for so long; false if another one has it.
  func claimPruning(seconds: Int) async throws -> Bool

  /// Makes a transaction that changes nothing: returns when its turn has come.
  func probe() async throws
  /// Has `body` called after each group of commits.
  func observeCommits(_ body: @escaping CommitObserver)
  /// How many transactions wait for their turn.
  var waitingCommits: Int { get }
  /// Returns what learns of what other servers do with the same database, as long as it runs; nil if there can't be
  /// any.
  func watching(_ events: EventHub, heartbeatSeconds: Int) -> (any Service)?

  func close() async throws
}

extension CloudStorage {
  func beginLeaving(_ container: ContainerID, _ device: DeviceID?, now: Int64) async throws {}
  func claimPruning(seconds: Int) async throws -> Bool { true }
  func watching(_ events: EventHub, heartbeatSeconds: Int) -> (any Service)? { nil }
}

/// Takes how many commits a group had, how long it took, and whether it failed as a whole.
typealias CommitObserver = @Sendable (_ commits: Int, _ nanoseconds: Int64, _ failed: Bool) -> Void

/// Loads what decisions read, and commits what they change.
protocol DecidingStorage: Sendable {
  /// Milliseconds since 1970.
  var clock: @Sendable () -> Int64 { get }

  /// Loads what a decision reads, all of it as of one moment, in one round trip. Waits for no commit.
  func load(_ reads: ReadSet, of container: ContainerID) async throws -> Snapshot
  /// Returns what is remembered of a container among others; nil if loading costs less.
  func remembered(of container: ContainerID) async throws -> RememberedContainers?
  /// Commits what a decision changes, all of it or nothing, in one round trip; durable when this returns.
  ///
  /// - Parameters:
  ///   - revision: That of the snapshot which the decision rests on.
  ///   - leaving: A device that the decision removes from a shared container. If no other device of the same player of
  ///     a game is in it, that player's next device gets another container: a device that somebody else has removed
  ///     would be back at once.
  /// - Returns: False, with nothing changed, if the container isn't at that revision any more, or if what the decision
  ///   takes as given isn't so.
  func commit(
    _ writes: WriteSet, of container: ContainerID, ifAt revision: UInt64, leaving: DeviceID?
  ) async throws -> Bool
}

extension DecidingStorage {
  func remembered(of container: ContainerID) async throws -> RememberedContainers? { nil }
}

/// How far a container has come, and what a listener must know before it receives changes.
struct ContainerState: Sendable {
  var seq: UInt64
  /// The listener's cursor, if it isn't from this history.
  var unknown: Cursor?
}

/// Where a player is kept.
struct PlayerPlace: Hashable, Sendable {
  var container: ContainerID
  var app: AppID
}

/// A page of banks that wait.
struct FrozenBanks: Sendable {
  var containers: [ContainerID]
  /// How many banks of the page couldn't be read.
  var unreadable: Int
  /// Where the next page begins; nil after the last one.
  var next: ContainerID?
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
    /// Of a content that was found. One is never put so.
    case parts(ContentParts)
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
  /// Set if its store went back to an older state. Not written with the rest.
  var setBack: DeviceSetBacks.Mark?
}

/// A pairing code that can be used once.
struct Pairing: Hashable, Sendable {
  /// The SHA-256 of the code.
  var code: Data
  /// In what it is valid (``EntryRight/scope``).
  var scope: AppID
  var player: PlayerID
  var container: ContainerID
  var expiresMilliseconds: Int64
}

/// The use of a recovery code.
struct Recovery: Hashable, Sendable {
  var code: ContentHash
  /// The code that takes its place.
  var next: ContentHash
  /// Of the new device.
  var right: EntryRight
  var name: String
}

/// By what right a device becomes a player's.
struct EntryRight: Hashable, Sendable {
  /// What its token gets: the app, or the right to a shared container (``SharedGrant/id``).
  var app: AppID
  /// In what its codes are valid: the app, or the shared container.
  var scope: AppID
  /// For a shared container, the device of the game itself.
  var parent: DeviceIdentity?

  init(_ app: AppID) { (self.app, scope) = (app, app) }

  init(_ grant: SharedGrant, of parent: DeviceIdentity) {
    (app, scope, self.parent) = (grant.id, grant.share, parent)
  }
}

/// What was deleted with a container.
struct Deletion: Hashable, Sendable {
  /// Whether the files of its contents are gone, too.
  var areFilesGone: Bool
  /// Shared containers that nobody else has.
  var shared: [ContainerID]
}

/// Devices in shared containers have to be removed before those to which they belong.
struct SharedLeft: Error {}

/// A device in a shared container.
struct SharedDevice: Hashable, Sendable {
  var container: ContainerID
  var device: DeviceID
}

/// A shared container that a player has in a game.
struct SharedContainer: Hashable, Sendable {
  var share: AppID
  var container: ContainerID
  var player: PlayerID
  /// Whether no other player of a game has it, or has a device in it.
  var isAlone: Bool
}

/// A player of a game who has a shared container.
struct SharedParent: Hashable, Sendable {
  var container: ContainerID
  /// Nil if none of the player's devices is left.
  var player: PlayerID?
  var app: AppID?
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
