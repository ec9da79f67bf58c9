public import Foundation
package import KeepsakeReplication
import KeepsakeStore
package import KeepsakeSync
import Synchronization

/// Where a player's data is kept beside this device.
public struct CloudAddress: Sendable {
  enum Kind: Sendable {
    case server(CloudServer)
    case folder(CloudFolder)
    /// For tests: a way to a cloud of their own, under a name that tells it from others.
    case transport(any Transport, ContainerID, name: String)
  }
  let kind: Kind

  /// A Keepsake server, and the key with which this game may use it.
  public static func server(_ url: URL, appKey: String) -> Self {
    Self(kind: .server(CloudServer(url: url, appKey: appKey)))
  }

  /// A folder that this device shares with the player's others: in iCloud Drive or Dropbox, kept by Syncthing, on a memory stick or a
  /// network disk. Each game and player needs one of their own; it has to be there already.
  ///
  ///     game.cloud.connect(.folder(URL(fileURLWithPath: "/home/ada/Dropbox/Space")))
  ///
  /// There is no server, so nothing to register and no pairing code: every device that is given the folder is one of the player's.
  ///
  /// - What is `stored` lies in the folder durably. Other devices have it when the folder has come there, and ask for it about once a second.
  /// - Files may arrive in any order, late, twice or as "conflicted copies", and half of a save is never shown. Until they have arrived
  ///   nobody can know of them: a new install that is given the folder before its files takes it for empty, and its saves stand beside
  ///   the others' later.
  /// - A folder that isn't there, or that was emptied, is waited for (`unreachable`), and another player's is `refused`.
  /// - It has no bank: claims stay pending, only what was earned on this device can be spent here, and an install that was copied can spend
  ///   the same money twice.
  /// - Whoever can write the folder can change what is in it. Its checksums find damage, not forgery.
  ///
  /// - Parameter joining: Whether a device whose data belongs to another folder or cloud gives that up and joins what this folder has, as
  ///   with `Cloud.join`. Only for a player who was asked.
  public static func folder(_ url: URL, joining: Bool = false) -> Self {
    Self(kind: .folder(CloudFolder(url: url.standardizedFileURL, isJoining: joining)))
  }

  package static func transport(_ transport: any Transport, container: ContainerID, name: String) -> Self {
    Self(kind: .transport(transport, container, name: name))
  }

  /// Whether both lead to the same cloud in the same way.
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

/// A server as a game names it.
struct CloudServer: Sendable, Hashable {
  var url: URL
  var appKey: String
}

/// A folder as a game names it.
struct CloudFolder: Sendable, Hashable {
  var url: URL
  var isJoining: Bool
}

/// The cloud: the same data on all of a player's devices.
///
///     game.cloud.connect(.server(url, appKey: key))     // returns at once; everything works without it
///     let code = try await game.cloud.pairingCode()     // shown on this device
///     try await game.cloud.join(code)                   // typed on another
///
/// What is saved is queued with the save itself and sent by itself. What other devices saved is told by `GameData.changes` and seen by the
/// next `load`; `delivery` says when values and balances may change under a running game. Safe to use from any thread.
public final class Cloud: Sendable {
  let state: CloudState
  private let core: GameCore
  let connection: CloudConnection

  init(core: GameCore, progress: ProgressStore, scores: HighScores, wallet: WalletStore, preferences: Preferences) throws {
    self.core = core
    var status = CloudStatus(phase: .off)
    // Of an earlier run that kept it back.
    status.hasArrivals = try core.store.read { try $0.facts().hasArrivals }
    state = CloudState(status, isEnabled: try core.isCloudEnabled()) { [weak core] in core?.statusTicks.send(()) }
    let eventHandler = CloudEventHandler(
      core: core, deliveryBuffer: DeliveryBuffer(), progress: progress, scores: scores, wallet: wallet, preferences: preferences)
    let connection = CloudConnection(core: core, eventHandler: eventHandler, state: state)
    self.connection = connection
    core.onCloud { [state] hooks in
      hooks.refresh = { [weak connection] in try await connection?.fetchChanges() }
      hooks.download = { [weak connection] slot in
        guard let connection else { throw GameDataError.notConnected }
        try await connection.download(slot)
      }
      hooks.largestDownload = { [weak connection] in connection?.deliveryBuffer.downloads.largest }
      hooks.devices = { [weak connection] versions in
        guard let connection else { throw GameDataError.notConnected }
        return try await connection.devices(having: versions)
      }
      hooks.status = { state.status }
      hooks.deliver = { [weak connection] in _ = try connection?.deliver() }
    }
  }

  /// Begins to talk to the cloud, and goes on until `disconnect` or the end. Returns at once.
  ///
  /// A device's data belongs to one cloud: another server refuses what is bound to the first, which `status` tells.
  ///
  /// The first time, this device becomes a new player of its own; `join` brings it to another's. What the cloud says about it
  /// shows in `status`.
  ///
  /// - Parameter deviceName: What other devices and support may call this one; the platform's name if nil.
  public func connect(_ address: CloudAddress, deviceName: String? = nil) {
    state.setDesired { desired in
      desired.address = address
      desired.deviceName = deviceName ?? CloudConnection.platformName
    }
    reconcile()
  }

  /// Stops talking to the cloud. Nothing here or there is lost; connecting to the same cloud again is the same player.
  public func disconnect() {
    state.setDesired { $0.address = nil }
    reconcile()
  }

  /// The player's own switch. While it is off nothing goes over the network, and nothing is lost: it is sent later.
  ///
  /// It is kept with the data, and stands as it was left when they are opened again. Setting it waits for the disk, if it changes anything; where that fails it
  /// holds until the data are closed, and an incident says so. While it is off, calls that need the network throw `GameDataError.Code.notConnected`.
  public var isEnabled: Bool {
    get { state.desired.isEnabled }
    set {
      if !newValue { state.setDesired { $0.isEnabled = false } }
      core.keepCloudEnabled(newValue)
      if newValue { state.setDesired { $0.isEnabled = true } }
      reconcile()
    }
  }

  /// Whether what is here is in the cloud too, and if not, why not. Never waits.
  public var status: CloudStatus { state.status }

  /// Whether the cloud can be used now, and if not, why not: what `status` has, for a program to branch on. Never waits.
  public var availability: CloudAvailability { state.status.availability }

  /// The status now, and each time it changes; who is slow gets the newest. Ends when the game's data is closed.
  public var statusUpdates: AsyncStream<CloudStatus> { state.updates() }

  /// Sends everything and hears everything: returns when all that was saved is certain in the cloud and its answer is here.
  ///
  /// Throws `GameDataError`: `notConnected`, `unreachable` (it goes on trying by itself) or `refused`.
  public func sync() async throws { try await connection.sync() }

  /// Hears everything: returns when the cloud has answered after this call, and all that it has is here and shown, whatever `delivery` says.
  /// For play that needs the newest.
  ///
  ///     try await game.cloud.fetchChanges(within: .seconds(10))     // no answer, no ranked match
  ///
  /// What waits to be sent isn't waited for. Throws `GameDataError`: `notConnected`, `unreachable`, `refused`, or `timedOut` after `limit`;
  /// `availability` says more. What was asked for goes on by itself.
  public func fetchChanges(within limit: Duration) async throws {
    try await connection.core.fetchChanges(within: limit)
    _ = try connection.deliver()
  }

  /// A code for another device of this player, to be typed there within minutes; it works once.
  ///
  /// Throws `GameDataError.misuse` where the cloud is a folder: the other device is given the same folder instead.
  public func pairingCode() async throws -> String { try await connection.pairingCode() }

  /// Makes this device one of the player whose device showed the code. What is kept here joins what that player has: values
  /// by their rules, saved games beside theirs.
  ///
  /// Money that this device has already settled with the bank of its own player stays there.
  public func join(_ code: String) async throws { try await connection.join(code) }

  private func reconcile() {
    let connection = connection
    Task(executorPreference: connection.executor) { await connection.reconcile() }
  }

  /// Ends everything some time later.
  func abandon() { if state.close() { reconcile() } }

  /// Ends everything, within `limit`.
  func close(within limit: Duration) throws {
    guard state.close() else { return state.finish() }
    let done = DispatchSemaphore(value: 0)
    let connection = connection
    Task(executorPreference: connection.executor) {
      await connection.reconcile()
      done.signal()
    }
    guard done.wait(timeout: .now() + limit.interval) == .success else {
      throw StoreError(.timedOut, "the cloud's last request did not end within \(limit)")
    }
  }
}

/// What the game wants of the cloud, and what it is told: behind locks, because neither may wait.
final class CloudState: Sendable {
  struct Desired: Sendable {
    var address: CloudAddress?
    var deviceName = ""
    var isEnabled = true
    var isClosed = false
    var wasConnected = false
  }
  private let desiredState: Mutex<Desired>
  private let current: Mutex<CloudStatus>
  private let changes = Broadcast<CloudStatus>(keepingNewest: 1)
  private let changed: @Sendable () -> Void

  init(_ status: CloudStatus, isEnabled: Bool, changed: @escaping @Sendable () -> Void) {
    desiredState = Mutex(Desired(isEnabled: isEnabled))
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

  /// Wants the end; false if nothing ever began.
  func close() -> Bool {
    desiredState.withLock { desired in
      desired.isClosed = true
      return desired.wasConnected
    }
  }

  /// Makes the status another one, from what it is by now. Under the lock, so that neither of two changes at once is lost, and who reads
  /// gets the newest last.
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

  /// What was kept back is shown.
  func delivered() { change { $0.hasArrivals = false } }

  /// Another phase, and the rest as it was.
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
