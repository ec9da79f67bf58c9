import Foundation
import KeepsakeReplication
import KeepsakeStore

/// Versions of the file that the player's other devices saved.
extension TrackedFile {
  /// The result of `update`.
  public enum Update: Sendable, Hashable {
    /// The file is already current, or has no version.
    case unchanged
    /// The file was updated to this version, which another device wrote.
    case updated(Version)
    /// Devices wrote the file independently of each other. These are the conflicting versions, the best first; the file
    /// is unchanged. To resolve the conflict, `restore` one of them; to merge them, `write` the merged contents after
    /// that.
    case conflict([Version])
  }

  /// Lists the current versions of the file: one, several in a conflict, or none if it was never written or is deleted.
  ///
  /// - Returns: The versions, the best first, in the same order on every device.
  /// - Throws: `StoreError` if the store can't be read.
  public func heads() throws -> [Version] {
    core.slotParents.waitForCaptures(in: slot)
    return try core.store.read { transaction in
      let view = try view(in: transaction)
      return try view.heads.compactMap { head in
        try transaction.version(head.id).map { Version($0, isPinned: try transaction.isPinned(head.id)) }
      }
    }
  }

  /// Writes the version that another device saved to the file, atomically and durably.
  ///
  /// ```swift
  /// for case .files(let names) in game.takeChanges() where names.contains(file.name) {
  ///   if case .conflict(let versions) = try file.update() { ask(versions) }
  /// }
  /// ```
  ///
  /// If the file's contents have changed, they are captured first: an edit is never overwritten, but kept as a version
  /// beside the new one. A missing file is written again. Call this while the game isn't writing the file, and load the
  /// file afterwards.
  ///
  /// - Returns: What was done.
  /// - Throws: As `capture`; `GameDataError` with `notDownloaded` if the contents of the new version are only in the
  ///   cloud; `StoreError` if the version can't be read or the file can't be written. The file is unchanged then,
  ///   unless the error came after it was written: from making it durable, or from recording its version. The next
  ///   call recognizes its contents.
  @discardableResult
  public func update() throws -> Update {
    for _ in 0..<Self.maximumAttempts {
      let before = try signature()
      if before != nil { try keep(read()).wait() }
      core.slotParents.waitForCaptures(in: slot)
      let arrived = try core.store.read { try arrival(isThere: before != nil, in: $0) }
      guard case .new(let version, let bytes) = arrived else {
        if case .conflict(let versions) = arrived { return .conflict(versions) }
        return .unchanged
      }
      // The file was written to after it was captured: try again.
      guard try signature() == before else { continue }
      if before == nil {
        guard try AtomicFile.create(bytes, at: url) else { continue }
      } else {
        try AtomicFile.write(bytes, to: url)
      }
      try core.translating { try core.store.write { try $0.setFileBase(version.id, of: slot) } }
      return .updated(version)
    }
    throw StoreError(
      .io, "\(url.path) was repeatedly written to while it was updated: update it once writing has ended")
  }

  private enum Arrival {
    case nothing
    case new(Version, Data)
    case conflict([Version])
  }

  private func arrival(isThere: Bool, in transaction: StoreTransaction) throws -> Arrival {
    let view = try view(in: transaction)
    guard let winner = view.winner else { return .nothing }
    guard !view.isConflict else {
      return .conflict(
        try view.heads.compactMap { head in
          try transaction.version(head.id).map { Version($0, isPinned: try transaction.isPinned(head.id)) }
        })
    }
    if isThere, let base = try transaction.fileBase(of: slot), let record = try transaction.version(base)?.record {
      // Equal bytes count as the same version, whichever version the file came from.
      if record.id == winner.id || (!record.tombstone && record.contents == winner.contents) { return .nothing }
    }
    guard let version = try transaction.version(winner.id) else { return .nothing }
    return .new(
      Version(version, isPinned: try transaction.isPinned(winner.id)),
      try SlotReading.bytes(of: winner, in: transaction))
  }

  /// Counts as showing the versions to the game, so that a choice made afterwards replaces them.
  private func view(in transaction: StoreTransaction) throws -> SlotView {
    let view = try Resolution.view(of: transaction.key(of: slot), in: transaction, policy: .newest)
    core.slotParents.show(slot, view.parents)
    return view
  }

  // MARK: Here and in the cloud

  /// Returns the sync status of the current version. Ignores edits that aren't captured yet.
  ///
  /// - Returns: The status, as for a slot.
  /// - Throws: `StoreError` if the store can't be read.
  public func status() throws -> SlotStatus {
    core.slotParents.waitForCaptures(in: slot)
    return try SaveSlots(core: core).durableStatus(of: slot)
  }

  /// Whether the file's versions stay on this device.
  public var isLocal: Bool { get throws { try core.store.read { try $0.isLocal(slot) } } }

  /// Keeps the file's versions on this device from now on, as `SaveSlots.keepLocal` does for a slot. Durable on return.
  /// The file itself is unchanged on every device.
  ///
  /// Doesn't capture the file's contents.
  ///
  /// - Parameter cloudCopy: What happens to the cloud's copy.
  /// - Throws: As `SaveSlots.keepLocal`.
  public func keepLocal(cloudCopy: CloudCopy) throws {
    core.slotParents.waitForCaptures(in: slot)
    try core.keepLocal(slot, removing: cloudCopy == .removed)
  }

  /// Ends `keepLocal`, as `SaveSlots.syncAgain` does for a slot: the newest version is sent to the cloud.
  ///
  /// - Throws: As `keepLocal`.
  public func syncAgain() throws {
    core.slotParents.waitForCaptures(in: slot)
    try core.syncAgain(slot)
  }
}
