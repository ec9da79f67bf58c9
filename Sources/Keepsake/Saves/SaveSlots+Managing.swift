public import KeepsakeArchive
public import KeepsakeReplication
import KeepsakeStore

/// What a screen of saved games offers beside loading and deleting. Nothing is decoded for it, so saves of a newer game can be
/// moved about as well.
extension SaveSlots {
  /// Puts what stands in `slot` into `other` too, durably. Costs a few hundred bytes: the save itself is kept once.
  ///
  ///     try game.saves.copy(.main, to: "before the battle")
  ///
  /// What stood in `other` is replaced and stays in its history; load it afterwards, if the game is playing in it. Of a conflict the side
  /// is copied that the slot's policy puts first. History and pins stay where they are.
  ///
  /// - Parameter metadata: What the copy says about itself; that of the original, if nil.
  /// - Throws: `GameDataError` with `missing` if `slot` is empty, `misuse` for a name that can't be, and if `slot` stays on this device and `other` doesn't;
  ///   `StoreError` if the save can't be read.
  @discardableResult
  public func copy<Value: Archivable>(
    _ slot: Slot<Value>, to other: Slot<Value>, _ metadata: SaveMetadata? = nil
  ) throws -> Version {
    try refuse(slot, to: other)
    return try commit(move(try currentSave(in: slot).record, to: other.name, metadata)).wait()
  }

  /// Gives a slot another name, on every device, durably: the save stands in `other` then, and `slot` is empty. For another title see
  /// `setMetadata`.
  ///
  /// What stood in `other` is replaced and stays in its history. The history of `slot` stays under its old name, from where
  /// `restore` brings it back. Both happen in one commit, which takes a few hundred bytes.
  ///
  /// - Throws: As `copy`, and `GameDataError` with `misuse` while the slot is in conflict: load and save it first, or resolve it.
  @discardableResult
  public func rename<Value: Archivable>(_ slot: Slot<Value>, to other: Slot<Value>) throws -> Version {
    try refuse(slot, to: other)
    let view = try currentSave(in: slot, alone: true)
    let delete = GameCore.Save(
      parents: core.slotParents.snapshot(slot.name), payload: .tombstone, metadata: SaveMetadata(), additionalParents: view.parents)
    let committed = try core.commit(saves: [move(view.record, to: other.name, nil), delete]).wait()
    guard let version = committed.versions.first else { throw StoreError(.io, "a save ended without a version") }
    return version
  }

  /// Changes what a list shows of a slot (its title, most often) and leaves the save as it is, durably.
  ///
  ///     var metadata = summary.current.metadata
  ///     metadata.title = "Castle, before the flood"
  ///     try game.saves.setMetadata(metadata, of: Slot<World>(summary.name))
  ///
  /// Makes a version of a few hundred bytes; equal metadata writes nothing. A game that plays in the slot needn't load it again. Throws as
  /// `rename`.
  @discardableResult
  public func setMetadata<Value: Archivable>(_ metadata: SaveMetadata, of slot: Slot<Value>) throws -> Version {
    let view = try currentSave(in: slot, alone: true)
    guard view.record.metadata != metadata else { return view.version }
    return try commit(
      GameCore.Save(
        parents: core.slotParents.snapshot(slot.name), payload: .contents(view.record.contents, length: view.record.length),
        metadata: metadata, additionalParents: view.parents, redescribes: view.record.id)
    ).wait()
  }

  /// What a slot shows, read whole, so that nothing damaged is carried on.
  private struct CurrentSave {
    var record: VersionRecord
    var version: Version
    var parents: [VersionID]
  }

  private func currentSave<Value: Archivable>(in slot: Slot<Value>, alone: Bool = false) throws -> CurrentSave {
    try refuseLocal(slot.name)
    try waitForCaptures(in: slot.name)
    return try core.store.read { transaction in
      let view = try Resolution.view(of: try transaction.place(of: slot.name), in: transaction, policy: slot.policy.order)
      guard let winner = view.winner else { throw GameDataError(.missing, "the slot \"\(slot.name)\" is empty") }
      guard !alone || !view.isConflict else {
        throw GameDataError(
          .misuse, "devices saved the slot \"\(slot.name)\" without knowing of each other: load and save it first")
      }
      let side = try SlotReading.side(winner, in: transaction)
      return CurrentSave(record: winner, version: side.summary, parents: view.parents)
    }
  }

  private func move(_ record: VersionRecord, to slot: String, _ metadata: SaveMetadata?) -> GameCore.Save {
    GameCore.Save(
      parents: core.slotParents.snapshot(slot), payload: .contents(record.contents, length: record.length),
      metadata: metadata ?? record.metadata, additionalParents: core.slotParents.shown(slot))
  }

  /// Nothing of a slot that stays on this device goes to a cloud by a detour.
  private func refuse<Value>(_ slot: Slot<Value>, to other: Slot<Value>) throws {
    guard slot.name != other.name else {
      throw GameDataError(.misuse, "\"\(slot.name)\" and \"\(other.name)\" are one slot")
    }
    guard try core.store.read({ try !$0.isLocal(slot.name) || $0.isLocal(other.name) }) else {
      throw GameDataError(
        .misuse, "\"\(slot.name)\" stays on this device, and \"\(other.name)\" doesn't: use keepLocal on that first, or syncAgain on this")
    }
  }
}
