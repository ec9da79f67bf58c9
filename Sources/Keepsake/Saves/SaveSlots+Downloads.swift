import KeepsakeReplication
import KeepsakeStore

/// Downloading and evicting saves that `Cloud.downloads` leaves in the cloud.
extension SaveSlots {
  /// Downloads the save in a slot to this device. Returns immediately if it is already here.
  ///
  /// ```swift
  /// let download = Task { try await game.saves.download(.main) }    // download.cancel() stops it
  /// for try await status in game.saves.statusUpdates(of: .main) {
  ///   if case .downloading(let fraction) = status.arrival { bar.draw(fraction) }
  ///   if status.isDownloaded { break }
  /// }
  /// ```
  ///
  /// After a cancellation or a failure, the next call continues where the download stopped. Only complete parts of a
  /// save are kept across a restart. If another device saves in the meantime, its save is downloaded; if
  /// `Cloud.delivery` holds that back, everything held back is delivered.
  ///
  /// - Parameter slot: The slot to download.
  /// - Throws: `GameDataError` with `notConnected`, `unreachable`, `refused`, or `missing` if the cloud no longer has
  ///   the save, or `misuse` for an invalid name; `CancellationError`; `StoreError` if the disk can't be written.
  public nonisolated(nonsending) func download<Value>(_ slot: Slot<Value>) async throws {
    try await download(slot.name)
  }

  /// Downloads the save in a slot, by the slot's name.
  ///
  /// - Parameter slot: The slot's name.
  /// - Throws: As `download(_:)` with a `Slot`.
  public nonisolated(nonsending) func download(_ slot: String) async throws {
    let slot = try Self.checked(slot)
    await core.slotParents.awaitCaptures(in: slot)
    try await core.download(slot)
  }

  /// Removes the contents of a slot from this device; the cloud keeps them, and `download` downloads them again.
  /// Durable on return.
  ///
  /// ```swift
  /// try game.saves.evict(.chapter1, keepingHistory: false)    // room for the next one
  /// ```
  ///
  /// The slot stays in lists, with its metadata. Later saves reuse the space; the store's file doesn't shrink. A save
  /// that differs little from the version before shares most of its bytes with the history. A slot that is empty or
  /// already evicted stays as it is.
  ///
  /// - Parameters:
  ///   - slot: The slot to evict.
  ///   - keepingHistory: Whether older versions stay, which may exist nowhere else. If false, all but the pinned ones
  ///     are removed.
  /// - Throws: `GameDataError` with `misuse` for an invalid name, and if that would lose data or have no effect: the
  ///   cloud isn't known to have the save, the slot is local, in conflict or pinned, `Cloud.downloads` would download
  ///   it again immediately, or other slots or versions share its bytes; `StoreError` if the disk can't be written.
  ///   Nothing has changed then.
  public func evict<Value>(_ slot: Slot<Value>, keepingHistory: Bool) throws {
    try evict(slot.name, keepingHistory: keepingHistory)
  }

  /// Removes the contents of a slot from this device, by the slot's name.
  ///
  /// - Parameters:
  ///   - slot: The slot's name.
  ///   - keepingHistory: As for `evict(_:keepingHistory:)` with a `Slot`.
  /// - Throws: As `evict(_:keepingHistory:)` with a `Slot`.
  public func evict(_ slot: String, keepingHistory: Bool) throws {
    let slot = try Self.checked(slot)
    core.slotParents.waitForCaptures(in: slot)
    try core.evict(slot, keepingHistory: keepingHistory)
  }
}

/// Downloading the versions of a tracked file.
extension TrackedFile {
  /// Downloads the current version of the file to the store. The file on disk doesn't change.
  ///
  /// - Throws: As `SaveSlots.download`.
  public nonisolated(nonsending) func download() async throws {
    await core.slotParents.awaitCaptures(in: slot)
    try await core.download(slot)
  }
}

extension GameCore {
  func download(_ slot: String) async throws {
    guard try store.read({ try $0.isNotDownloaded(slot) }) else { return }
    do {
      try await cloud.download(slot)
    } catch let error as GameDataError where error.code == .missing {
      // The version that replaced it may be on this device, held back by `Cloud.delivery`.
      try cloud.deliver()
      guard try !store.read({ try $0.isNotDownloaded(slot) }) else { throw error }
    }
  }

  func evict(_ slot: String, keepingHistory: Bool) throws {
    let largest = cloud.largestDownload
    let isDone = try translating {
      try store.write { transaction in
        func refuse(_ why: String) -> GameDataError {
          GameDataError(.misuse, "\"\(SlotKey(text: slot).name)\" can't be evicted: \(why)")
        }
        guard try !transaction.isLocal(slot) else {
          throw refuse("it is kept only on this device, because of keepLocal")
        }
        let heads = try transaction.heads(of: slot).compactMap(transaction.version)
        guard heads.count == 1 else {
          if heads.isEmpty { return false } else { throw refuse("it is in conflict: load and save it first") }
        }
        let record = heads[0].record
        guard !record.tombstone, try !transaction.isNotDownloaded(record) else { return false }
        let facts = try transaction.facts()
        let isThere = facts.container != nil && !facts.isRefused && heads[0].acknowledged && heads[0].offered
        guard isThere, try !transaction.outbox(limit: .max).contains(where: { $0.versions.contains(record.id) }) else {
          throw refuse("it isn't certain that the cloud has it: wait until its status is `stored`")
        }
        // If the cloud asked for a content because it lost it, the cloud isn't known to have it.
        guard try record.contents.allSatisfy({ try transaction.cloudDepth(of: $0) != nil }) else {
          throw refuse("it isn't certain that the cloud has all of it")
        }
        guard try !transaction.isPinned(record.id) else { throw refuse("it is pinned") }
        guard let largest, record.length > largest else {
          throw refuse("it would be downloaded again immediately, because `Cloud.downloads` includes saves of its size")
        }
        guard try transaction.evict(record.id, keepingHistory: keepingHistory) else {
          throw refuse("other slots or versions have the same bytes, so no space would be freed")
        }
        return true
      }
    }
    guard isDone else { return }
    events.slotsDidChange()
    cloud.didCommit()
  }
}

extension GameDataError {
  /// The error for a save that isn't downloaded.
  static func notDownloaded(_ record: VersionRecord) -> GameDataError {
    GameDataError(
      .notDownloaded,
      """
      "\(record.key.name)" is in the cloud, but not on this device: call `download` to get its \(record.length) bytes
      """)
  }
}

extension StoreTransaction {
  /// Whether the slot has a save and none of its contents are on this device.
  func isNotDownloaded(_ slot: String) throws -> Bool {
    let live = try heads(of: key(of: slot)).compactMap(version).filter { !$0.record.tombstone }
    return try !live.isEmpty && live.allSatisfy { try isNotDownloaded($0.record) }
  }
}
