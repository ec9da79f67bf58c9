public import KeepsakeReplication
import KeepsakeStore

/// Copying, renaming and describing saves. Nothing is decoded, so saves of a newer game work too.
extension SaveSlots {
  /// Copies the save of a slot to another slot. Durable on return.
  ///
  /// ```swift
  /// try game.saves.copy(.main, to: .beforeTheBattle)
  /// ```
  ///
  /// The version that it replaces in `other` stays in that slot's history; call `load` if the game is playing in it. In
  /// a conflict, the side that the slot's policy ranks first is copied. History and pins aren't copied. Costs a few
  /// hundred bytes: the contents are stored once.
  ///
  /// - Parameters:
  ///   - slot: The slot to copy.
  ///   - other: The slot to copy it to.
  ///   - metadata: The copy's metadata; the original's if nil.
  /// - Returns: The new version of `other`.
  /// - Throws: `GameDataError` with `missing` if `slot` is empty, `notDownloaded` if only the cloud has the contents of
  ///   its save, `misuse` for an invalid name or metadata, if both are the same slot, or if `slot` is local and `other`
  ///   isn't, or `tooLarge` for too much metadata; `StoreError` if the save can't be read or the disk can't be written.
  @discardableResult
  public func copy<Value>(
    _ slot: Slot<Value>, to other: Slot<Value>, _ metadata: SaveMetadata? = nil
  ) throws -> Version {
    try copy(slot.name, to: other.name, metadata, ranking: slot.policy.order)
  }

  /// Copies the save of a slot to another slot, by the slots' names. In a conflict, the side with the most progress is
  /// copied.
  ///
  /// - Parameters:
  ///   - slot: The name of the slot to copy.
  ///   - other: The name of the slot to copy it to.
  ///   - metadata: The copy's metadata; the original's if nil.
  /// - Returns: The new version of `other`.
  /// - Throws: As `copy(_:to:_:)` with a `Slot`.
  @discardableResult
  public func copy(_ slot: String, to other: String, _ metadata: SaveMetadata? = nil) throws -> Version {
    try copy(slot, to: other, metadata, ranking: .mostProgress)
  }

  private func copy(
    _ slot: String, to other: String, _ metadata: SaveMetadata?, ranking: SavePolicy
  ) throws -> Version {
    let (slot, other) = (try Self.checked(slot), try Self.checked(other))
    try refuse(slot, to: other)
    return try commit(move(try currentSave(in: slot, ranking: ranking).record, to: other, metadata)).wait()
  }

  /// Moves a save to another slot name, on every device: `other` has the save then, and `slot` is empty. Durable on
  /// return.
  ///
  /// The version that it replaces in `other` stays in that slot's history. The history of `slot` stays under the old
  /// name, where `restore` can restore it. Both changes are one commit of a few hundred bytes. To change only the
  /// title, use `setMetadata`.
  ///
  /// - Parameters:
  ///   - slot: The slot to rename.
  ///   - other: The slot with the new name.
  /// - Returns: The new version of `other`.
  /// - Throws: As `copy`, and `GameDataError` with `misuse` while the slot is in conflict: load and save it first, or
  ///   resolve it.
  @discardableResult
  public func rename<Value>(_ slot: Slot<Value>, to other: Slot<Value>) throws -> Version {
    try rename(slot.name, to: other.name)
  }

  /// Moves a save to another slot name, by the slots' names.
  ///
  /// - Parameters:
  ///   - slot: The name of the slot to rename.
  ///   - other: The new name.
  /// - Returns: The new version of `other`.
  /// - Throws: As `rename(_:to:)` with a `Slot`.
  @discardableResult
  public func rename(_ slot: String, to other: String) throws -> Version {
    let (slot, other) = (try Self.checked(slot), try Self.checked(other))
    try refuse(slot, to: other)
    let view = try currentSave(in: slot)
    let delete = core.commits.draft(.tombstone, to: slot, additionalParents: view.parents)
    let committed = try core.commits.submit(saves: [move(view.record, to: other, nil), delete]).wait()
    guard let version = committed.versions.first else { throw StoreError(.io, "a save ended without a version") }
    return version
  }

  /// Changes what lists show for a slot, such as its title, without changing the save. Durable on return.
  ///
  /// ```swift
  /// var metadata = summary.current.metadata
  /// metadata.title = "Castle, before the flood"
  /// try game.saves.setMetadata(metadata, of: summary.name)
  /// ```
  ///
  /// Makes a version of a few hundred bytes; equal metadata writes nothing. A game that plays in the slot needn't load
  /// it again.
  ///
  /// - Parameters:
  ///   - metadata: The new metadata.
  ///   - slot: The slot.
  /// - Returns: The new version, or the current one if nothing has changed.
  /// - Throws: As `rename`.
  @discardableResult
  public func setMetadata<Value>(_ metadata: SaveMetadata, of slot: Slot<Value>) throws -> Version {
    try setMetadata(metadata, of: slot.name)
  }

  /// Changes what lists show for a slot, by the slot's name.
  ///
  /// - Parameters:
  ///   - metadata: The new metadata.
  ///   - slot: The slot's name.
  /// - Returns: The new version, or the current one if nothing has changed.
  /// - Throws: As `setMetadata(_:of:)` with a `Slot`.
  @discardableResult
  public func setMetadata(_ metadata: SaveMetadata, of slot: String) throws -> Version {
    let slot = try Self.checked(slot)
    let view = try currentSave(in: slot)
    guard view.record.metadata != metadata else { return view.version }
    return try commit(
      core.commits.draft(
        .stored(view.record.contents, length: view.record.length), to: slot, metadata,
        additionalParents: view.parents,
        redescribing: view.record.id)
    ).wait()
  }

  /// The save that a slot shows, read completely, so that nothing damaged is copied.
  private struct CurrentSave {
    var record: VersionRecord
    var version: Version
    var parents: [VersionID]
  }

  /// Returns the slot's save; in a conflict the one that is ranked first, or, without a ranking, throws `misuse`.
  private func currentSave(in slot: String, ranking: SavePolicy? = nil) throws -> CurrentSave {
    core.slotParents.waitForCaptures(in: slot)
    return try core.store.read { transaction in
      let view = try Resolution.view(
        of: try transaction.key(of: slot), in: transaction, policy: ranking ?? .mostProgress)
      guard let winner = view.winner else { throw GameDataError(.missing, "the slot \"\(slot)\" is empty") }
      guard ranking != nil || !view.isConflict else {
        throw GameDataError(.misuse, "the slot \"\(slot)\" is in conflict: load and save it first")
      }
      let side = try SlotReading.side(winner, in: transaction)
      return CurrentSave(record: winner, version: side.summary, parents: view.parents)
    }
  }

  private func move(_ record: VersionRecord, to slot: String, _ metadata: SaveMetadata?) -> SaveDraft {
    core.commits.draft(
      .stored(record.contents, length: record.length), to: slot, metadata ?? record.metadata,
      additionalParents: core.slotParents.shown(slot))
  }

  /// Throws if both slots are the same, or if a local slot's save would get into a slot that isn't local, and so to a
  /// cloud.
  private func refuse(_ slot: String, to other: String) throws {
    guard slot != other else {
      throw GameDataError(.misuse, "\"\(slot)\" and \"\(other)\" are the same slot")
    }
    guard try core.store.read({ try !$0.isLocal(slot) || $0.isLocal(other) }) else {
      throw GameDataError(
        .misuse,
        """
        "\(slot)" stays on this device, but "\(other)" doesn't: first call keepLocal on the latter, or \
        syncAgain on the former
        """)
    }
  }
}
