#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync

/// The cloud of a synced folder, as requested.
enum SyncLocation: Sendable {
  case server(URL, appKey: String, entry: SyncEntry)
  /// A folder that another program carries between the devices.
  case folder(URL)

  /// Returns what a person can do about an error with this cloud. With a shared folder, neither a key nor a code is to
  /// blame.
  func explained(_ error: any Error) -> any Error {
    guard case .folder = self else { return error }
    let failure: TransportFailure
    switch error {
    case let error as TransportFailure: failure = error
    case SyncError.transport(let error): failure = error
    default: return error
    }
    guard failure.kind == .unauthorized else { return error }
    return CommandFailure(
      .permission, failure.message,
      next: "if this is the folder that you mean, name a new --state folder to join what it contains")
  }
}

/// How a device without credentials becomes a player's.
enum SyncEntry: Hashable, Sendable {
  /// It registers, as a player's first device.
  case register
  /// With a code of another device of the player.
  case pairing(code: String)
  /// With the player's recovery code.
  case recovery(RecoveryCode)
}

/// The connection to a cloud, found or created.
struct SyncWay: Sendable {
  var transport: any Transport
  var container: ContainerID
  /// Counts what goes over the wire; nil if there is no wire.
  var traffic: TrafficCounter?
  /// With a server: the credentials of this device.
  var credentials: CloudCredentials?
  /// The recovery code in force, if this device has just come back by another one.
  var recoveryCode: RecoveryCode?
  /// Whether the cloud has nothing yet: this device has just registered its player, or made the folder a cloud.
  var isNew = false

  /// Opens the connection to `place`. Registers a device, joins a player or makes a folder a cloud if that hasn't been
  /// done yet. To a cloud that has nothing, the store has caught up: what is in it replaces nobody's saves, and needn't
  /// be judged there first.
  ///
  /// - Parameters:
  ///   - others: Folders that the shared one must not contain, nor be in, beside the state.
  /// - Throws: `CommandFailure` if the saves belong to another kind of cloud, or the shared folder and theirs contain
  ///   each other; the errors of the account or the folder.
  static func open(
    _ place: SyncLocation, apartFrom others: [URL], state: SyncState, store: Store
  ) async throws -> SyncWay {
    let way = try await found(place, apartFrom: others, state: state, store: store)
    if way.isNew {
      try store.write { transaction in
        var facts = try transaction.facts()
        facts.caughtUp = true
        try transaction.setFacts(facts)
      }
    }
    return way
  }

  private static func found(
    _ place: SyncLocation, apartFrom others: [URL], state: SyncState, store: Store
  ) async throws -> SyncWay {
    switch place {
    case .server(let url, let appKey, let entry):
      let isKnown = try state.credentials() != nil
      let (credentials, code) = try await credentials(url, appKey, entry, state, store)
      let renewal = CredentialsRenewal(appKey: appKey) { new, _ in try state.keep(new) }
      let http = HTTPTransport(credentials, renewal: renewal)
      return SyncWay(
        transport: http, container: credentials.container, traffic: http.traffic, credentials: credentials,
        recoveryCode: code, isNew: !isKnown && entry == .register)
    case .folder(let shared):
      try requireApart(shared, from: others + [state.url])
      guard try state.credentials() == nil else {
        throw CommandFailure(
          .data, "these saves are synced with a server",
          next: "name that server with --cloud instead of --folder, or a new --state folder to start over")
      }
      let (container, isNew) = try self.container(of: shared, for: store)
      let environment = FolderTransport.Environment(
        now: { Int64(Date().timeIntervalSince1970 * 1_000) }, sleep: { try await Task.sleep(for: $0) })
      let transport = FolderTransport(.plain(shared), container: container, environment: environment) { hash in
        try store.read { try $0.hasContent(hash) ? $0.encoded(hash, against: nil) : nil }
      }
      return SyncWay(transport: transport, container: container, isNew: isNew)
    }
  }

  // MARK: A server

  private static func credentials(
    _ url: URL, _ appKey: String, _ entry: SyncEntry, _ state: SyncState, _ store: Store
  ) async throws -> (CloudCredentials, RecoveryCode?) {
    if var credentials = try state.credentials() {
      guard try entry == .register || state.hasUsed(entry) else {
        throw CommandFailure(
          .data, "this folder already belongs to a player",
          next: "leave out --join or --recover, or name a new --state folder to join another player")
      }
      // A server may move; the token identifies the device.
      credentials.url = url
      return (credentials, nil)
    }
    // A new player might have nothing to do with the saves here.
    guard try entry != .register || store.read({ try $0.facts().container }) == nil else {
      throw CommandFailure(
        .data, "these saves were synced before, but the credentials of their player on a server are missing",
        next:
          """
          name the shared folder with --folder if they use one, join their player again with --join or --recover, \
          or name a new --state folder
          """)
    }
    // Also if it can't be read: it may be the only copy of a code that is in force.
    guard try !state.hasUnseenCodes() || entry != .register else {
      throw CommandFailure(
        .data, "this folder was to join a player with a recovery code, and may have done so",
        next: "run the command with --recover and the same code, or name a new --state folder for another player")
    }
    let account = HTTPAccount(url: url, appKey: appKey)
    let name = DeviceName.current
    let credentials: CloudCredentials
    var next: RecoveryCode?
    switch entry {
    case .register: credentials = try await account.register(name: name)
    case .pairing(let code): credentials = try await account.join(code: code, name: name)
    case .recovery(let code):
      let kept = try state.nextCode(after: code, at: url)
      do {
        credentials = try await account.recover(code, next: kept, name: name)
      } catch {
        guard error.code == .codeUnknown else { throw error }
        try state.forgetNextCode(after: code, at: url)
        throw CommandFailure(
          .permission, "the server knows no such recovery code",
          next: "a code that was used or replaced is void: type the one that was shown then")
      }
      try state.hasComeBack(by: code)
      next = kept
    }
    try state.keep(credentials)
    return (credentials, next)
  }

  // MARK: A folder

  /// Returns the container of a shared folder, and whether this device has just made it. A store that belongs to a
  /// container keeps it, whether the folder exists or not: the transport reports what is wrong with the folder.
  private static func container(of shared: URL, for store: Store) throws -> (ContainerID, isNew: Bool) {
    if let held = try store.read({ try $0.facts().container }) { return (held, false) }
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: shared.path, isDirectory: &isFolder), isFolder.boolValue else {
      throw CommandFailure(
        .noInput, "there is no folder \(shared.path)", next: "create it first; for the first device it may be empty")
    }
    var random = SystemRandomNumberGenerator()
    let fresh = ContainerID(using: &random)
    let container = try FolderPlace.plain(shared).container(making: fresh)
    return (container, container == fresh)
  }

  /// Requires folders that don't contain each other. Otherwise the cloud's own files would be synced as saves, or a
  /// store would be carried from device to device while it is written.
  private static func requireApart(_ shared: URL, from others: [URL]) throws {
    func parts(_ url: URL) -> [String] { url.resolvingSymlinksInPath().standardizedFileURL.pathComponents }
    for other in others {
      guard parts(other).starts(with: parts(shared)) || parts(shared).starts(with: parts(other)) else { continue }
      throw CommandFailure(
        .data, "the shared folder \(shared.path) and \(other.path) must not contain each other",
        next: "share a separate folder beside the saves")
    }
  }
}
#endif
