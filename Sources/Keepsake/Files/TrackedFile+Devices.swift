import Foundation
import KeepsakeReplication
import KeepsakeStore

/// What the player's other devices do with the file.
extension TrackedFile {
  /// What `update` made of the file.
  public enum Update: Sendable, Hashable {
    /// It has what it should have already; or nobody wrote anything.
    case unchanged
    /// It has what another device wrote, this version.
    case updated(Version)
    /// Devices wrote without knowing of each other: these versions stand beside each other, the best first, and the file is as it was. `restore` of one,
    /// or a `write` of what the game made of them after one, ends that.
    case conflict([Version])
  }

  /// The versions that stand under the name: one, or several that devices wrote without knowing of each other, the best first; none if nothing was
  /// written, or it was deleted. The order is the same on every device.
  public func heads() throws -> [Version] {
    try settle()
    return try core.store.read { transaction in
      let view = try view(in: transaction)
      return try view.heads.compactMap { head in
        try transaction.version(head.id).map { Version($0, isPinned: try transaction.isPinned(head.id)) }
      }
    }
  }

  /// Brings what other devices wrote into the file, as a whole or not at all, durably.
  ///
  ///     for case .files(let names) in game.takeChanges() where names.contains(file.name) {
  ///       if case .conflict(let versions) = try file.update() { ask(versions) }
  ///     }
  ///
  /// What is in the file now is kept before, if it wasn't: an edit that no device knows is never written over, but stands beside what came. A file that is
  /// gone is written anew. To be called when the game isn't writing the file, and will load it again.
  ///
  /// - Throws: As `capture`, `GameDataError` with `notDownloaded` if what came was left in the cloud, and `StoreError` if what came can't be read or the file can't be written, with the file as it was.
  @discardableResult
  public func update() throws -> Update {
    for _ in 0..<Self.maximumAttempts {
      let before = try signature()
      if before != nil { try keep(read()).wait() }
      try settle()
      let arrived = try core.store.read { try arrival(isThere: before != nil, in: $0) }
      guard case .new(let version, let bytes) = arrived else {
        if case .conflict(let versions) = arrived { return .conflict(versions) }
        return .unchanged
      }
      // Written to since it was kept: once more.
      guard try signature() == before else { continue }
      if before == nil {
        guard try AtomicFile.create(bytes, at: url) else { continue }
      } else {
        try AtomicFile.write(bytes, to: url)
      }
      try core.translating { try core.store.write { try $0.setFileBase(version.id, of: slot) } }
      return .updated(version)
    }
    throw StoreError(.io, "\(url.path) was written to while it was updated, again and again: update it when it is written")
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
      // Equal bytes are one version, whichever of them the file came from.
      if record.id == winner.id || (!record.tombstone && record.contents == winner.contents) { return .nothing }
    }
    guard let version = try transaction.version(winner.id) else { return .nothing }
    return .new(Version(version, isPinned: try transaction.isPinned(winner.id)), try SlotReading.bytes(of: winner, in: transaction))
  }

  /// The game is shown it, so a choice replaces it.
  private func view(in transaction: StoreTransaction) throws -> SlotView {
    let view = try Resolution.view(of: transaction.place(of: slot), in: transaction, policy: .newest)
    core.slotParents.show(slot, view.parents)
    return view
  }

  // MARK: Here and in the cloud

  /// How far what stands under the name has come; of a file that was edited and not captured, the version before.
  public func status() throws -> SlotStatus {
    try settle()
    return try SaveSlots(core: core).durableStatus(of: slot)
  }

  /// Whether its versions stay on this device.
  public var isLocal: Bool { get throws { try core.store.read { try $0.isLocal(slot) } } }

  /// Keeps its versions on this device from now on, durably, as `SaveSlots.keepLocal` does for a slot. The file itself isn't touched, on no device.
  ///
  /// What is in the file now isn't captured by this. Throws as `SaveSlots.keepLocal`.
  public func keepLocal(cloudCopy: CloudCopy) throws {
    try settle()
    try core.keepLocal(slot, removing: cloudCopy == .removed)
  }

  /// Takes `keepLocal` back, as `SaveSlots.syncAgain` does for a slot: its newest version is offered to the cloud.
  public func syncAgain() throws {
    try settle()
    try core.syncAgain(slot)
  }
}
