import Foundation
import KeepsakeSync

/// Who this device is to its cloud: makes it known there, once, lets it join a player, and writes down what it is known by.
///
/// Runs where its connection runs, so that a call from there waits for nobody.
actor CloudRegistration {
  private nonisolated let executor: QueueExecutor
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let file: CloudFile
  /// One try to register, shared by all who wait for it.
  private var underWay: Task<CloudCredentials, any Error>?

  init(file: CloudFile, executor: QueueExecutor) {
    self.file = file
    self.executor = executor
  }

  /// What this device is known by. A server may move, and its address may be written in several ways: the token says who this
  /// is, and is never given up for a new one.
  func known(at server: CloudServer) throws -> CloudFile.Contents? {
    guard var known = try file.read() else { return nil }
    known.credentials.url = server.url
    return known
  }

  /// The credentials; makes this device known if it isn't yet. Tries once.
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

  /// Writes down who this device is, unless it joined a player while it was registering: it must not become one of its own
  /// again. Looking and writing are one step here, which nothing else of this actor can come between.
  private func keep(_ fresh: CloudCredentials) throws -> CloudCredentials {
    if let known = try file.read() { return known.credentials }
    try file.write(CloudFile.Contents(credentials: fresh))
    return fresh
  }

  /// Brings this device to the player whose device showed `code`. The store isn't that player's yet when this returns: `joined`
  /// is for when it is.
  func join(_ code: String, at server: CloudServer, name: String) async throws {
    let credentials = try await HTTPAccount(url: server.url, appKey: server.appKey).join(code: code, name: name)
    // Written down first: a crash from here on must not leave the store with one player and the token of another.
    try file.write(CloudFile.Contents(credentials: credentials, isJoining: true))
  }

  /// Writes down that the store belongs to the player of these credentials, unless the device has joined another one since.
  func joined(_ credentials: CloudCredentials) throws {
    guard let held = try file.read(), held.credentials.token == credentials.token else { return }
    try file.write(CloudFile.Contents(credentials: credentials))
  }
}
