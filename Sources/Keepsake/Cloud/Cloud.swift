public import Foundation
import KeepsakePlatform
package import KeepsakeReplication
import KeepsakeStore
package import KeepsakeSync
import Synchronization

/// The address of a cloud: a server, or a shared folder.
public struct CloudAddress: Sendable {
  enum Kind: Sendable {
    case server(CloudServer)
    case folder(CloudFolder)
    /// For tests: a transport to their own cloud, with a name that distinguishes it from others.
    case transport(any Transport, ContainerID, name: String)
  }
  let kind: Kind

  /// A Keepsake server.
  ///
  /// - Parameters:
  ///   - url: The server's address.
  ///   - appKey: The key that allows this game to use the server.
  /// - Returns: The address.
  public static func server(_ url: URL, appKey: String) -> Self {
    Self(kind: .server(CloudServer(url: url, appKey: appKey)))
  }

  /// A folder that the player's devices share: in iCloud Drive or Dropbox, synchronized by Syncthing, on a memory stick
  /// or a network drive.
  ///
  /// ```swift
  /// game.cloud.connect(.folder(URL(fileURLWithPath: "/home/ada/Dropbox/Space")))
  /// ```
  ///
  /// Each game and player needs a separate folder, which must exist. There is no server, so there is no registration
  /// and no pairing code: every device that has the folder belongs to the player.
  ///
  /// - A save counts as `stored` when it is durable in the folder. Other devices get it when their copy of the folder
  ///   has it; they check about once a second.
  /// - Files may arrive in any order, late, twice or as "conflicted copies"; half a save is never shown. A new device
  ///   that gets the folder before its files treats it as empty, and its saves are later kept beside the others'.
  /// - While the folder is missing or has been emptied, the cloud is `unreachable`; another player's folder is
  ///   `refused`.
  /// - There is no bank: claims stay pending, a device can spend only what it earned itself, and a copied installation
  ///   can spend the same money twice.
  /// - Anyone who can write to the folder can change its contents. Checksums detect damage, not forgery.
  ///
  /// - Parameters:
  ///   - url: The folder.
  ///   - joining: Whether a device whose data belongs to another cloud leaves that cloud and joins this folder's data,
  ///     as with `Cloud.join`. Ask the player first.
  /// - Returns: The address.
  public static func folder(_ url: URL, joining: Bool = false) -> Self {
    Self(kind: .folder(CloudFolder(place: .url(url.standardizedFileURL), isJoining: joining)))
  }

  /// The game's container in iCloud, as the shared folder of all devices of one account.
  ///
  /// ```swift
  /// game.cloud.connect(.iCloudContainer("iCloud.com.example.space"))
  /// ```
  ///
  /// The game needs the capability iCloud Documents with that container. There is nothing for the player to choose: the
  /// account that is signed in to iCloud on the device is the player. What `folder(_:joining:)` says is true here, too,
  /// except:
  ///
  /// - The folder is created, and has no `keepsake.json`. Devices that begin before they see each other are all the
  ///   player's.
  /// - A save counts as `stored` when it is durable in the container on this device. iCloud uploads it when it likes,
  ///   and the device looks for changes every five seconds.
  /// - Without an account, or with iCloud turned off for the game, the cloud is `unreachable`. When the player signs in
  ///   to another account, it is `refused` if other devices have begun there, and `unreachable` if none has, until the
  ///   player is back or the game connects with `joining`.
  /// - Files that iCloud has removed from the device are asked for. Nothing waits for them on the game's thread.
  ///
  /// Played over a stand-in that behaves as Apple's documents say, and never run in iCloud itself: try it with your
  /// players' devices before you rely on it. On systems without iCloud the cloud is `unreachable`.
  ///
  /// - Parameters:
  ///   - identifier: The container's identifier ("iCloud.com.example.space"); nil for the app's first one.
  ///   - folder: The name of the folder in it, which is created: at most 100 letters (`a` to `z`, `A` to `Z`), digits,
  ///     `-`, `_`, and spaces between them. Any other is `refused`.
  ///   - joining: Whether a device whose data belongs to another account, folder or server joins this account's data.
  ///     Ask the player first.
  /// - Returns: The address.
  public static func iCloudContainer(
    _ identifier: String? = nil, folder: String = "Keepsake", joining: Bool = false
  ) -> Self {
    Self(kind: .folder(CloudFolder(place: .iCloud(container: identifier, folder: folder), isJoining: joining)))
  }

  package static func transport(_ transport: any Transport, container: ContainerID, name: String) -> Self {
    Self(kind: .transport(transport, container, name: name))
  }

  /// Whether both addresses lead to the same cloud in the same way.
  func isSame(as other: CloudAddress?) -> Bool {
    switch (kind, other?.kind) {
    case (.server(let left), .server(let right)): left == right
    case (.folder(let left), .folder(let right)): left == right
    case (.transport(_, let left, let leftName), .transport(_, let right, let rightName)):
      left == right && leftName == rightName
    default: false
    }
  }
}

/// A server's address and app key.
struct CloudServer: Sendable, Hashable {
  var url: URL
  var appKey: String
  /// The name of the shared container; nil for the game's own.
  var shared: String?
}

/// A folder's address.
struct CloudFolder: Sendable, Hashable {
  enum Place: Hashable {
    case url(URL)
    case iCloud(container: String?, folder: String)
  }
  var place: Place
  var isJoining: Bool
}

/// Synchronizes the game's data between all of a player's devices.
///
/// ```swift
/// game.cloud.connect(.server(url, appKey: key))    // returns immediately; everything works without it
/// let code = try await game.cloud.pairingCode()    // shown on this device
/// try await game.cloud.join(code)                  // typed on another device
/// ```
///
/// Every commit is queued and sent automatically. `GameData.changes` reports what other devices saved, and the next
/// `load` returns it; `delivery` decides when values and balances may change in a running game. Safe to use from any
/// thread.
public final class Cloud: Sendable {
  let state: CloudState
  private let core: GameCore
  private let preferences: Preferences
  let connection: CloudConnection
  /// What the cloud of a shared container follows; nil for a game's own cloud.
  private let game: Game?

  /// The game of a shared container.
  struct Game: Sendable {
    /// What the game's cloud is asked for.
    let state: CloudState
    /// The shared container's name.
    let name: String
  }

  init(
    core: GameCore, progress: ProgressStore, scores: HighScores, wallet: WalletStore, preferences: Preferences,
    following game: Game? = nil
  ) throws {
    (self.core, self.preferences, self.game) = (core, preferences, game)
    var status = CloudStatus(phase: .off)
    let facts = try core.store.read { try $0.facts() }
    // Held back by an earlier run.
    status.hasArrivals = facts.hasArrivals
    status.setBack = facts.setBackMark.map(CloudStatus.SetBack.init)
    status.isReadOnly = facts.isReadOnly
    state = CloudState(status, isEnabled: try core.isCloudEnabled()) { [weak core] in core?.events.statusDidChange() }
    let eventHandler = CloudEventHandler(
      core: core, deliveryBuffer: DeliveryBuffer(), progress: progress, scores: scores, wallet: wallet,
      preferences: preferences)
    let connection = CloudConnection(core: core, eventHandler: eventHandler, state: state)
    self.connection = connection
    core.cloud = connection
  }

  /// Connects to a cloud, and stays connected until `disconnect` or `close`. Returns immediately; `status` shows the
  /// result.
  ///
  /// The first connection registers this device as a new player; `join` makes it a device of another player. A store
  /// belongs to one cloud: another server refuses it, which `status` shows. If the credentials of a device are gone, as
  /// after it was set up from a backup that doesn't have them (`CredentialStorage`), it is refused as well until it has
  /// joined its player again: it never becomes a new one by itself.
  ///
  /// The cloud of a shared container follows the game's, and needs no call. With a folder it has a cloud of its own
  /// from then on: a folder that two games of a studio can both use, such as one of an app group. Any server's address
  /// has it follow the game again, whose server and key count.
  ///
  /// - Parameters:
  ///   - address: The cloud.
  ///   - deviceName: The name that the player's other devices show for this device; the platform's name if nil.
  public func connect(_ address: CloudAddress, deviceName: String? = nil) {
    if game != nil, case .server = address.kind {
      state.setDesired { $0.following = .game }
      return follow()
    }
    state.setDesired { desired in
      desired.following = .own
      desired.address = address
      desired.deviceName = deviceName ?? HostSystem.current.deviceName
    }
    reconcile()
  }

  /// Disconnects from the cloud. No data is lost; connecting to the same cloud again continues as the same player. The
  /// cloud of a shared container no longer follows the game's then, until it is connected, or opened again.
  public func disconnect() {
    state.setDesired { ($0.address, $0.following) = (nil, .nothing) }
    reconcile()
  }

  /// Whether the player wants sync. While false, nothing is sent or received; changes are queued.
  ///
  /// The setting is kept with the data across restarts. Changing it waits for the disk; if the disk fails, the setting
  /// applies until the data is closed, and an incident reports the failure. While false, calls that need the network
  /// throw `GameDataError` with `notConnected`. Shared data has a setting of its own, and while the game's is false,
  /// this is false as well.
  public var isEnabled: Bool {
    get { state.desired.isEnabled }
    set {
      if !newValue { state.setDesired { $0.isOwnEnabled = false } }
      core.keepCloudEnabled(newValue)
      if newValue { state.setDesired { $0.isOwnEnabled = true } }
      reconcile()
    }
  }

  /// Whether everything on this device is in the cloud, and if not, why. Never blocks.
  public var status: CloudStatus { state.status }

  /// Whether the cloud can be used now, and if not, why: the `status` for a program to branch on. Never blocks.
  public var availability: CloudAvailability { state.status.availability }

  /// The current status, then every change. A slow reader gets only the newest. Ends when the game's data is closed.
  public var statusUpdates: AsyncStream<CloudStatus> { state.updates() }

  /// Sends everything that is queued and fetches everything that is new.
  ///
  /// Returns when the cloud has stored everything that was saved, captured or set before the call, and the cloud's
  /// changes are on this device. A capture or a setting that can't be written to the disk isn't sent: an incident
  /// reports it.
  ///
  /// - Throws: `GameDataError` with `notConnected`, `unreachable` (retried automatically) or `refused`; `StoreError` if
  ///   the store can't be read or written; `CancellationError` if the task is cancelled, which doesn't stop the sync.
  public func sync() async throws {
    await waitForCommits()
    try await connection.sync()
  }

  /// Waits until everything that was captured and set is durable, or has failed.
  private func waitForCommits() async {
    // A commit that fails is reported by an incident, and doesn't stop the rest from being sent. If the store is
    // closed, the sync that follows throws.
    _ = try? await preferences.flush()
    _ = try? await core.store.submit { _, _ in }.value
  }

  /// Fetches everything new from the cloud and delivers it, regardless of `delivery`. For play that needs the newest
  /// state.
  ///
  /// ```swift
  /// try await game.cloud.fetchChanges(within: .seconds(10))    // throws: no ranked match
  /// ```
  ///
  /// Returns when the cloud has responded after this call and its changes are visible to the game. Doesn't wait for
  /// queued changes to be sent.
  ///
  /// - Parameter limit: How long to wait.
  /// - Throws: `GameDataError` with `notConnected`, `unreachable`, `refused`, or `timedOut` after `limit`;
  ///   `availability` has the details. `StoreError` if the store can't be read or written, also as `deliver()`;
  ///   `CancellationError` if the task is cancelled. The fetch continues in the background.
  public func fetchChanges(within limit: Duration) async throws {
    try await connection.core.fetchChanges(within: limit)
    _ = try connection.deliver()
  }

  /// Requests a code that another device can use to join this player. It is valid once, for some minutes.
  ///
  /// Costs one round trip, and another one if this device still has to be registered.
  ///
  /// - Returns: The code, for the player to type on the other device.
  /// - Throws: `GameDataError` with `notConnected`, `unreachable` or `refused`; with `misuse` if the cloud is a folder,
  ///   which the other device can use directly; `StoreError` if this device's credentials can't be read or stored.
  public func pairingCode() async throws -> String { try await connection.pairingCode() }

  /// Joins this device to the player whose device showed the code.
  ///
  /// This device's data is joined with that player's data: values by their merge rules, saved games beside the
  /// player's. Money that this device holds at its own player's bank (as the last device, all of it) follows as soon as
  /// that bank has settled it; until then it is in `Balance.pending`. Goods that the bank has counted stay there.
  ///
  /// - Parameter code: A code from `pairingCode()`.
  /// - Throws: `GameDataError` with `notConnected`, `unreachable`, `refused` for a wrong or expired code, `misuse` if
  ///   the cloud is a folder, or `notDownloaded` if some saves exist only in the cloud that this device would leave;
  ///   `StoreError` if the store can't be read, or this device's credentials can't be stored.
  public func join(_ code: String) async throws { try await connection.join(code) }

  private func reconcile() {
    let connection = connection
    Task(executorPreference: connection.executor) { await connection.reconcile() }
    state.followers.follow()
  }

  /// Takes over what the game's cloud is asked for, if this is the cloud of a shared container.
  func follow() {
    guard let game else { return }
    state.setDesired { $0.follow(game.state.desired, as: game.name) }
    reconcile()
  }

  /// Ends the connection in the background.
  func abandon() { if state.close() { reconcile() } }

  /// Ends the connection within a time limit.
  func close(within limit: Duration) throws {
    guard state.close() else { return state.finish() }
    let done = Latch()
    let connection = connection
    Task(executorPreference: connection.executor) {
      await connection.reconcile()
      done.open()
    }
    guard done.wait(within: limit) else {
      throw StoreError(.timedOut, "the cloud's last request did not end within \(limit)")
    }
  }
}

/// The connection's desired state, which the game sets, and its status, which the connection reports. Protected by
/// locks, because neither side may wait.
final class CloudState: Sendable {
  struct Desired: Sendable {
    var address: CloudAddress?
    var deviceName = ""
    var isOwnEnabled = true
    var isClosed = false
    var wasConnected = false
    /// Of the cloud of a shared container: whether the game's is enabled, and what it follows.
    var isGameEnabled = true
    var following = Following.game

    var isEnabled: Bool { isOwnEnabled && isGameEnabled }
  }
  /// The clouds of the game's shared containers.
  let followers = CloudFollowers()
  private let desiredState: Mutex<Desired>
  private let current: Mutex<CloudStatus>
  private let changes = Broadcast<CloudStatus>(keepingNewest: 1)
  private let changed: @Sendable () -> Void

  init(_ status: CloudStatus, isEnabled: Bool, changed: @escaping @Sendable () -> Void) {
    desiredState = Mutex(Desired(isOwnEnabled: isEnabled))
    current = Mutex(status)
    self.changed = changed
  }

  var desired: Desired { desiredState.withLock { $0 } }
  var status: CloudStatus { current.withLock { $0 } }

  func setDesired(_ change: (inout Desired) -> Void) {
    desiredState.withLock { desired in
      change(&desired)
      if desired.address != nil { desired.wasConnected = true }
    }
  }

  /// Requests the end of the connection. Returns false if no connection was ever requested.
  func close() -> Bool {
    desiredState.withLock { desired in
      desired.isClosed = true
      return desired.wasConnected
    }
  }

  /// Changes the status while holding the lock, so that neither of two concurrent changes is lost, and readers get the
  /// newest last.
  func change(_ body: (inout CloudStatus) -> Void) {
    let isNew = current.withLock { current in
      let before = current
      body(&current)
      guard current != before else { return false }
      changes.send(current)
      return true
    }
    if isNew { changed() }
  }

  /// Records that everything held back has been delivered.
  func delivered() { change { $0.hasArrivals = false } }

  /// Sets the phase and what depends on it, and keeps the rest.
  func post(_ phase: CloudStatus.Phase, reaching code: GameDataError.Code? = nil) {
    change { status in
      status.phase = phase
      status.availability = CloudAvailability(phase, reaching: code)
      status.isListening = false
      status.transfers = []
    }
  }

  func updates() -> AsyncStream<CloudStatus> { current.withLock { changes.stream(beginningWith: $0) } }

  func finish() { changes.finish() }
}
