public import KeepsakeArchive
import KeepsakeReplication
import KeepsakeStore

/// The saved games.
///
///     var world = try game.saves.load(.main) ?? World()
///     try game.saves.capture(world, to: .main)              // returns at once
///     try await game.saves.save(world, to: .main)           // returns when it is durable
///
/// Values are encoded and decoded on the caller's thread; only bytes cross to others, so they need not be `Sendable`. What
/// a save replaces is what the game loaded, or its own newest save since, never what arrived meanwhile: that stays beside it
/// as a conflict, and the slot's policy says what `load` makes of it.
public final class SaveSlots: Sendable {
  let core: GameCore

  init(core: GameCore) { self.core = core }

  // MARK: Saving

  /// Takes the value as it is now and returns; it is durable when the `Pending` says so.
  ///
  /// Costs the encoding on this thread. A value equal to the slot's newest version, with equal metadata, writes nothing.
  /// Throws `ArchiveError` if it can't be encoded and `GameDataError` if it is too large. Blocks only when 64 captures or
  /// 256 MiB wait for the disk.
  @discardableResult
  public func capture<Value: Archivable>(
    _ value: Value, to slot: Slot<Value>, _ metadata: SaveMetadata = SaveMetadata()
  ) throws -> Pending<Version> {
    Pending(try commit(save(value, to: slot, metadata)))
  }

  /// The same; throws `timedOut` if the disk is so far behind that nothing is taken until the deadline.
  func capture<Value: Archivable>(
    _ value: Value, to slot: Slot<Value>, _ metadata: SaveMetadata, until deadline: ContinuousClock.Instant
  ) throws -> Pending<Version> {
    let save = try save(value, to: slot, metadata)
    return Pending(try commit(save, within: max(deadline - .now, .zero)))
  }

  /// Saves the value and returns when it is durable. Encodes on the caller's actor.
  @discardableResult
  public nonisolated(nonsending) func save<Value: Archivable>(
    _ value: Value, to slot: Slot<Value>, _ metadata: SaveMetadata = SaveMetadata()
  ) async throws -> Version {
    try await capture(value, to: slot, metadata).value
  }

  /// Empties the slot, on every device, durably. What stood there stays in the history, if its bytes are on this device (`Cloud.downloads`).
  ///
  /// A save made elsewhere without knowing of the delete brings the slot back.
  @discardableResult
  public func delete<Value: Archivable>(_ slot: Slot<Value>) throws -> Version {
    let save = GameCore.Save(
      parents: core.slotParents.snapshot(slot.name), payload: .tombstone, metadata: SaveMetadata(),
      additionalParents: core.slotParents.shown(slot.name))
    return try commit(save).wait()
  }

  func save<Value: Archivable>(
    _ value: Value, to slot: Slot<Value>, _ metadata: SaveMetadata
  ) throws -> GameCore.Save {
    let bytes = try Archive.encode(value, writer: core.slotParents.writer(in: slot.name, of: core.store.writer))
    return GameCore.Save(parents: core.slotParents.snapshot(slot.name), payload: .bytes(bytes), metadata: metadata)
  }

  func commit(_ save: GameCore.Save, within limit: Duration? = nil) throws -> PendingCommit<Version> {
    try core.commit(saves: [save], within: limit).map { committed in
      guard let version = committed.versions.first else { throw StoreError(.io, "a save ended without a version") }
      return version
    }
  }

  // MARK: Loading

  /// The saved game; nil if the slot is empty or deleted, as on the first run.
  ///
  /// Captures made before are waited for. Where devices saved without knowing of each other, the slot's policy makes one
  /// value of them; nothing is written. A damaged version is passed over for the newest good one, which
  /// `GameData.incidents` tells. Throws `ArchiveError` if the bytes are of a newer program (`tooNew`) or another type, and `StoreError` if
  /// they can't be read: the next save then stands beside them and replaces nothing. Neither does it replace a side of a
  /// conflict that this program couldn't read: merging and combining go on without it, choosing may pass it over. Throws
  /// `GameDataError.Code.notDownloaded` where `Cloud.downloads` left the save in the cloud.
  public func load<Value: Archivable>(_ slot: Slot<Value>, context: Any? = nil) throws -> Value? {
    try refuseLocal(slot.name)
    do {
      let view = try ConflictResolver(slot: slot, reading: try read(slot), context: context).view()
      core.slotParents.loaded(slot.name, .versions(view.parents))
      return view.value
    } catch {
      core.slotParents.loaded(slot.name, .versions([]))
      throw error
    }
  }

  /// The same, after this device has heard from its cloud, or has waited so long for it: to start from the newest.
  ///
  /// Without a cloud, or if it can't be reached in time, what is here is loaded; `Cloud.status` says when it was last heard. What
  /// `Cloud.delivery` kept back is shown first, all of it: whoever asks for the newest wants it now. What `Cloud.downloads` left in the cloud is brought,
  /// which may take as long again; where that fails this throws what `download` throws.
  public nonisolated(nonsending) func fetch<Value: Archivable>(
    _ slot: Slot<Value>, waitingUpTo limit: Duration, context: Any? = nil
  ) async throws -> Value? {
    // Why the cloud isn't heard shows in its status; what came before can be shown.
    try? await core.fetchChanges(within: limit)
    try core.cloud.deliver()
    try await downloadContents(slot.name, within: limit)
    return try load(slot, context: context)
  }

  /// The same where play needs the newest: throws if the cloud hasn't answered within the time, and gives nothing older then.
  ///
  ///     world = try await game.saves.fetch(.ranked, requiringResponseWithin: .seconds(10))
  ///
  /// Throws what `Cloud.fetchChanges` throws, and what `load` throws.
  public nonisolated(nonsending) func fetch<Value: Archivable>(
    _ slot: Slot<Value>, requiringResponseWithin limit: Duration, context: Any? = nil
  ) async throws -> Value? {
    try await core.fetchChanges(within: limit)
    try core.cloud.deliver()
    try await downloadContents(slot.name, within: limit)
    return try load(slot, context: context)
  }

  /// A game that doesn't get it may begin anew: that must replace nothing, as after a `load` that failed.
  private nonisolated(nonsending) func downloadContents(_ slot: String, within limit: Duration) async throws {
    guard try core.store.read({ try $0.isNotDownloaded(slot) }) else { return }
    do {
      try await core.ask(within: limit) { [core] in try await core.download(slot) }
    } catch {
      core.slotParents.loaded(slot, .versions([]))
      throw error
    }
  }

  /// The saves that stand beside each other in the slot; nil if there is no conflict.
  ///
  /// With any policy: those that merge or choose by themselves still let the game show what they did. Throws what decoding throws only if none of them
  /// can be read.
  public func conflict<Value: Archivable>(_ slot: Slot<Value>, context: Any? = nil) throws -> Conflict<Value>? {
    let reading = try read(slot)
    guard reading.sides.count > 1 else { return nil }
    let resolver = ConflictResolver(slot: slot, reading: reading, context: context)
    let decoded = try resolver.decoded()
    return Conflict(
      sides: decoded.readable.map { Conflict.Side(version: $0.side.summary, value: $0.value) },
      unreadable: decoded.unreadable.map { Conflict.UnreadableSide(version: $0.side.summary, error: $0.error) },
      ancestor: resolver.ancestor(), heads: resolver.parents(without: decoded.unreadable.map(\.side)), slot: slot.name)
  }

  /// Ends a conflict with `value`: one of its sides, or what the game made of them. Replaces every side that `conflict`
  /// showed; what arrived since stands beside it.
  @discardableResult
  public func resolve<Value: Archivable>(
    _ conflict: Conflict<Value>, with value: Value, _ metadata: SaveMetadata = SaveMetadata()
  ) throws -> Pending<Version> {
    let bytes = try Archive.encode(value, writer: core.slotParents.writer(in: conflict.slot, of: core.store.writer))
    // What the game saved while the player was choosing is replaced too: it came from one of the sides.
    return Pending(
      try commit(
        GameCore.Save(
          parents: core.slotParents.snapshot(conflict.slot), payload: .bytes(bytes), metadata: metadata,
          additionalParents: conflict.heads)))
  }

  private func read<Value: Archivable>(_ slot: Slot<Value>) throws -> SlotReading {
    try waitForCaptures(in: slot.name)
    let reading = try core.store.read { transaction in
      try SlotReading.read(try transaction.place(of: slot.name), policy: slot.policy.order, in: transaction)
    }
    for damage in reading.damage {
      core.report(
        Incident(
          kind: .damagedVersion, slot: slot.name, version: damage.version, usedInstead: damage.usedInstead,
          message: damage.message, date: core.now))
    }
    if reading.sides.isEmpty, let notDownloaded = reading.notDownloaded.first { throw GameDataError.notDownloaded(notDownloaded) }
    if reading.sides.isEmpty, let damage = reading.damage.first {
      throw StoreError(.damaged, "nothing in the slot \"\(slot.name)\" can be read: \(damage.message)")
    }
    return reading
  }

  /// Loading decides what the next save replaces: not for the versions of a tracked file.
  func refuseLocal(_ slot: String) throws {
    guard !LocalSlot.contains(slot) else { throw GameDataError(.misuse, "a slot's name has no control characters") }
    guard !FileSlot.contains(slot) else { throw GameDataError(.misuse, "names that begin so are for tracked files") }
  }

  /// What was captured before comes before what is read now. A capture that failed has told so itself.
  func waitForCaptures(in slot: String) throws {
    guard let pending = core.slotParents.pending(in: slot) else { return }
    do {
      _ = try pending.wait()
    } catch {
      return
    }
  }

  // MARK: Lists and history

  /// Every slot that has a save, sorted by name, with title, playtime, progress, thumbnail and the game's own metadata.
  ///
  /// Captures made before are waited for. No save is decoded, nor even read: costs one query for all slots and the record of what each
  /// shows, some tens of microseconds a slot.
  public func list() throws -> [SlotSummary] {
    for pending in core.slotParents.undecided() {
      // One that failed has told so itself.
      _ = try? pending.wait()
    }
    let (slots, shown) = try summaries()
    core.slotParents.show(shown)
    return slots.sorted { $0.name < $1.name }
  }

  /// Every slot that has a save, as it is durable, and the heads of all.
  func summaries() throws -> (slots: [SlotSummary], heads: [String: [VersionID]]) {
    try core.store.read { transaction in
      var slots: [SlotSummary] = []
      var shown: [String: [VersionID]] = [:]
      let local = try transaction.localSlots()
      for (place, heads) in try transaction.headVersionsOfAllSlots() {
        let (name, isLocal) = (LocalSlot.slot(at: place), LocalSlot.contains(place))
        guard local.contains(name) == isLocal else { continue }
        let known = Dictionary(heads.map { ($0.version.record.id, $0) }) { first, _ in first }
        let view = try Resolution.view(
          heads: heads.map(\.version.record.id), policy: .mostProgress, record: transaction.sharedRecords(known.mapValues(\.version)))
        shown[name] = view.parents
        guard let winner = view.winner, let head = known[winner.id], !FileSlot.contains(name) else { continue }
        slots.append(
          SlotSummary(
            name: name, current: Version(head.version, isPinned: head.isPinned), isConflicted: view.isConflict, isLocal: isLocal,
            isDownloaded: view.heads.contains { known[$0.id]?.isNotDownloaded == false }))
      }
      return (slots, shown)
    }
  }

  /// The versions that are kept of a slot, the one known last first; deletes included.
  public func history<Value: Archivable>(of slot: Slot<Value>) throws -> [Version] {
    try history(of: slot.name)
  }

  /// The same by name, for tools.
  public func history(of slot: String) throws -> [Version] {
    try waitForCaptures(in: slot)
    return try core.store.read { transaction in
      core.slotParents.show(slot, try transaction.heads(of: try transaction.place(of: slot)))
      let pinned = try transaction.pinned(in: slot)
      return try transaction.wholeHistory(of: slot).filter(SlotMove.isOfGame).map { Version($0, isPinned: pinned.contains($0.record.id)) }
    }
  }

  /// One version as it was saved, whatever stands in the slot now. Changes nothing.
  public func value<Value: Archivable>(
    of version: VersionID, in slot: Slot<Value>, context: Any? = nil
  ) throws -> Value {
    let side = try core.store.read { transaction in
      try SlotReading.side(try readable(version, in: slot.name, transaction), in: transaction)
    }
    return try Archive.decode(Value.self, from: side.bytes, context: context)
  }

  /// Brings a version back as the slot's newest, durably. What it replaces stays in the history. Load the slot afterwards.
  @discardableResult
  public func restore<Value: Archivable>(_ version: VersionID, in slot: Slot<Value>) throws -> Version {
    let side = try core.store.read { transaction in
      // Read whole, so that nothing damaged is brought back.
      try SlotReading.side(try readable(version, in: slot.name, transaction), in: transaction)
    }
    let record = side.version.record
    let save = GameCore.Save(
      parents: core.slotParents.snapshot(slot.name), payload: .contents(record.contents, length: record.length),
      metadata: record.metadata, additionalParents: core.slotParents.shown(slot.name))
    return try commit(save).wait()
  }

  /// Keeps a version, with its contents, until it is unpinned, whatever the rules for history say. Durable when it returns.
  ///
  ///     try game.saves.pin(version.id)          // before the final battle
  ///
  /// A pin says what this device keeps: it isn't synced, and stays with the version, not with the slot. Pinning twice writes nothing. Throws `GameDataError` with `missing` for a version that isn't kept here any more, or a delete.
  public func pin(_ version: VersionID) throws { try setPinned(true, version) }

  /// Lets a version go by the rules again: it may be gone at once, if they don't name it.
  public func unpin(_ version: VersionID) throws { try setPinned(false, version) }

  private func setPinned(_ isPinned: Bool, _ id: VersionID) throws {
    do {
      try core.store.write { transaction in
        guard try transaction.isPinned(id) != isPinned else { return }
        guard try transaction.version(id)?.record.tombstone == false else {
          throw StoreError(.missing, "there is no version \(id) here that could be pinned")
        }
        try transaction.setPinned(isPinned, id)
      }
    } catch let error as StoreError where error.code == .missing {
      throw GameDataError(.missing, error.message)
    }
    core.slotsDidChange()
  }

  func readable(_ id: VersionID, in slot: String, _ transaction: StoreTransaction) throws -> VersionRecord {
    guard let version = try transaction.version(id), LocalSlot.slot(at: version.record.slot) == slot, !version.record.tombstone,
      try !transaction.wasPruned(version.record) || transaction.isNotDownloaded(version.record)
    else {
      throw GameDataError(.missing, "the slot \"\(slot)\" has no version \(id) that could be read")
    }
    return version.record
  }
}
