import Foundation
import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// A file of secrets in a game's folder. With a credential store, the secrets are there, and the file has only their
/// key.
///
/// The key is random, so that games and accounts don't meet in one store, and a folder that comes to another machine
/// finds nothing there. Where the store is the same, a copy of a folder reads the original's entry, as long as that is
/// of the device that the copy knows itself to be. It never changes or removes it: what it writes gets a new key.
struct SecretFile: Sendable {
  /// What the file has if the secrets are in a store.
  private struct Reference: Codable, Equatable {
    var stored: String
    /// The number on its disk of the folder whose entry this is. Moving a folder keeps it, copying or restoring
    /// doesn't.
    var folder: UInt64?
    /// The device that the data in the folder is of, if the secrets are of one.
    var device: String?
    /// The device that it is to become.
    var joining: String?
  }

  /// Whose the secrets are.
  struct Owner {
    var device: String
    /// Whether the data in the folder isn't that device's yet.
    var isJoining: Bool
  }

  /// What was found.
  enum Contents: Equatable {
    /// There is no file.
    case nothing
    /// The file refers to an entry that is in no store, or has become another device's.
    case lost
    /// - Parameter joining: The device that the data in the folder is to become, as far as the file knows.
    case bytes(Data, joining: String? = nil)
  }

  private enum Found {
    case nothing
    case lost
    case inFile(Data)
    case inCurrent(Data, Reference)
    case inFormer(Data, Reference)
  }

  /// Reading, moving and writing take several steps, and callers are on several threads. One lock for each file: a
  /// store may wait long, and other accounts go on.
  private static let locks = NamedLocks()

  let url: URL
  /// The open store in the same folder: the file belongs to it only while the folder does.
  private let store: Store?
  private let credentials: CredentialStorage
  private let maximumBytes: Int
  private let owner: @Sendable (Data) -> Owner?
  /// The key that `prepare` has tried, for the next new entry.
  private let prepared = PreparedKey()

  /// - Parameters:
  ///   - store: The store, if it is open.
  ///   - maximumBytes: The length of the longest file that is read.
  ///   - owner: Returns whose secrets are, if they are one device's.
  init(
    _ name: String, in folder: URL, of store: Store?, _ credentials: CredentialStorage,
    maximumBytes: Int = CredentialStorage.maximumBytes, owner: @escaping @Sendable (Data) -> Owner? = { _ in nil }
  ) {
    (url, self.store, self.credentials) = (folder.appendingPathComponent(name), store, credentials)
    (self.maximumBytes, self.owner) = (maximumBytes, owner)
  }

  private func withLock<Value>(_ body: () throws -> Value) rethrows -> Value {
    try Self.locks.withLock(url.standardizedFileURL.path, body)
  }

  // MARK: Reading

  /// Returns the contents, wherever they are.
  ///
  /// - Throws: `StoreError` if the file or a store can't be read; with `misuse` if they are in a store and none was
  ///   given.
  func read() throws -> Contents {
    switch try withLock({ try find() }) {
    case .nothing: .nothing
    case .lost: .lost
    case .inFile(let data): .bytes(data)
    case .inCurrent(let data, let reference), .inFormer(let data, let reference):
      .bytes(data, joining: reference.joining)
    }
  }

  private func find() throws -> Found {
    try store?.requirePresence()
    guard let bytes = try AtomicFile.read(url, maximumBytes: maximumBytes) else { return .nothing }
    guard let reference = try reference(in: bytes) else { return .inFile(bytes) }
    try requireStore(for: reference)
    if let current = credentials.current, let data = try entry(reference, in: current) {
      return .inCurrent(data, reference)
    }
    for former in credentials.former {
      if let data = try entry(reference, in: former) { return .inFormer(data, reference) }
    }
    return .lost
  }

  /// Returns the reference that the file is; nil if its bytes are the contents themselves.
  private func reference(in bytes: Data) throws -> Reference? {
    guard let reference = try? JSONDecoder().decode(Reference.self, from: bytes) else { return nil }
    let key = reference.stored
    // Anything else wasn't made here, and would be asked of a keychain that other programs may share.
    guard key.utf8.count == 32, key.utf8.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) }) else {
      throw StoreError(.damaged, "the file \(url.path) refers to a credential store with an invalid key")
    }
    return reference
  }

  /// Returns the reference that the file is now.
  private func reference() throws -> Reference? {
    try AtomicFile.read(url, maximumBytes: maximumBytes).flatMap { try reference(in: $0) }
  }

  private func requireStore(for reference: Reference?) throws {
    guard reference != nil, credentials.all.isEmpty else { return }
    throw StoreError(
      .misuse,
      """
      the credentials of \(url.deletingLastPathComponent().path) are in a credential store: pass it as `credentials`, \
      or \".folder.moving(from:)\" to have them in the folder again
      """)
  }

  /// Checks that a removal wouldn't leave the contents in a store that wasn't given.
  func requireStore() throws { try requireStore(for: readableReference()) }

  /// Returns the reference that the file is, for a removal: a file that can't be read names no entry, and must not
  /// prevent its folder from being deleted.
  private func readableReference() throws -> Reference? {
    do {
      return try reference()
    } catch let error as StoreError where [.damaged, .tooLarge, .io, .notPermitted].contains(error.code) {
      return nil
    }
  }

  /// Returns an entry, unless the folder from which this one was copied has become another player's device since: what
  /// is in this one must not join that player, which nobody has asked for.
  private func entry(_ reference: Reference, in store: any CredentialStore) throws -> Data? {
    guard let data = try entry(reference.stored, in: store) else { return nil }
    // What can't be decoded is no device's, and damage that the caller reports.
    guard let device = owner(data)?.device else { return data }
    return [reference.device, reference.joining].contains(device) ? data : nil
  }

  /// Whether a reference was written into this folder, and not copied with it.
  private func isOwn(_ reference: Reference) throws -> Bool { try reference.folder == folderNumber() }

  /// Returns the number of the folder on its disk; nil where there are none.
  private func folderNumber() throws -> UInt64? {
    let folder = url.deletingLastPathComponent().resolvingSymlinksInPath()
    do {
      let attributes = try FileManager.default.attributesOfItem(atPath: folder.path)
      return (attributes[.systemFileNumber] as? NSNumber)?.uint64Value
    } catch {
      throw StoreError(.io, "the folder \(folder.path) can't be examined", cause: error)
    }
  }

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
  func write(_ data: Data) throws { try withLock { try put(data) } }

  /// Makes sure that the credential store can be written, before a server is asked for what can be had only once: an
  /// entry that is new is written, read back and removed, under the key that the contents will have.
  func prepare() throws {
    try withLock {
      try store?.requirePresence()
      guard try usableReference() == nil, let current = credentials.current else { return }
      let key = nextKey()
      try putAnew(Data("probe".utf8), in: current, for: key)
      do { try current.remove(key) } catch { throw Self.failure("changed", error) }
    }
  }

  /// Throws `tooLarge` if the contents can't be this large where they belong.
  func requireRoom(for data: Data) throws {
    let maximum = credentials.current == nil ? maximumBytes : CredentialStorage.maximumBytes
    guard data.count <= maximum else {
      throw StoreError(.tooLarge, "\(url.lastPathComponent) would have more than \(maximum) bytes")
    }
  }

  /// Moves the contents to where they belong, if they are in the folder or in a former store. Whenever this is
  /// interrupted, they are in one of both places, and found there.
  func move() throws {
    try withLock {
      switch try find() {
      case .inFile(let data): if credentials.current != nil { try put(data) }
      case .inFormer(let data, let reference):
        try put(data)
        try removeFormer(reference)
      // It was moved, and perhaps not removed.
      case .inCurrent(_, let reference): try removeFormer(reference)
      case .nothing, .lost: break
      }
      try removePartial()
    }
  }

  private func put(_ data: Data) throws {
    try store?.requirePresence()
    if let current = credentials.current { return try put(data, in: current) }
    if case .inFormer(let before, let reference) = try find() {
      // The key is gone with this: if the entry can't be removed, this is the only call that can say so.
      try AtomicFile.write(before, to: url, access: .ownerOnly)
      try removeFormer(reference)
    }
    try AtomicFile.write(data, to: url, access: .ownerOnly)
  }

  private func put(_ data: Data, in current: any CredentialStore) throws {
    try requireRoom(for: data)
    guard var reference = try usableReference() else { return try putAnew(data, in: current) }
    let owner = owner(data)
    // Before the entry, or it would be taken for another folder's.
    if let device = owner?.device, ![reference.device, reference.joining].contains(device) {
      (reference.device, reference.joining) = (reference.joining ?? reference.device, device)
      try write(reference)
    }
    try put(data, in: current, for: reference.stored)
    if let owner, !owner.isJoining, reference.device != owner.device || reference.joining != nil {
      (reference.device, reference.joining) = (owner.device, nil)
      try write(reference)
    }
  }

  /// Returns the reference whose entry can be replaced; nil if a new one is needed.
  private func usableReference() throws -> Reference? {
    switch try find() {
    case .nothing, .lost, .inFile: nil
    case .inCurrent(_, let reference), .inFormer(_, let reference): try isOwn(reference) ? reference : nil
    }
  }

  private func putAnew(_ data: Data, in current: any CredentialStore) throws {
    var reference = Reference(stored: nextKey(), folder: try folderNumber())
    if let owner = owner(data) {
      if owner.isJoining { reference.joining = owner.device } else { reference.device = owner.device }
    }
    try putAnew(data, in: current, for: reference.stored)
    // If this fails, the entry stays: the file may have been replaced all the same.
    prepared.key.withLock { $0 = nil }
    try write(reference)
  }

  private func putAnew(_ data: Data, in current: any CredentialStore, for key: String) throws {
    do {
      try put(data, in: current, for: key)
    } catch {
      // Nothing refers to a new key yet. An entry that stays is never found again.
      try? current.remove(key)
      throw error
    }
  }

  private func put(_ data: Data, in current: any CredentialStore, for key: String) throws {
    do { try current.write(data, for: key) } catch { throw Self.failure("written", error) }
    // What it replaces may have been the only copy.
    guard try entry(key, in: current) == data else {
      throw StoreError(.io, "the credential store doesn't return what was written to it")
    }
  }

  private func write(_ reference: Reference) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    try AtomicFile.write(encoder.encode(reference), to: url, access: .ownerOnly)
  }

  /// Removes what was moved from the stores before, where the secrets could be read for ever.
  private func removeFormer(_ reference: Reference) throws {
    guard try isOwn(reference) else { return }
    for former in credentials.former {
      do { try former.remove(reference.stored) } catch { throw Self.failure("changed", error) }
    }
  }

  /// Removes what programs that ended while they wrote the file have left beside it: it may have secrets, too.
  private func removePartial() throws {
    let folder = url.deletingLastPathComponent()
    do {
      for name in try FileManager.default.contentsOfDirectory(atPath: folder.path)
      where name.hasPrefix(".\(url.lastPathComponent).") && name.hasSuffix(".partial") {
        try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
      }
    } catch {
      throw StoreError(.io, "files left by a write of \(url.path) can't be removed", cause: error)
    }
  }

  private func nextKey() -> String {
    prepared.key.withLock { key in
      var random = SystemRandomNumberGenerator()
      let next = key ?? Self.newKey(using: &random)
      key = next
      return next
    }
  }

  private static func newKey(using random: inout some RandomNumberGenerator) -> String {
    (0..<2).map { _ in
      let digits = String(UInt64.random(in: .min ... .max, using: &random), radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }

  // MARK: Removing

  /// Removes the entry that the file refers to from all stores, if it is this folder's: that of a folder from which
  /// this one was copied stays, and so does the file.
  ///
  /// - Throws: `StoreError` if a store fails; with `misuse`, if no store was given.
  func removeEntry() throws {
    try withLock {
      guard let reference = try readableReference(), try isOwn(reference) else { return }
      // Also in a folder that an earlier removal has left, with other stores: nothing would know the key any more.
      try requireStore(for: reference)
      for store in credentials.all {
        do { try store.remove(reference.stored) } catch { throw Self.failure("changed", error) }
      }
    }
  }

  private static func failure(_ doing: String, _ error: any Error) -> StoreError {
    // Other codes would be taken for what they mean in the folder.
    let code: StoreError.Code = (error as? StoreError)?.code == .notPermitted ? .notPermitted : .io
    return StoreError(code, "the credential store can't be \(doing)", cause: error)
  }
}

private final class PreparedKey: Sendable {
  let key = Mutex<String?>(nil)
}
