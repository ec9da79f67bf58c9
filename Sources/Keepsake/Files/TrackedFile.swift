public import Foundation
public import KeepsakeReplication
import KeepsakeStore

/// A file of the game's own whose versions are kept (`TrackedFiles`).
public struct TrackedFile: Sendable {
  let core: GameCore
  /// Where it is.
  public let url: URL
  /// What its versions are found by.
  public let name: String

  /// A file that is changed again and again while it is read has no state that could be kept.
  static let maximumAttempts = 5

  var slot: String { FileSlot.slot(name) }

  // MARK: Keeping

  /// Keeps a version of the file as it is now; a file that hasn't changed writes nothing. To be called when the game has written it.
  ///
  /// Costs reading the file on this thread; the `Pending` says when the version is durable.
  /// - Throws: `GameDataError` with `missing` if there is no file (its versions stay), `tooLarge` beyond 256 MiB, `misuse` for what is no file;
  ///   `StoreError` if it can't be read, or is written to all the time.
  @discardableResult
  public func capture() throws -> Pending<Version> { try keep(read()) }

  /// Replaces the file as a whole or not at all, durably, and keeps the version.
  ///
  /// What is in the file now is kept before, durably, if it wasn't: a wait on the disk. Throws as `capture`, and `StoreError` if what is in the
  /// file can't be kept, or the file can't be written: it is then as it was.
  @discardableResult
  public func write(_ data: Data) throws -> Pending<Version> {
    try refuse(tooLarge: data.count)
    if try isThere() { try capture().wait() }
    try AtomicFile.write(data, to: url)
    return try keep(data)
  }

  /// Whether the file differs from the version that it came from, or is gone; true as well if there is no version. Costs reading both.
  ///
  /// What other devices wrote meanwhile changes nothing about that: see `update`.
  public func hasChanged() throws -> Bool {
    guard try isThere() else { return true }
    let current = try read()
    try settle()
    return try core.store.read { transaction in
      let heads = try transaction.heads(of: transaction.place(of: slot))
      let origins = try transaction.fileBase(of: slot).map { [$0] } ?? heads
      return try !origins.contains { id in
        guard let record = try transaction.version(id)?.record, !record.tombstone, record.length == current.count else { return false }
        if record.contents.count == 1 { return record.contents[0] == ContentHash(of: current) }
        return try !transaction.wasPruned(record) && transaction.plainBytes(of: record) == current
      }
    }
  }

  // MARK: Going back

  /// The versions that are kept, the newest first, deletes included.
  public func history() throws -> [Version] {
    try settle()
    return try core.store.read { transaction in
      core.slotParents.show(slot, try transaction.heads(of: transaction.place(of: slot)))
      let pinned = try transaction.pinned(in: slot)
      return try transaction.wholeHistory(of: slot).filter(SlotMove.isOfGame).map { Version($0, isPinned: pinned.contains($0.record.id)) }
    }
  }

  /// The bytes of a version, checked against its hash. Throws `GameDataError` with `missing` if it isn't kept.
  public func data(of version: VersionID) throws -> Data {
    try settle()
    return try core.store.read { transaction in
      let record = try readable(version, in: transaction)
      return try SlotReading.bytes(of: record, in: transaction)
    }
  }

  /// Puts a version back into the file: as a whole or not at all, durably.
  ///
  /// What is in the file now is kept before, so that nothing is lost by it. The version that was put back is the newest afterwards, and replaces
  /// what `heads` or `history` showed last: of a conflict it is the end. Throws as `data(of:)` and `write`, with the file as it was.
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
    let save = GameCore.Save(
      parents: core.slotParents.snapshot(slot), payload: .bytes(bytes), metadata: SaveMetadata(), additionalParents: shown, isOfFile: true)
    return Pending(
      try core.commit(saves: [save]).map { committed in
        guard let version = committed.versions.first else { throw StoreError(.io, "a save ended without a version") }
        return version
      })
  }

  /// What was captured before comes before what is read now. A capture that failed has told so itself.
  func settle() throws {
    guard let pending = core.slotParents.pending(in: slot) else { return }
    do {
      _ = try pending.wait()
    } catch {
      return
    }
  }

  private func readable(_ id: VersionID, in transaction: StoreTransaction) throws -> VersionRecord {
    guard let version = try transaction.version(id), LocalSlot.slot(at: version.record.slot) == slot, !version.record.tombstone,
      try !transaction.wasPruned(version.record) || transaction.isNotDownloaded(version.record)
    else { throw GameDataError(.missing, "\"\(name)\" has no version \(id) that could be read") }
    return version.record
  }

  func checkName() throws {
    // One that is here already was taken as it is, and stays here.
    let place = try core.store.read { try $0.place(of: slot) }
    let record = VersionRecord(
      id: VersionID(high: 0, low: 0), slot: place, covers: [], contents: [], length: 0, savedAtMilliseconds: 0, writer: core.store.writer,
      provisional: false)
    if let refusal = ExchangeRules.objection(toOwn: record) {
      throw GameDataError(.misuse, "\"\(name.prefix(80))\" can't be a tracked file's name: \(refusal.message)")
    }
  }

  private func refuse(tooLarge count: Int) throws {
    guard count <= EncodedContent.maximumContentBytes else {
      throw GameDataError(.tooLarge, "\(url.path) has \(count) bytes; \(EncodedContent.maximumContentBytes) are the most")
    }
  }

  // MARK: The file

  struct Signature: Equatable {
    var size: UInt64
    var modified: Date?
  }

  /// False if there is nothing. Throws for what is no file.
  func isThere() throws -> Bool { try signature() != nil }

  func signature() throws -> Signature? {
    let attributes: [FileAttributeKey: Any]
    do {
      // Doesn't follow a link at the end of the path.
      attributes = try FileManager.default.attributesOfItem(atPath: url.path)
    } catch CocoaError.fileReadNoSuchFile, CocoaError.fileNoSuchFile {
      return nil
    } catch {
      throw StoreError(.io, "\(url.path) can't be looked at", cause: error)
    }
    guard attributes[.type] as? FileAttributeType == .typeRegular else {
      throw GameDataError(.misuse, "\(url.path) is no ordinary file: folders, devices and links can't be tracked")
    }
    return Signature(size: (attributes[.size] as? NSNumber)?.uint64Value ?? 0, modified: attributes[.modificationDate] as? Date)
  }

  /// The file's bytes, at a moment in which nobody was writing to it.
  func read() throws -> Data {
    for _ in 0..<Self.maximumAttempts {
      guard let before = try signature() else { throw GameDataError(.missing, "there is no file \(url.path)") }
      try refuse(tooLarge: Int(clamping: before.size))
      guard let bytes = try AtomicFile.read(url, maximumBytes: EncodedContent.maximumContentBytes) else { continue }
      if try signature() == before, bytes.count == Int(clamping: before.size) { return bytes }
    }
    throw StoreError(.io, "\(url.path) was written to while it was read, again and again: capture it when it is written")
  }
}
