public import Foundation
public import KeepsakeReplication
import KeepsakeStore

/// Exporting and importing one save as a file: for a bug report, for another player, or to move it by hand.
/// docs/FORMAT.md describes the file, and `keepsake inspect` shows it.
extension SaveSlots {
  /// Exports a save as the bytes of a file: the save, its metadata with the thumbnail, when it was saved, and its
  /// version.
  ///
  /// ```swift
  /// let file = try game.saves.export(.main)
  /// ```
  ///
  /// In a conflict, the side that the slot's policy ranks first is exported. Costs decoding and compressing the save on
  /// the calling thread, and about three times its size in memory.
  ///
  /// - Parameters:
  ///   - slot: The slot to export.
  ///   - version: A version from `history`; the current save if nil.
  ///   - sealed: Whether to put the file under the game's seal, if it has one. Only a game with the same secret can
  ///     import a sealed file, and read it if the seal encrypts. An unsealed file can be read and changed by anyone; a
  ///     game with a seal imports it only with `adoptsUnsealed`.
  /// - Returns: The bytes of the file.
  /// - Throws: `GameDataError` with `missing` if the slot is empty or the version isn't kept, or `misuse` for an
  ///   invalid name; `StoreError` if the save can't be read.
  public func export<Value>(
    _ slot: Slot<Value>, version: VersionID? = nil, sealed: Bool = true
  ) throws -> Data {
    try export(slot.name, version, sealed, ranking: slot.policy.order)
  }

  /// Exports a save as the bytes of a file, by the slot's name. In a conflict, the side with the most progress is
  /// exported.
  ///
  /// - Parameters:
  ///   - slot: The name of the slot to export.
  ///   - version: A version from `history`; the current save if nil.
  ///   - sealed: Whether to put the file under the game's seal, if it has one.
  /// - Returns: The bytes of the file.
  /// - Throws: As `export(_:version:sealed:)` with a `Slot`.
  public func export(_ slot: String, version: VersionID? = nil, sealed: Bool = true) throws -> Data {
    try export(slot, version, sealed, ranking: .mostProgress)
  }

  private func export(_ slot: String, _ version: VersionID?, _ sealed: Bool, ranking: SavePolicy) throws -> Data {
    let slot = try Self.checked(slot)
    core.slotParents.waitForCaptures(in: slot)
    let side = try core.store.read { transaction in
      if let version { return try SlotReading.side(try readable(version, in: slot, transaction), in: transaction) }
      let view = try Resolution.view(of: try transaction.key(of: slot), in: transaction, policy: ranking)
      guard let winner = view.winner else { throw GameDataError(.missing, "the slot \"\(slot)\" is empty") }
      return try SlotReading.side(winner, in: transaction)
    }
    return try SaveFile(side.version.record, bytes: side.bytes).encoded(sealed ? core.store.base.fileSeal : .none)
  }

  /// Exports a save to a file, atomically and durably. Replaces an existing file.
  ///
  /// - Parameters:
  ///   - slot: The slot to export.
  ///   - version: A version from `history`; the current save if nil.
  ///   - sealed: As for `export(_:version:sealed:)`.
  ///   - url: The file to write.
  /// - Throws: As `export(_:version:sealed:)`, and `StoreError` if the file can't be written.
  public func export<Value>(
    _ slot: Slot<Value>, version: VersionID? = nil, sealed: Bool = true, to url: URL
  ) throws {
    try AtomicFile.write(export(slot, version: version, sealed: sealed), to: url)
  }

  /// Exports a save to a file, by the slot's name.
  ///
  /// - Parameters:
  ///   - slot: The name of the slot to export.
  ///   - version: A version from `history`; the current save if nil.
  ///   - sealed: Whether to put the file under the game's seal, if it has one.
  ///   - url: The file to write.
  /// - Throws: As `export(_:version:sealed:to:)` with a `Slot`.
  public func export(_ slot: String, version: VersionID? = nil, sealed: Bool = true, to url: URL) throws {
    try AtomicFile.write(export(slot, version: version, sealed: sealed), to: url)
  }

  /// Imports an exported save as the slot's newest version. Durable on return.
  ///
  /// ```swift
  /// let version = try game.saves.import(file, to: .main)
  /// ```
  ///
  /// The version that it replaces stays in the history, and can be restored with `restore`. The save may be from any
  /// slot and any device, but both it and the slot's current save must be of the slot's type. If the slot already has
  /// this save, nothing is written. Costs decoding the save once, to check that this game can load it, and reading the
  /// slot's current save. Call `load` afterwards.
  ///
  /// - Parameters:
  ///   - file: The bytes of an exported file.
  ///   - slot: The slot to import it to.
  ///   - adoptsUnsealed: Whether to accept a file without a seal although the game has one. Anyone may have changed
  ///     such a file.
  ///   - context: As for `load`.
  /// - Returns: The new version.
  /// - Throws: `StoreError` with `misuse` for a file that isn't an exported save, `damaged`, `tooLarge`, `newerFormat`
  ///   (update the game), `otherSeal` or `wrongSecret` for another game's or player's file, or `tampered`;
  ///   `ArchiveError` if this game can't load the save, and with `mismatch` if it, or what the slot has now, is of
  ///   another type. Nothing has changed then.
  @discardableResult
  public func `import`<Value>(
    _ file: Data, to slot: Slot<Value>, adoptsUnsealed: Bool = false, context: Any? = nil
  ) throws -> Version {
    let save = try SaveFile(file, core.store.base.fileSeal, adoptsUnsealed: adoptsUnsealed)
    _ = try SlotDecoding.decode(save.bytes, in: slot, context: context)
    try checkType(of: slot)
    return try commit(
      core.commits.draft(
        .bytes(save.bytes), to: slot.name, save.metadata, additionalParents: core.slotParents.shown(slot.name))
    ).wait()
  }

  /// Throws `mismatch` if a head of the slot is of another type: the import would replace it.
  private func checkType<Value>(of slot: Slot<Value>) throws {
    try Self.check(slot.name)
    core.slotParents.waitForCaptures(in: slot.name)
    let heads = try core.store.read { transaction in
      try Resolution.view(of: try transaction.key(of: slot.name), in: transaction, policy: slot.policy.order).heads
        .compactMap { head -> Data? in
          do {
            return try SlotReading.bytes(of: head, in: transaction)
          } catch let error as GameDataError where error.code == .notDownloaded {
            return nil
          } catch let error as StoreError where error.code == .damaged || error.code == .missing {
            // Its type can't be known any more. `load` reports the damage.
            return nil
          }
        }
    }
    for bytes in heads { try SlotDecoding.checkType(of: bytes, in: slot) }
  }

  /// Imports an exported save from a file.
  ///
  /// The file's header and size are checked before the rest is read.
  ///
  /// - Parameters:
  ///   - url: The file to read.
  ///   - slot: The slot to import it to.
  ///   - adoptsUnsealed: As for `import(_:to:adoptsUnsealed:context:)`.
  ///   - context: As for `load`.
  /// - Returns: The new version.
  /// - Throws: As `import(_:to:adoptsUnsealed:context:)`, and `StoreError` with `missing` if there is no file.
  @discardableResult
  public func `import`<Value>(
    from url: URL, to slot: Slot<Value>, adoptsUnsealed: Bool = false, context: Any? = nil
  ) throws -> Version {
    try `import`(SaveFile.contents(of: url), to: slot, adoptsUnsealed: adoptsUnsealed, context: context)
  }
}
