import KeepsakeReplication
import KeepsakeStore

/// The saved games of a `GameData`.
///
/// ```swift
/// var world = try game.saves.load(.main) ?? World()
/// try game.saves.capture(world, to: .main)       // returns immediately
/// try await game.saves.save(world, to: .main)    // returns when the save is durable
/// ```
///
/// Values are encoded and decoded on the caller's thread. Only bytes cross to other threads, so values need not be
/// `Sendable`.
///
/// A save replaces the version that the game loaded, or the game's own newest save since then. In a slot that the game
/// hasn't loaded since the data was opened, it replaces what the slot had at opening, or what `list`, `history` or a
/// query has shown of it since: so load before you save. What is replaced stays in the history. A save of another type
/// isn't replaced then: the new one is kept beside it, as a conflict, and an incident (`unreadable`) names both types.
///
/// A save never replaces a version that arrived from another device in the meantime: both are kept as a conflict, and
/// the slot's `ConflictPolicy` decides what `load` returns.
public final class SaveSlots: Sendable {
  let core: GameCore

  init(core: GameCore) { self.core = core }

  // MARK: Saving

  /// Encodes the value and queues it for saving, without waiting for the disk.
  ///
  /// Encoding runs on the calling thread. A value that equals the slot's newest version, with equal metadata, writes
  /// nothing. The call blocks only while 64 captures or 256 MiB wait for the disk.
  ///
  /// - Parameters:
  ///   - value: The value to save.
  ///   - slot: The slot to save it in.
  ///   - metadata: What lists show for this version.
  /// - Returns: A handle that reports when the version is durable.
  /// - Throws: `ArchiveError`, or the type's own error, if the value can't be encoded; `GameDataError` with `tooLarge`
  ///   if the value or its metadata is too large, `misuse` for an invalid slot name or metadata, or `closed`.
  @discardableResult
  public func capture<Value>(
    _ value: Value, to slot: Slot<Value>, _ metadata: SaveMetadata = SaveMetadata()
  ) throws -> Pending<Version> {
    Pending(try commit(save(value, to: slot, metadata)))
  }

  /// Captures with a deadline: throws `timedOut` if the disk is so far behind that it accepts nothing before the
  /// deadline.
  func capture<Value>(
    _ value: Value, to slot: Slot<Value>, _ metadata: SaveMetadata, until deadline: ContinuousClock.Instant
  ) throws -> Pending<Version> {
    let save = try save(value, to: slot, metadata)
    return Pending(try commit(save, within: max(deadline - .now, .zero)))
  }

  /// Saves the value and waits until it is durable.
  ///
  /// Encoding runs on the caller's actor.
  ///
  /// - Parameters:
  ///   - value: The value to save.
  ///   - slot: The slot to save it in.
  ///   - metadata: What lists show for this version.
  /// - Returns: The new version, or the newest one if nothing has changed.
  /// - Throws: As `capture`, and `StoreError` if the disk can't be written.
  @discardableResult
  public nonisolated(nonsending) func save<Value>(
    _ value: Value, to slot: Slot<Value>, _ metadata: SaveMetadata = SaveMetadata()
  ) async throws -> Version {
    try await capture(value, to: slot, metadata).value
  }

  /// Deletes the save in a slot, on every device. Durable on return.
  ///
  /// Earlier versions stay in the history if their bytes are on this device (`Cloud.downloads`). A save that another
  /// device makes without knowing of the delete restores the slot.
  ///
  /// - Parameter slot: The slot to empty.
  /// - Returns: The version that records the delete.
  /// - Throws: `GameDataError` and `StoreError` if the delete can't be written.
  @discardableResult
  public func delete<Value>(_ slot: Slot<Value>) throws -> Version { try delete(slot.name) }

  func save<Value>(
    _ value: Value, to slot: Slot<Value>, _ metadata: SaveMetadata
  ) throws -> SaveDraft {
    let bytes = try slot.coding.encode(value, writer: core.slotParents.writer(in: slot.name, of: core.store.writer))
    var draft = core.commits.draft(.bytes(bytes), to: slot.name, metadata)
    if core.slotParents.isUnseen(slot.name) { draft.typeCheck = try SlotDecoding.typeCheck(in: slot) }
    return draft
  }

  func commit(_ save: SaveDraft, within limit: Duration? = nil) throws -> PendingCommit<Version> {
    try core.commits.submit(saves: [save], within: limit).map { committed in
      guard let version = committed.versions.first else { throw StoreError(.io, "a save ended without a version") }
      return version
    }
  }

  // MARK: Loading

  /// Loads the save in a slot.
  ///
  /// Waits for earlier captures of the slot. In a conflict, the slot's policy makes one value of the saves; nothing is
  /// written. A damaged version is skipped in favor of the newest good one, and `GameData.incidents` reports it.
  ///
  /// After an error, the game's next save replaces nothing: it is kept beside what couldn't be loaded. From then on
  /// `load` returns that save: a side of a conflict that this program can't read is left out, whatever the policy, and
  /// the next save doesn't replace it. `GameData.incidents` reports it, and `Conflict.unreadable` lists it.
  ///
  /// - Parameters:
  ///   - slot: The slot to load.
  ///   - context: Passed to the value's decoding as `ArchiveReader.context`.
  /// - Returns: The value; nil if the slot is empty or deleted, as on the first run.
  /// - Throws: `ArchiveError` if a newer program wrote the save (`tooNew`), or it is of another type or doesn't fit the
  ///   type as it is declared now (`mismatch` and others, whose message names the slot and both types); in a conflict
  ///   only if none of the saves can be read, and then the error of the one that ranks first; `StoreError` if
  ///   it can't be read; `GameDataError` with `notDownloaded` if `Cloud.downloads` left it in the cloud, or `misuse`
  ///   for an invalid name.
  public func load<Value>(_ slot: Slot<Value>, context: Any? = nil) throws -> Value? {
    try Self.check(slot.name)
    do {
      let view = try resolver(slot, try read(slot), context).view()
      core.slotParents.loaded(slot.name, view.parents)
      for side in view.unreadable {
        core.events.report(
          Incident(
            kind: .unreadable, slot: slot.name, version: side.side.version.record.id,
            message:
              """
              a save in the slot "\(slot.name)" can't be read, so the slot was loaded without it, and it is kept: \
              \(side.error)
              """,
            date: core.now))
      }
      return view.value
    } catch {
      core.slotParents.loaded(slot.name, [])
      throw error
    }
  }

  /// Fetches changes from the cloud, for a limited time, and then loads the save in a slot.
  ///
  /// Use it to start from the newest save. Without a cloud, or if the cloud doesn't respond in time, it loads what is
  /// on this device; `CloudStatus.lastFetched` shows how old that may be. Changes that `Cloud.delivery` holds back are
  /// delivered first, and a save that `Cloud.downloads` left in the cloud is downloaded, which may take as long again.
  ///
  /// - Parameters:
  ///   - slot: The slot to load.
  ///   - limit: How long to wait for the cloud, and then for the download.
  ///   - context: As for `load`.
  /// - Returns: The value; nil if the slot is empty or deleted.
  /// - Throws: As `load`, and as `download` if a needed download fails.
  public nonisolated(nonsending) func fetch<Value>(
    _ slot: Slot<Value>, waitingUpTo limit: Duration, context: Any? = nil
  ) async throws -> Value? {
    try Self.check(slot.name)
    // The cloud's status shows why it can't be reached. What was received earlier can still be loaded.
    try? await core.fetchChanges(within: limit)
    try core.cloud.deliver()
    try await downloadContents(slot.name, within: limit)
    await core.slotParents.awaitCaptures(in: slot.name)
    return try load(slot, context: context)
  }

  /// Fetches changes from the cloud and loads the save in a slot; fails if the cloud doesn't respond in time.
  ///
  /// Use it where play needs the newest save.
  ///
  /// ```swift
  /// world = try await game.saves.fetch(.ranked, requiringResponseWithin: .seconds(10))
  /// ```
  ///
  /// - Parameters:
  ///   - slot: The slot to load.
  ///   - limit: How long to wait for the cloud, and then for the download.
  ///   - context: As for `load`.
  /// - Returns: The value; nil if the slot is empty or deleted.
  /// - Throws: As `Cloud.fetchChanges(within:)` and `load`.
  public nonisolated(nonsending) func fetch<Value>(
    _ slot: Slot<Value>, requiringResponseWithin limit: Duration, context: Any? = nil
  ) async throws -> Value? {
    try Self.check(slot.name)
    try await core.fetchChanges(within: limit)
    try core.cloud.deliver()
    try await downloadContents(slot.name, within: limit)
    await core.slotParents.awaitCaptures(in: slot.name)
    return try load(slot, context: context)
  }

  /// Downloads the contents of a slot if only the cloud has them. After a failed download the game may start afresh:
  /// its next save must replace nothing, as after a failed `load`.
  private nonisolated(nonsending) func downloadContents(_ slot: String, within limit: Duration) async throws {
    guard try core.store.read({ try $0.isNotDownloaded(slot) }) else { return }
    do {
      try await core.ask(within: limit) { [core] in try await core.download(slot) }
    } catch {
      core.slotParents.loaded(slot, [])
      throw error
    }
  }

  /// Reads a slot's saves after earlier captures, and reports damage.
  func read<Value>(_ slot: Slot<Value>) throws -> SlotReading {
    core.slotParents.waitForCaptures(in: slot.name)
    let reading = try core.store.read { transaction in
      try SlotReading.read(try transaction.key(of: slot.name).text, policy: slot.policy.order, in: transaction)
    }
    for damage in reading.damage {
      core.events.report(
        Incident(
          kind: .damagedVersion, slot: slot.name, version: damage.version, usedInstead: damage.usedInstead,
          message: damage.message, date: core.now))
    }
    if reading.sides.isEmpty, let notDownloaded = reading.notDownloaded.first {
      throw GameDataError.notDownloaded(notDownloaded)
    }
    if reading.sides.isEmpty, let damage = reading.damage.first {
      throw StoreError(.damaged, "nothing in the slot \"\(slot.name)\" can be read: \(damage.message)")
    }
    return reading
  }

  // MARK: Lists and history

  /// Lists every slot that has a save, sorted by name, with title, playtime, progress, thumbnail and the game's own
  /// metadata.
  ///
  /// Waits for earlier captures. Decodes no save and reads no contents: costs one query for all slots and one record
  /// for each, some tens of microseconds a slot.
  ///
  /// - Returns: One summary for each slot.
  /// - Throws: `StoreError` if the store can't be read.
  public func list() throws -> [SlotSummary] {
    for pending in core.slotParents.undecided() {
      // A capture that failed has already reported its error.
      _ = try? pending.wait()
    }
    let (slots, shown) = try summaries()
    core.slotParents.show(shown)
    return slots.sorted { $0.name < $1.name }
  }

  /// Returns every slot that has a durable save, and the heads of all slots.
  func summaries() throws -> (slots: [SlotSummary], heads: [String: [VersionID]]) {
    try core.store.read { transaction in
      var slots: [SlotSummary] = []
      var shown: [String: [VersionID]] = [:]
      let local = try transaction.localSlots()
      for (key, heads) in try transaction.headVersionsOfAllSlots() {
        let (name, isLocal) = (key.slot, key.isLocal)
        guard local.contains(name) == isLocal else { continue }
        let known = Dictionary(heads.map { ($0.version.record.id, $0) }) { first, _ in first }
        let view = try Resolution.view(
          heads: heads.map(\.version.record.id), policy: .mostProgress,
          record: transaction.sharedRecords(known.mapValues(\.version)))
        shown[name] = view.parents
        guard let winner = view.winner, let head = known[winner.id], !key.isFile else { continue }
        slots.append(
          SlotSummary(
            name: name, current: Version(head.version, isPinned: head.isPinned), isConflicted: view.isConflict,
            isLocal: isLocal,
            isDownloaded: view.heads.contains { known[$0.id]?.isNotDownloaded == false }))
      }
      return (slots, shown)
    }
  }

  /// Lists the kept versions of a slot, deletes included.
  ///
  /// - Parameter slot: The slot.
  /// - Returns: The versions, the most recently received first.
  /// - Throws: `GameDataError` with `misuse` for an invalid name; `StoreError` if the store can't be read.
  public func history<Value>(of slot: Slot<Value>) throws -> [Version] {
    try history(of: slot.name)
  }

  /// Loads one version as it was saved, independent of the slot's current state. Changes nothing.
  ///
  /// - Parameters:
  ///   - version: A version from `history`.
  ///   - slot: The slot that it belongs to.
  ///   - context: As for `load`.
  /// - Returns: The value of that version.
  /// - Throws: `GameDataError` with `missing` if the version isn't kept any more; otherwise as `load`.
  public func value<Value>(
    of version: VersionID, in slot: Slot<Value>, context: Any? = nil
  ) throws -> Value {
    let side = try core.store.read { transaction in
      try SlotReading.side(try readable(version, in: slot.name, transaction), in: transaction)
    }
    return try SlotDecoding.decode(side.bytes, in: slot, context: context)
  }

  /// Makes an earlier version the slot's newest. Durable on return.
  ///
  /// The version that it replaces stays in the history. Call `load` afterwards.
  ///
  /// - Parameters:
  ///   - version: A version from `history`.
  ///   - slot: The slot that it belongs to.
  /// - Returns: The new version.
  /// - Throws: `GameDataError` with `missing` if the version isn't kept any more, or `notDownloaded` if only the cloud
  ///   has its contents; `StoreError` if it can't be read or the disk can't be written.
  @discardableResult
  public func restore<Value>(_ version: VersionID, in slot: Slot<Value>) throws -> Version {
    try restore(version, in: slot.name)
  }

  /// Keeps a version and its contents until it is unpinned, regardless of the history rules. Durable on return.
  ///
  /// ```swift
  /// try game.saves.pin(version.id)    // before the final battle
  /// ```
  ///
  /// A pin belongs to this device and to the version: it isn't synced. Pinning twice writes nothing.
  ///
  /// - Parameter version: A version from `history`.
  /// - Throws: `GameDataError` with `missing` for a version that isn't kept any more, or that is a delete; `StoreError`
  ///   if the disk can't be written.
  public func pin(_ version: VersionID) throws { try setPinned(true, version) }

  /// Makes a pinned version subject to the history rules again, which may remove it immediately.
  ///
  /// - Parameter version: A pinned version.
  /// - Throws: As `pin`.
  public func unpin(_ version: VersionID) throws { try setPinned(false, version) }

  private func setPinned(_ isPinned: Bool, _ id: VersionID) throws {
    do {
      try core.store.write { transaction in
        guard try transaction.isPinned(id) != isPinned else { return }
        guard try transaction.version(id)?.record.tombstone == false else {
          throw StoreError(.missing, "there is no version \(id) on this device that can be pinned")
        }
        try transaction.setPinned(isPinned, id)
      }
    } catch let error as StoreError where error.code == .missing {
      throw GameDataError(.missing, error.message)
    }
    core.events.slotsDidChange()
  }

  func readable(_ id: VersionID, in slot: String, _ transaction: StoreTransaction) throws -> VersionRecord {
    guard let version = try transaction.version(id), version.record.key.slot == slot, !version.record.tombstone,
      try !transaction.wasPruned(version.record) || transaction.isNotDownloaded(version.record)
    else {
      throw GameDataError(.missing, "the slot \"\(slot)\" has no version \(id) that can be read")
    }
    return version.record
  }
}
