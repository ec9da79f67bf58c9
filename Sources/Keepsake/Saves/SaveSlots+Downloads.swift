public import KeepsakeArchive
import KeepsakeReplication
import KeepsakeStore

/// Saves of which only the record is on this device, because `Cloud.downloads` leaves the rest in the cloud.
extension SaveSlots {
  /// Brings what stands in the slot from the cloud to this device, durably; returns at once if it is here.
  ///
  ///     let download = Task { try await game.saves.download(.main) }      // download.cancel() ends it
  ///     for try await status in game.saves.statusUpdates(of: .main) {
  ///       if case .downloading(let fraction) = status.arrival { bar.draw(fraction) }
  ///       if status.isDownloaded { break }
  ///     }
  ///
  /// Cancelling the task ends it, and so does a failure. What came stays while the game runs, and the next try goes on from there; over a restart only whole parts
  /// of a save stay. If another device saves meanwhile, its save comes; where
  /// `Cloud.delivery` keeps that back, all that it keeps back is shown.
  ///
  /// - Throws: `GameDataError`: `notConnected`, `unreachable`, `refused`, or `missing` if the cloud hasn't got it any more; `CancellationError`; `StoreError` if
  ///   the disk takes nothing.
  public nonisolated(nonsending) func download<Value: Archivable>(_ slot: Slot<Value>) async throws { try await download(slot.name) }

  /// The same by name, for lists and tools.
  public nonisolated(nonsending) func download(_ slot: String) async throws {
    try waitForCaptures(in: slot)
    try await core.download(slot)
  }

  /// Lets go of what stands in the slot on this device: the cloud keeps it, and `download` brings it back. Durable when it returns.
  ///
  ///     try game.saves.evict(.chapter1, keepingHistory: false)      // room for the next one
  ///
  /// The slot stays listed, with its metadata. The room is used again by what is saved next; the store's file doesn't get smaller. Of a save that differs
  /// little from the one before, most of the bytes are those of its history. A slot that isn't here already, or is empty, stays as it is.
  ///
  /// - Parameter keepingHistory: Whether the older versions stay, which may be nowhere else. If not, all go but those that are pinned.
  /// - Throws: `GameDataError` with `misuse` if that would lose something, or change nothing: the slot isn't certain to be in the cloud, stays on this device,
  ///   is in conflict, or pinned, `Cloud.downloads` would bring it back at once, or other slots and versions have the same bytes; `StoreError` if the disk takes
  ///   nothing. Nothing has changed then.
  public func evict<Value: Archivable>(_ slot: Slot<Value>, keepingHistory: Bool) throws {
    try evict(slot.name, keepingHistory: keepingHistory)
  }

  /// The same by name, for lists and tools.
  public func evict(_ slot: String, keepingHistory: Bool) throws {
    try waitForCaptures(in: slot)
    try core.evict(slot, keepingHistory: keepingHistory)
  }
}

/// The same of a tracked file, whose versions are kept as those of a slot. The file itself stays where it is.
extension TrackedFile {
  /// Brings the version that stands under the name here, as `SaveSlots.download` does.
  public nonisolated(nonsending) func download() async throws {
    try settle()
    try await core.download(slot)
  }
}

extension GameCore {
  func download(_ slot: String) async throws {
    guard try store.read({ try $0.isNotDownloaded(slot) }) else { return }
    do {
      try await cloud.download(slot)
    } catch let error as GameDataError where error.code == .missing {
      // What replaced it may be here, and kept back.
      try cloud.deliver()
      guard try !store.read({ try $0.isNotDownloaded(slot) }) else { throw error }
    }
  }

  func evict(_ slot: String, keepingHistory: Bool) throws {
    let largest = cloud.largestDownload()
    let isDone = try translating {
      try store.write { transaction in
        func refuse(_ why: String) -> GameDataError { GameDataError(.misuse, "\"\(FileSlot.shown(slot))\" stays here: \(why)") }
        guard try !transaction.isLocal(slot) else { throw refuse("nothing else has it, as keepLocal says") }
        let heads = try transaction.heads(of: slot).compactMap(transaction.version)
        guard heads.count == 1 else { if heads.isEmpty { return false } else { throw refuse("it is in conflict: load and save it first") } }
        let record = heads[0].record
        guard !record.tombstone, try !transaction.isNotDownloaded(record) else { return false }
        let facts = try transaction.facts()
        let isThere = facts.container != nil && !facts.isRefused && heads[0].acknowledged && heads[0].offered
        guard isThere, try !transaction.outbox(limit: .max).contains(where: { $0.versions.contains(record.id) }) else {
          throw refuse("it isn't certain that the cloud has it: wait until its status is `stored`")
        }
        // What the cloud asked for, because it lost it, it isn't known to have.
        guard try record.contents.allSatisfy({ try transaction.cloudDepth(of: $0) != nil }) else {
          throw refuse("it isn't certain that the cloud has all of it")
        }
        guard try !transaction.isPinned(record.id) else { throw refuse("it is pinned") }
        guard let largest, record.length > largest else {
          throw refuse("it would come back at once, for `Cloud.downloads` says that saves of its size do")
        }
        guard try transaction.evict(record.id, keepingHistory: keepingHistory) else {
          throw refuse("other slots or versions have the same bytes, so that there is nothing to let go of")
        }
        return true
      }
    }
    guard isDone else { return }
    slotsDidChange()
    didCommit()
  }
}

extension GameDataError {
  /// Only the record of a save is here.
  static func notDownloaded(_ record: VersionRecord) -> GameDataError {
    GameDataError(
      .notDownloaded,
      "\"\(FileSlot.shown(LocalSlot.slot(at: record.slot)))\" is in the cloud, and not on this device: `download` brings its \(record.length) bytes"
    )
  }
}

extension StoreTransaction {
  /// Whether the slot shows a save, and nothing of that can be loaded before it was downloaded.
  func isNotDownloaded(_ slot: String) throws -> Bool {
    let live = try heads(of: place(of: slot)).compactMap(version).filter { !$0.record.tombstone }
    return try !live.isEmpty && live.allSatisfy { try isNotDownloaded($0.record) }
  }
}
