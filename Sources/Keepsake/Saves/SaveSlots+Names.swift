public import KeepsakeReplication
import KeepsakeStore

/// Slots by their plain names, as `list` returns them: for menus and tools, which know no type. Calls that decode no
/// save have such a form next to the one with a `Slot`.
extension SaveSlots {
  /// Deletes the save in a slot, by the slot's name.
  ///
  /// ```swift
  /// for slot in try game.saves.list() where slot.name.hasPrefix("autosave ") { try game.saves.delete(slot.name) }
  /// ```
  ///
  /// - Parameter slot: The slot's name.
  /// - Returns: The version that records the delete.
  /// - Throws: As `delete(_:)` with a `Slot`.
  @discardableResult
  public func delete(_ slot: String) throws -> Version {
    let slot = try Self.checked(slot)
    return try commit(core.commits.draft(.tombstone, to: slot, additionalParents: core.slotParents.shown(slot))).wait()
  }

  /// Lists the kept versions of a slot, by the slot's name.
  ///
  /// - Parameter slot: The slot's name.
  /// - Returns: The versions, the most recently received first.
  /// - Throws: As `history(of:)` with a `Slot`.
  public func history(of slot: String) throws -> [Version] {
    let slot = try Self.checked(slot)
    core.slotParents.waitForCaptures(in: slot)
    return try core.store.read { transaction in
      core.slotParents.show(slot, try transaction.heads(of: try transaction.key(of: slot)))
      let pinned = try transaction.pinned(in: slot)
      return try transaction.wholeHistory(of: slot).filter(SlotMove.isOfGame).map {
        Version($0, isPinned: pinned.contains($0.record.id))
      }
    }
  }

  /// Makes an earlier version the slot's newest, by the slot's name.
  ///
  /// - Parameters:
  ///   - version: A version from `history`.
  ///   - slot: The name of the slot that it belongs to.
  /// - Returns: The new version.
  /// - Throws: As `restore(_:in:)` with a `Slot`.
  @discardableResult
  public func restore(_ version: VersionID, in slot: String) throws -> Version {
    let slot = try Self.checked(slot)
    let side = try core.store.read { transaction in
      // Read completely, so that nothing damaged is restored.
      try SlotReading.side(try readable(version, in: slot, transaction), in: transaction)
    }
    let record = side.version.record
    return try commit(
      core.commits.draft(
        .stored(record.contents, length: record.length), to: slot, record.metadata,
        additionalParents: core.slotParents.shown(slot))
    ).wait()
  }

  /// Returns a slot's name as it is stored. Throws for a name that no saved game can have.
  static func checked(_ slot: String) throws -> String {
    let name = slot.canonical
    try check(name)
    return name
  }
}
