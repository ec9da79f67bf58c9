import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync

/// The credentials of the clouds that a device has left, in a file that only the user can read or in the credential
/// store: kept until their banks have settled what the device has there.
struct FormerClouds: Sendable {
  static let name = "former-clouds.json"
  /// Enough for hundreds; a larger file isn't ours.
  static let maximumBytes = 256 * 1024
  /// The file is read and written again by an adoption on any thread, and by the connection.
  private static let locks = NamedLocks()

  private let file: SecretFile

  /// - Parameter store: The store, if it is open.
  init(in folder: URL, of store: Store?, _ credentials: CredentialStorage) {
    file = SecretFile(Self.name, in: folder, of: store, credentials, maximumBytes: Self.maximumBytes)
  }

  private func withLock<Value>(_ body: () throws -> Value) rethrows -> Value {
    try Self.locks.withLock(file.url.standardizedFileURL.path, body)
  }

  /// Returns the credentials for a container; nil if there are none.
  func credentials(for container: ContainerID) throws -> CloudCredentials? {
    try all().last { $0.container == container }
  }

  func all() throws -> [CloudCredentials] { try withLock { try read() } }

  /// Adds credentials. Those that are there already change nothing.
  func add(_ credentials: [CloudCredentials]) throws {
    guard !credentials.isEmpty else { return }
    try withLock {
      let known = try read()
      let added = credentials.filter { new in !known.contains { $0.token == new.token } }
      if !added.isEmpty { try write(known + added) }
    }
  }

  /// Throws `tooLarge` if credentials can't be added any more.
  func requireRoom(for credentials: CloudCredentials) throws {
    try withLock {
      let known = try read()
      guard !known.contains(where: { $0.token == credentials.token }) else { return }
      try file.requireRoom(for: Self.encode(known + [credentials]))
    }
  }

  /// Stores credentials with a new token in place of those with the token `token`.
  ///
  /// - Throws: A `StoreError` if there are none with it: the new token must not be used then.
  func renewed(_ credentials: CloudCredentials, replacing token: String) throws {
    try withLock {
      var known = try read()
      guard let index = known.firstIndex(where: { $0.token == token }) else {
        throw StoreError(
          .misuse, "the file \(file.url.path) doesn't have the credentials whose token was renewed")
      }
      known[index] = credentials
      try write(known)
    }
  }

  /// Removes the credentials for all other containers.
  func keep(for containers: Set<ContainerID>) throws {
    try withLock {
      let known = try read()
      let kept = known.filter { containers.contains($0.container) }
      if kept.count < known.count { try write(kept) }
    }
  }

  /// Moves the credentials into the credential store, if they belong there.
  func move() throws { try file.move() }

  private func read() throws -> [CloudCredentials] {
    guard case .bytes(let bytes, _) = try file.read() else { return [] }
    do {
      return try JSONDecoder().decode([CloudCredentials].self, from: bytes)
    } catch {
      throw StoreError(
        .damaged,
        """
        the file \(file.url.path) can't be decoded: restore it from a backup, or delete it; without it, the money that \
        is on its way from there stays pending
        """,
        cause: error)
    }
  }

  private func write(_ credentials: [CloudCredentials]) throws { try file.write(Self.encode(credentials)) }

  private static func encode(_ credentials: [CloudCredentials]) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
    return try encoder.encode(credentials)
  }
}

/// How to reach the banks of players that a store belonged to before.
struct FormerBanks: Sendable {
  let folder: URL
  /// The store, if it is open.
  let store: Store?
  let environment: GameEnvironment
  /// Where the credentials are.
  let storage: CredentialStorage

  /// Returns the credentials that this device had at the cloud of a container: those that were kept when it left, or
  /// those that it still has.
  func credentials(for container: ContainerID) throws -> CloudCredentials? {
    if let kept = try FormerClouds(in: folder, of: store, storage).credentials(for: container) { return kept }
    let current = try CloudFile(in: folder, of: store, storage).read()
    return current.flatMap { $0.credentials.container == container && !$0.isJoining ? $0.credentials : nil }
  }

  /// Returns the cloud of a container; nil if this device has no credentials for it.
  ///
  /// - Parameter appKey: The game's key there, for a token that isn't accepted any more; nil if it isn't known.
  func cloud(of container: ContainerID, appKey: String?) throws -> (any Transport)? {
    if let cloud = environment.formerCloud(container) { return cloud }
    let former = FormerClouds(in: folder, of: store, storage)
    let renewal = appKey.map {
      CredentialsRenewal(appKey: $0) { new, old in try former.renewed(new, replacing: old) }
    }
    return try credentials(for: container).map { HTTPTransport($0, renewal: renewal) }
  }
}
