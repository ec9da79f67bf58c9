public import Foundation
public import KeepsakeArchive
public import KeepsakeReplication
import KeepsakeStore

/// One saved game as one file: for a bug report, for a friend, for a move by hand. docs/FORMAT.md says what is in it, and `keepsake inspect`
/// shows it.
extension SaveSlots {
  /// What stands in a slot, or one version of it, as the bytes of a file: the save, its metadata with the thumbnail, when it was saved, and
  /// as which version.
  ///
  ///     let file = try game.saves.export(.main)
  ///
  /// Of a conflict the side is exported that the slot's policy puts first. Costs decoding and compressing the save on this thread, and its
  /// bytes in memory some three times.
  ///
  /// - Parameters:
  ///   - version: This version, as `history` lists it, instead of what stands there.
  ///   - sealed: Puts the file under the game's seal, if it has one: then only a game with the same secret takes it, or reads it where the
  ///     seal is `sealed`. False gives a file that anybody can read and change; a game with a seal takes that back only if told so.
  /// - Throws: `GameDataError` with `missing` if the slot is empty or the version isn't kept here; `StoreError` if it can't be read.
  public func export<Value: Archivable>(
    _ slot: Slot<Value>, version: VersionID? = nil, sealed: Bool = true
  ) throws -> Data {
    try waitForCaptures(in: slot.name)
    let side = try core.store.read { transaction in
      if let version { return try SlotReading.side(try readable(version, in: slot.name, transaction), in: transaction) }
      let view = try Resolution.view(of: try transaction.place(of: slot.name), in: transaction, policy: slot.policy.order)
      guard let winner = view.winner else { throw GameDataError(.missing, "the slot \"\(slot.name)\" is empty") }
      return try SlotReading.side(winner, in: transaction)
    }
    return try SaveFile(side.version.record, bytes: side.bytes).encoded(sealed ? core.store.fileSeal : .none)
  }

  /// The same into the file at `url`, durably and as a whole or not at all. Replaces what is there.
  public func export<Value: Archivable>(
    _ slot: Slot<Value>, version: VersionID? = nil, sealed: Bool = true, to url: URL
  ) throws {
    try AtomicFile.write(export(slot, version: version, sealed: sealed), to: url)
  }

  /// Puts an exported save into a slot, as its newest version, durably. Load the slot afterwards.
  ///
  ///     let version = try game.saves.import(file, to: .main)
  ///
  /// What stood there is replaced and stays in the history, from where `restore` brings it back. It doesn't matter which slot
  /// or device the save is from. If it stands there already, nothing is written. Costs decoding the save once, to see that this game can load it.
  ///
  /// - Parameters:
  ///   - adoptsUnsealed: Takes a file without a seal although the game has one. Anybody can have changed it.
  ///   - context: As for `load`.
  /// - Throws: With nothing changed: `StoreError`, of which `misuse` is for a file that is no exported save, `damaged`, `tooLarge`,
  ///   `newerFormat` (update the game), `otherSeal` and `wrongSecret` for a file that isn't this game's or this player's, `tampered`;
  ///   `ArchiveError` if this game can't load what is in it.
  @discardableResult
  public func `import`<Value: Archivable>(
    _ file: Data, to slot: Slot<Value>, adoptsUnsealed: Bool = false, context: Any? = nil
  ) throws -> Version {
    let save = try SaveFile(file, core.store.fileSeal, adoptsUnsealed: adoptsUnsealed)
    _ = try Archive.decode(Value.self, from: save.bytes, context: context)
    return try commit(
      GameCore.Save(
        parents: core.slotParents.snapshot(slot.name), payload: .bytes(save.bytes), metadata: save.metadata,
        additionalParents: core.slotParents.shown(slot.name))
    ).wait()
  }

  /// The same from the file at `url`, whose beginning and size are looked at before the rest is read. Throws `StoreError` with `missing` if
  /// there is none, too.
  @discardableResult
  public func `import`<Value: Archivable>(
    from url: URL, to slot: Slot<Value>, adoptsUnsealed: Bool = false, context: Any? = nil
  ) throws -> Version {
    try `import`(SaveFile.contents(of: url), to: slot, adoptsUnsealed: adoptsUnsealed, context: context)
  }
}
