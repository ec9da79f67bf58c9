import Foundation
import KeepsakeReplication
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
  /// The attempt to register that is in progress, shared by all callers that wait for it.
  private var underWay: Task<CloudCredentials, any Error>?

  init(file: CloudFile, former: FormerClouds, recovery: RecoveryFile, executor: QueueExecutor) {
    self.file = file
    self.former = former
    self.recovery = recovery
    self.executor = executor
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
    if let known = try known(at: server) { return known.credentials }
    if let underWay { return try await underWay.value }
    let task = Task {
      do {
        return try self.keep(try await HTTPAccount(url: server.url, appKey: server.appKey).register(name: name))
      } catch {
        throw GameDataError.translated(error)
      }
    }
    underWay = task
    defer { underWay = nil }
    return try await task.value
  }

  /// Stores new credentials, unless the device joined a player while it was registering: it must not become a player of
  /// its own again. Reading and writing are one step of this actor, which nothing else can interrupt.
  private func keep(_ fresh: CloudCredentials) throws -> CloudCredentials {
    if let known = try file.read() { return known.credentials }
    try file.write(CloudFile.Contents(credentials: fresh))
    return fresh
  }

  /// Makes this device one of the player whose device showed `code`. The store doesn't belong to that player yet when
  /// this returns: call `joined` when it does.
  func join(_ code: String, at server: CloudServer, name: String) async throws {
    try become(try await HTTPAccount(url: server.url, appKey: server.appKey).join(code: code, name: name))
  }

  // MARK: Recovery codes

  /// Does the same as `join` with a recovery code. The code that takes its place is that of `recoveryCode(after:)`.
  func recover(_ code: RecoveryCode, at server: CloudServer, name: String) async throws {
    if let held = try known(at: server)?.credentials, try await isRecoveryCode(code, of: held) {
      throw GameDataError(.misuse, "this device is that player's already, and the code remains valid")
    }
    let account = HTTPAccount(url: server.url, appKey: server.appKey)
    do {
      try become(try await account.recover(code, next: try recovery.next(after: code), name: name))
    } catch let error as AccountError where error.code == .codeUnknown {
      // Neither it nor this device's use of it is known.
      try recovery.forget(code)
      throw error
    }
  }

  private func isRecoveryCode(_ code: RecoveryCode, of credentials: CloudCredentials) async throws -> Bool {
    do {
      return try await HTTPAccount.recovery(for: credentials).digest == code.digest
    } catch  where error.isRefusal {
      return false  // A device that was removed is nobody's.
    }
  }

  func recoveryCode(after code: RecoveryCode) throws -> RecoveryCode { try recovery.next(after: code) }

  func newRecoveryCode() throws -> RecoveryCode { try recovery.new() }

  func handOver(_ code: RecoveryCode) throws { try recovery.handOver(code) }

  /// Whether a player who loses this device could come back.
  func recoveryState(of credentials: CloudCredentials) async throws -> RecoveryState {
    let facts = try await HTTPAccount.recovery(for: credentials)
    let isLost = try facts.digest.map(recovery.isUnknown) ?? false
    return RecoveryState(
      otherDevices: max(facts.devices - 1, 0),
      codeCreated: isLost
        ? nil : facts.createdMilliseconds.map { Date(timeIntervalSince1970: Double($0) / 1000) },
      isCodeLost: isLost)
  }

  // MARK: Credentials

  private func become(_ credentials: CloudCredentials) throws {
    // The bank of the player before still has the store's money.
    if let before = try file.read()?.credentials, before.container != credentials.container {
      try former.add([before])
    }
    // Stored first: a crash from here on must not leave the store with one player and the token of another.
    try file.write(CloudFile.Contents(credentials: credentials, isJoining: true))
  }

  /// Records that the store belongs to the player of these credentials, unless the device has since joined another one.
  func joined(_ credentials: CloudCredentials) throws {
    // The token may have been renewed meanwhile.
    guard let held = try file.read(), held.credentials.device == credentials.device else { return }
    try file.write(CloudFile.Contents(credentials: held.credentials))
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
