import Foundation
import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// A file of secrets in a game's folder. With a credential store, the secrets are there, and the file has only their
/// key.
///
/// The key is made once for each file. It is random, so that games, accounts and copies of folders don't meet in one
/// store, and a folder that comes to another machine finds nothing there.
struct SecretFile: Sendable {
  /// What the file has if the secrets are in a store.
  private struct Reference: Codable {
    var stored: String
  }

  /// What was found.
  enum Contents: Equatable {
    /// There is no file.
    case nothing
    /// The file refers to an entry that is in no store.
    case lost
    case bytes(Data)
  }

  private enum Found {
    case nothing
    case lost
    case inFile(Data)
    case inCurrent(Data)
    case inFormer(Data)
  }

  /// Reading, moving and writing take several steps, and callers are on several threads.
  private static let lock = Mutex(())

  let url: URL
  /// The open store in the same folder: the file belongs to it only while the folder does.
  private let store: Store?
  private let credentials: CredentialStorage
  private let maximumBytes: Int

  /// - Parameters:
  ///   - store: The store, if it is open.
  ///   - maximumBytes: The length of the longest file that is read.
  init(
    _ name: String, in folder: URL, of store: Store?, _ credentials: CredentialStorage,
    maximumBytes: Int = CredentialStorage.maximumBytes
  ) {
    (url, self.store, self.credentials) = (folder.appendingPathComponent(name), store, credentials)
    self.maximumBytes = maximumBytes
  }

  // MARK: Reading

  /// Returns the contents, wherever they are.
  ///
  /// - Throws: `StoreError` if the file or a store can't be read; with `misuse` if they are in a store and none was
  ///   given.
  func read() throws -> Contents {
    switch try Self.lock.withLock({ _ in try find() }) {
    case .nothing: .nothing
    case .lost: .lost
    case .inFile(let data), .inCurrent(let data), .inFormer(let data): .bytes(data)
    }
  }

  private func find() throws -> Found {
    try store?.requirePresence()
    guard let bytes = try AtomicFile.read(url, maximumBytes: maximumBytes) else { return .nothing }
    guard let key = try key(in: bytes) else { return .inFile(bytes) }
    try requireStore(for: key)
    if let current = credentials.current, let data = try entry(key, in: current) { return .inCurrent(data) }
    for former in credentials.former {
      if let data = try entry(key, in: former) { return .inFormer(data) }
    }
    return .lost
  }

  /// Returns the key that the file refers to; nil if its bytes are the contents themselves.
  private func key(in bytes: Data) throws -> String? {
    guard let key = try? JSONDecoder().decode(Reference.self, from: bytes).stored else { return nil }
    // Anything else wasn't made here, and would be asked of a keychain that other programs may share.
    guard key.utf8.count == 32, key.utf8.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) }) else {
      throw StoreError(.damaged, "the file \(url.path) refers to a credential store with an invalid key")
    }
    return key
  }

  /// Returns the key that the file refers to now.
  private func key() throws -> String? {
    try AtomicFile.read(url, maximumBytes: maximumBytes).flatMap { try key(in: $0) }
  }

  private func requireStore(for key: String?) throws {
    guard key != nil, credentials.all.isEmpty else { return }
    throw StoreError(
      .misuse,
      """
      the credentials of \(url.deletingLastPathComponent().path) are in a credential store: pass it as `credentials`, \
      or \".folder.moving(from:)\" to have them in the folder again
      """)
  }

  /// Checks that the contents aren't in a store that wasn't given.
  func requireStore() throws { try requireStore(for: key()) }

  private func entry(_ key: String, in store: any CredentialStore) throws -> Data? {
    let data: Data?
    do {
      data = try store.read(key)
    } catch {
      throw Self.failure("read", error)
    }
    guard data?.count ?? 0 <= CredentialStorage.maximumBytes else {
      throw StoreError(.damaged, "the credential store returned more than was ever written to it")
    }
    return data
  }

  // MARK: Writing

  /// Replaces the contents, durably. After an error, the old ones are still there.
  func write(_ data: Data) throws { try Self.lock.withLock { _ in try put(data) } }

  /// Moves the contents to where they belong, if they are in the folder or in a former store. Whenever this is
  /// interrupted, they are in one of both places, and found there.
  func move() throws {
    try Self.lock.withLock { _ in
      switch try find() {
      case .inFile(let data): if credentials.current != nil { try put(data) }
      case .inFormer(let data): try put(data)
      case .nothing, .lost, .inCurrent: break
      }
    }
  }

  private func put(_ data: Data) throws {
    try store?.requirePresence()
    let known = try key()
    try requireStore(for: known)
    if let current = credentials.current {
      try put(data, in: current, for: known)
    } else {
      try AtomicFile.write(data, to: url, access: .ownerOnly)
    }
    guard let known else { return }
    for former in credentials.former {
      // What stays there counts only if the current store has nothing.
      try? former.remove(known)
    }
  }

  private func put(_ data: Data, in current: any CredentialStore, for known: String?) throws {
    guard data.count <= CredentialStorage.maximumBytes else {
      throw StoreError(
        .tooLarge, "\(url.lastPathComponent) would have more than \(CredentialStorage.maximumBytes) bytes")
    }
    var random = SystemRandomNumberGenerator()
    let key = known ?? Self.newKey(using: &random)
    do {
      do { try current.write(data, for: key) } catch { throw Self.failure("written", error) }
      // The file is replaced next, and may have been the only copy.
      guard try entry(key, in: current) == data else {
        throw StoreError(.io, "the credential store doesn't return what was written to it")
      }
    } catch {
      // Nothing refers to a new key yet. An entry that stays is never found again.
      if known == nil { try? current.remove(key) }
      throw error
    }
    guard known == nil else { return }
    // If this fails, the entry stays: the file may have been replaced all the same.
    try AtomicFile.write(JSONEncoder().encode(Reference(stored: key)), to: url, access: .ownerOnly)
  }

  private static func newKey(using random: inout some RandomNumberGenerator) -> String {
    (0..<2).map { _ in
      let digits = String(UInt64.random(in: .min ... .max, using: &random), radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }

  // MARK: Removing

  /// Removes the entry that the file refers to from all stores. The file stays.
  func removeEntry() throws {
    try Self.lock.withLock { _ in
      // A file that can't be read names no entry, and must not prevent its folder from being deleted.
      guard let key = (try? key()) ?? nil else { return }
      for store in credentials.all {
        do { try store.remove(key) } catch { throw Self.failure("changed", error) }
      }
    }
  }

  private static func failure(_ doing: String, _ error: any Error) -> StoreError {
    // Other codes would be taken for what they mean in the folder.
    let code: StoreError.Code = (error as? StoreError)?.code == .notPermitted ? .notPermitted : .io
    return StoreError(code, "the credential store can't be \(doing)", cause: error)
  }
}
