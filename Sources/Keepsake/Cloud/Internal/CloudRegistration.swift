import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync

/// This device's identity at its cloud: registers the device once, joins it to a player, and stores its credentials.
///
/// Runs on its connection's executor, so that a call from there doesn't have to wait for a thread.
actor CloudRegistration {
  private nonisolated let executor: QueueExecutor
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let file: CloudFile
  private let former: FormerClouds
  private let recovery: RecoveryFile
  private let store: GameStore
  /// The game to which this shared data belongs; nil for a game's own data.
  private let game: GameReference?
  /// What a server registered and couldn't be stored: stored at the next attempt, or each would register one more
  /// player.
  private var unstored: (server: CloudServer, credentials: CloudCredentials)?
  /// The device that asks in place of this one, while there is no file to keep it in.
  private var unstoredStandIn: CloudCredentials?
  /// The attempt to register that is in progress, shared by all callers that wait for it.
  private var underWay: Task<CloudCredentials, any Error>?

  init(of core: GameCore, executor: QueueExecutor) {
    let (folder, base) = (core.store.url, core.store.base)
    file = CloudFile(in: folder, of: base, core.credentials)
    former = FormerClouds(in: folder, of: base, core.credentials)
    recovery = RecoveryFile(in: folder, of: base, core.credentials)
    (store, game) = (core.store, core.game)
    self.executor = executor
  }

  /// Moves all secrets into the credential store, if they belong there: also those after one that can't be moved.
  ///
  /// - Throws: The first error.
  func moveSecrets() throws {
    var failure: (any Error)?
    for move in [file.move, former.move, recovery.move] {
      do { try move() } catch { failure = failure ?? error }
    }
    if let failure { throw failure }
  }

  /// Returns the stored credentials of this device. A server may move, and its address may be written in several ways,
  /// so the address isn't compared: the token identifies the device, and is never given up for a new one.
  func known(at server: CloudServer) throws -> CloudFile.Contents? {
    guard var known = try file.read() else { return nil }
    known.credentials.url = server.url
    return known
  }

  /// Returns the credentials; registers this device first if needed. Tries once.
  func register(at server: CloudServer, name: String) async throws -> CloudCredentials {
    if let known = try known(at: server), try await !hasOtherParent(at: server) { return known.credentials }
    // In a shared container, the game's device is what leads to the player.
    guard try server.shared != nil || !hasLostCredentials() else { throw Self.lostCredentials }
    if let underWay { return try await underWay.value }
    let task = Task {
      do {
        if server.shared != nil { return try await self.share(at: server, name: name) }
        return try self.keep(try await self.newPlayer(at: server, name: name))
      } catch {
        throw GameDataError.translated(error)
      }
    }
    underWay = task
    defer { underWay = nil }
    return try await task.value
  }

  /// Whether this device belongs to a player, and has no credentials for that player's cloud any more. It isn't
  /// registered again by itself then: it would be another player, with the data of this one.
  func hasLostCredentials() throws -> Bool {
    switch try file.state() {
    case .known: false
    case .lost: true
    case .none: try store.read { try $0.facts().container } != nil
    }
  }

  static let lostCredentials = GameDataError(
    .refused,
    """
    this device has no credentials for the player to whom its data belongs, as after it was set up from a backup: it \
    keeps its data, and syncs again once it has joined the player, with a pairing code of another device, a recovery \
    code or an identity
    """)

  // MARK: Shared containers

  /// Returns how this device asks for a container; and for a shared one, the game's own device, which is registered
  /// first if needed.
  private func account(at server: CloudServer) async throws -> (account: HTTPAccount, parent: DeviceID?) {
    guard let name = server.shared else { return (HTTPAccount(url: server.url, appKey: server.appKey), nil) }
    guard let game else { throw GameDataError.notConnected }
    var parent = try await game.credentials()
    parent.url = server.url
    return (HTTPAccount(shared: name, parent: parent), parent.device)
  }

  /// Returns the game's own device, as far as it is registered; nil for a game's own data.
  private func parent(at server: CloudServer) async throws -> DeviceID? {
    guard server.shared != nil else { return nil }
    return try await game?.device(at: server)
  }

  /// Whether the game is another device by now than the one that asked for this shared container: it has joined another
  /// player, who has another container, or its player once more. This device is going to ask anew.
  func hasOtherParent(at server: CloudServer) async throws -> Bool {
    guard server.shared != nil, let before = try file.read()?.parent else { return false }
    return try await parent(at: server).map { $0 != before } ?? false
  }

  /// Makes this device one of the shared container of the game's player. What it has is joined with what is there.
  private func share(at server: CloudServer, name: String) async throws -> CloudCredentials {
    try prepare()
    let (account, parent) = try await account(at: server)
    // One that couldn't be stored is left behind: it is one more device, which costs nothing.
    let fresh = try await account.register(name: name)
    // It may have joined by a code meanwhile.
    if let held = try file.read(), held.parent == parent { return held.credentials }
    try become(fresh, parent: parent)
    return fresh
  }

  private func newPlayer(at server: CloudServer, name: String) async throws -> CloudCredentials {
    if let unstored, unstored.server == server { return unstored.credentials }
    // Each launch would register one more player.
    try file.prepare()
    let fresh = try await account(at: server).account.register(name: name)
    unstored = (server, fresh)
    return fresh
  }

  /// Stores new credentials, unless the device joined a player while it was registering: it must not become a player of
  /// its own again. Reading and writing are one step of this actor, which nothing else can interrupt.
  private func keep(_ fresh: CloudCredentials) throws -> CloudCredentials {
    if let known = try file.read() { return known.credentials }
    try file.write(CloudFile.Contents(credentials: fresh))
    unstored = nil
    return fresh
  }

  /// Makes this device one of the player whose device showed `code`. The store doesn't belong to that player yet when
  /// this returns: call `joined` when it does.
  func join(_ code: String, at server: CloudServer, name: String) async throws {
    // A code is used up even if what it brings can't be stored.
    try prepare()
    let (account, parent) = try await account(at: server)
    try become(try await account.join(code: code, name: name), parent: parent)
  }

  // MARK: Recovery codes

  /// Does the same as `join` with a recovery code. The code that takes its place is that of `recoveryCode(after:)`.
  func recover(_ code: RecoveryCode, at server: CloudServer, name: String) async throws {
    if let held = try known(at: server)?.credentials, try await isRecoveryCode(code, of: held) {
      throw GameDataError(.misuse, "this device is that player's already, and the code remains valid")
    }
    try prepare()
    let (account, parent) = try await account(at: server)
    do {
      try become(try await account.recover(code, next: try recovery.next(after: code), name: name), parent: parent)
    } catch let error as AccountError where error.code == .codeUnknown {
      // Neither it nor this device's use of it is known.
      try recovery.forget(code)
      throw error
    }
  }

  private func isRecoveryCode(_ code: RecoveryCode, of credentials: CloudCredentials) async throws -> Bool {
    do {
      return try await HTTPAccount.recovery(for: credentials)?.digest == code.digest
    } catch  where error.isRefusal {
      return false  // A device that was removed is nobody's.
    }
  }

  func recoveryCode(after code: RecoveryCode) throws -> RecoveryCode { try recovery.next(after: code) }

  func newRecoveryCode() throws -> RecoveryCode { try recovery.new() }

  func handOver(_ code: RecoveryCode) throws { try recovery.handOver(code) }

  /// Whether a player who loses this device could come back.
  func recoveryState(of credentials: CloudCredentials) async throws -> RecoveryState {
    guard let facts = try await HTTPAccount.recovery(for: credentials) else {
      let devices = try await HTTPAccount.devices(for: credentials)
      return RecoveryState(
        otherDevices: max(devices.count - 1, 0), codeCreated: nil, isCodeLost: false, identities: 0,
        supportsCodes: false)
    }
    let isLost = try facts.digest.map(recovery.isUnknown) ?? false
    return RecoveryState(
      otherDevices: max(facts.devices - 1, 0),
      codeCreated: isLost
        ? nil : facts.createdMilliseconds.map { Date(timeIntervalSince1970: Double($0) / 1000) },
      isCodeLost: isLost, identities: facts.identities ?? 0, supportsCodes: true)
  }

  // MARK: Identities

  /// Does the same as `join` with an identity.
  func signIn(_ proof: SignIn, at server: CloudServer, name: String) async throws {
    guard try !hasLostCredentials() else { return try await signInAsStandIn(proof, at: server, name: name) }
    let held = try await register(at: server, name: name)
    try prepare()
    do {
      let joined = try await HTTPAccount.signIn(proof.token, ofIssuer: proof.issuer, name: name, for: held)
      try become(joined, parent: try file.read()?.parent)
    } catch let error as AccountError where error.code == .retired {
      try await signInAsStandIn(proof, at: server, name: name)
    }
  }

  private func signInAsStandIn(_ proof: SignIn, at server: CloudServer, name: String) async throws {
    try prepare()
    let joined = try await asStandIn(at: server, name: name) {
      try await HTTPAccount.signIn(proof.token, ofIssuer: proof.issuer, name: name, for: $0)
    }
    try become(joined, parent: try await parent(at: server))
  }

  /// Makes a request as the device that asks in place of this one, which was removed or has lost its credentials. It is
  /// registered once and kept, without credentials until the game ends: a nonce is good for the device alone that has
  /// got it.
  func asStandIn<Value: Sendable>(
    at server: CloudServer, name: String, _ call: @Sendable (CloudCredentials) async throws -> Value
  ) async throws -> Value {
    let standIn = try await standIn(at: server, name: name)
    do {
      return try await call(standIn)
    } catch let error as AccountError where error.code == .retired || error.code == .unauthorized {
      // The next attempt asks as another one.
      if unstoredStandIn?.device == standIn.device { unstoredStandIn = nil }
      if var contents = try file.read(), contents.standIn?.device == standIn.device {
        contents.standIn = nil
        try file.write(contents)
      }
      throw error
    }
  }

  private func standIn(at server: CloudServer, name: String) async throws -> CloudCredentials {
    func kept() throws -> CloudCredentials? {
      var kept = try file.read()?.standIn ?? unstoredStandIn
      kept?.url = server.url
      return kept
    }
    if let kept = try kept() { return kept }
    let fresh = try await account(at: server).account.register(name: name)
    // Another call may have registered one meanwhile.
    if let kept = try kept() { return kept }
    if var contents = try file.read() {
      contents.standIn = fresh
      try file.write(contents)
    } else {
      unstoredStandIn = fresh
    }
    return fresh
  }

  // MARK: Credentials

  /// Makes sure that the credentials of another player can be stored, and those from before kept.
  private func prepare() throws {
    try file.prepare()
    if let before = try file.read()?.credentials { try former.requireRoom(for: before) }
  }

  /// - Parameter parent: Of a shared container: the game's own device that asked for it.
  private func become(_ credentials: CloudCredentials, parent: DeviceID? = nil) throws {
    // The bank of the player before still has the store's money.
    if let before = try file.read()?.credentials, before.container != credentials.container {
      try former.add([before])
    }
    // Stored first: a crash from here on must not leave the store with one player and the token of another.
    try file.write(CloudFile.Contents(credentials: credentials, isJoining: true, parent: parent))
  }

  /// Records that the store belongs to the player of these credentials, unless the device has since joined another one.
  func joined(_ credentials: CloudCredentials) throws {
    // The token may have been renewed meanwhile.
    guard let held = try file.read(), held.credentials.device == credentials.device else { return }
    try file.write(CloudFile.Contents(credentials: held.credentials, parent: held.parent))
  }

  /// Stores the credentials with a new token.
  ///
  /// - Throws: `CancellationError` if the device has since joined another player: the token must not be used then.
  func renewed(_ credentials: CloudCredentials, replacing token: String) throws {
    guard var held = try file.read(), held.credentials.token == token else { throw CancellationError() }
    held.credentials.token = credentials.token
    try file.write(held)
  }
}
