public import Foundation
public import KeepsakeReplication
import KeepsakeStore

/// A file of the game whose versions are kept (see `TrackedFiles`).
public struct TrackedFile: Sendable {
  let core: GameCore
  /// The file's location.
  public let url: URL
  /// The name of its versions.
  public let name: String

  /// How often to retry when the file changes while it is read or updated. A file that keeps changing has no state to
  /// capture.
  static let maximumAttempts = 5

  var slot: String { SlotKey.file(name).text }

  // MARK: Keeping

  /// Keeps the file's current contents as a version. Writes nothing if they haven't changed. Call it after the game has
  /// written the file.
  ///
  /// Reads the whole file on the calling thread.
  ///
  /// - Returns: A handle that completes when the version is durable.
  /// - Throws: `GameDataError` with `missing` if there is no file (its versions stay), `tooLarge` if it has more than
  ///   256 MiB, `misuse` if it isn't a regular file, or `closed` if the game's data is closed; `StoreError` if it can't
  ///   be read, or keeps changing while it is read.
  @discardableResult
  public func capture() throws -> Pending<Version> { try keep(read()) }

  /// Replaces the file's contents, atomically and durably, and keeps them as a version.
  ///
  /// If the previous contents have changed since the last version, they are kept first, which costs a wait for the
  /// disk.
  ///
  /// - Parameter data: The new contents.
  /// - Returns: A handle that completes when the version is durable.
  /// - Throws: As `capture`; `StoreError` if the previous contents can't be kept (`timedOut` if that takes more than 10
  ///   seconds) or the file can't be written. The file is unchanged then, unless the error came after it was written:
  ///   from making it durable, or from keeping the new version. It then has the new contents, and the next `capture`
  ///   keeps them.
  @discardableResult
  public func write(_ data: Data) throws -> Pending<Version> {
    try refuse(tooLarge: data.count)
    if try isThere() { try capture().wait() }
    try AtomicFile.write(data, to: url)
    return try keep(data)
  }

  /// Returns whether the file differs from the version it came from, is missing, or has no version.
  ///
  /// Reads both the file and the version. Ignores versions of other devices: see `update`.
  ///
  /// - Returns: Whether the file has changed.
  /// - Throws: As `capture`; `StoreError` if the version can't be read.
  public func hasChanged() throws -> Bool {
    guard try isThere() else { return true }
    let current = try read()
    core.slotParents.waitForCaptures(in: slot)
    return try core.store.read { transaction in
      let heads = try transaction.heads(of: transaction.key(of: slot))
      let origins = try transaction.fileBase(of: slot).map { [$0] } ?? heads
      return try !origins.contains { id in
        guard let record = try transaction.version(id)?.record, !record.tombstone, record.length == current.count else {
          return false
        }
        if record.contents.count == 1 { return record.contents[0] == ContentHash(of: current) }
        return try !transaction.wasPruned(record) && transaction.plainBytes(of: record) == current
      }
    }
  }

  // MARK: Going back

  /// Lists the kept versions, the newest first, including deletions.
  ///
  /// - Returns: The versions.
  /// - Throws: `StoreError` if the store can't be read.
  public func history() throws -> [Version] {
    core.slotParents.waitForCaptures(in: slot)
    return try core.store.read { transaction in
      core.slotParents.show(slot, try transaction.heads(of: transaction.key(of: slot)))
      let pinned = try transaction.pinned(in: slot)
      return try transaction.wholeHistory(of: slot).filter(SlotMove.isOfGame).map {
        Version($0, isPinned: pinned.contains($0.record.id))
      }
    }
  }

  /// Reads the contents of a version and checks them against its hash.
  ///
  /// - Parameter version: A version from `history`.
  /// - Returns: The contents.
  /// - Throws: `GameDataError` with `missing` if the version isn't kept, or `notDownloaded` if only the cloud has its
  ///   contents; `StoreError` if it can't be read.
  public func data(of version: VersionID) throws -> Data {
    core.slotParents.waitForCaptures(in: slot)
    return try core.store.read { transaction in
      let record = try readable(version, in: transaction)
      return try SlotReading.bytes(of: record, in: transaction)
    }
  }

  /// Writes a version back to the file, atomically and durably.
  ///
  /// If the file's contents have changed, they are captured first, so nothing is lost. The restored version becomes the
  /// newest and replaces the versions that `heads` or `history` last returned: this resolves a conflict.
  ///
  /// - Parameter version: A version from `history`.
  /// - Returns: The new version.
  /// - Throws: As `data(of:)` and `write`. The file is unchanged then, unless the error came after it was written: from
  ///   making it durable, or from keeping the new version (`timedOut` if that takes more than 10 seconds; it then
  ///   continues). The file then has the contents of the restored version.
  @discardableResult
  public func restore(_ version: VersionID) throws -> Version {
    let bytes = try data(of: version)
    if try isThere() { try capture().wait() }
    try AtomicFile.write(bytes, to: url)
    return try keep(bytes, replacing: core.slotParents.shown(slot)).wait()
  }

  // MARK: -

  func keep(_ bytes: Data, replacing shown: [VersionID] = []) throws -> Pending<Version> {
    try refuse(tooLarge: bytes.count)
    let save = core.commits.draft(ofFile: bytes, to: slot, additionalParents: shown)
    return Pending(
      try core.commits.submit(saves: [save]).map { committed in
        guard let version = committed.versions.first else { throw StoreError(.io, "a save ended without a version") }
        return version
      })
  }

  private func readable(_ id: VersionID, in transaction: StoreTransaction) throws -> VersionRecord {
    guard let version = try transaction.version(id), version.record.key.slot == slot, !version.record.tombstone,
      try !transaction.wasPruned(version.record) || transaction.isNotDownloaded(version.record)
    else { throw GameDataError(.missing, "\"\(name)\" has no version \(id) that can be read") }
    return version.record
  }

  func checkName() throws {
    // A local file's name was accepted as it is and never leaves this device, so only the name itself is checked.
    let key = try core.store.read { try $0.key(of: slot) }
    let record = VersionRecord(
      id: VersionID(high: 0, low: 0), slot: key.text, covers: [], contents: [], length: 0, savedAtMilliseconds: 0,
      writer: core.store.writer, provisional: false)
    if let refusal = ExchangeRules.objection(toOwn: record) {
      throw GameDataError(.misuse, refusal.message)
    }
  }

  private func refuse(tooLarge count: Int) throws {
    guard count <= EncodedContent.maximumContentBytes else {
      throw GameDataError(
        .tooLarge, "\(url.path) has \(count) bytes; at most \(EncodedContent.maximumContentBytes) are allowed")
    }
  }

  // MARK: The file

  struct Signature: Equatable {
    var size: UInt64
    var modified: Date?
  }

  /// Returns false if nothing exists at the path. Throws for anything but a regular file.
  func isThere() throws -> Bool { try signature() != nil }

  func signature() throws -> Signature? {
    let attributes: [FileAttributeKey: Any]
    do {
      // Doesn't follow a link at the end of the path.
      attributes = try FileManager.default.attributesOfItem(atPath: url.path)
    } catch CocoaError.fileReadNoSuchFile, CocoaError.fileNoSuchFile {
      return nil
    } catch {
      throw StoreError(.io, "\(url.path) can't be examined", cause: error)
    }
    guard attributes[.type] as? FileAttributeType == .typeRegular else {
      throw GameDataError(.misuse, "\(url.path) is not an ordinary file: folders, devices and links can't be tracked")
    }
    return Signature(
      size: (attributes[.size] as? NSNumber)?.uint64Value ?? 0, modified: attributes[.modificationDate] as? Date)
  }

  /// Returns the file's bytes, as of a moment when nobody was writing to it.
  func read() throws -> Data {
    for _ in 0..<Self.maximumAttempts {
      guard let before = try signature() else { throw GameDataError(.missing, "there is no file \(url.path)") }
      try refuse(tooLarge: Int(clamping: before.size))
      guard let bytes = try AtomicFile.read(url, maximumBytes: EncodedContent.maximumContentBytes) else { continue }
      if try signature() == before, bytes.count == Int(clamping: before.size) { return bytes }
    }
    throw StoreError(.io, "\(url.path) was repeatedly written to while it was read: capture it once writing has ended")
  }
}
