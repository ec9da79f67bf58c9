import KeepsakeReplication
import KeepsakeStore

/// What happens to the cloud's copy of a slot or tracked file that becomes local.
public enum CloudCopy: Sendable, Hashable {
  /// It is removed. The player's other devices see a delete; what they saved without knowing of the delete is kept.
  case removed
  /// It stays in the cloud, and other devices continue with it. This device stops sending.
  case kept
}

/// Local slots: slots that are never sent to a cloud.
extension SaveSlots {
  /// Makes a slot local: none of it is sent to a cloud until `syncAgain`. Durable on return.
  ///
  /// ```swift
  /// try game.saves.keepLocal(.scratch, cloudCopy: .removed)    // out of the cloud
  /// try game.saves.keepLocal(.main, cloudCopy: .kept)          // stop sending
  /// ```
  ///
  /// The slot's save and history don't change, and the game continues without loading. Works for an empty slot too. The
  /// setting holds across restarts, account adoption and restored clouds.
  ///
  /// - Queued changes of the slot aren't sent; a request that is already under way may still arrive. The other slots of
  ///   a checkpoint are sent: it is atomic on this device only.
  /// - What other devices save under the same name is kept beside the slot and not shown: `SlotStatus.elsewhere` has
  ///   it, and `syncAgain` joins both.
  /// - There is no other copy: losing the device loses the save. `UnsentData` counts it.
  ///
  /// Calling it again with `.removed` removes the copy that `.kept` left in the cloud. Costs reading the save once, to
  /// check it, and one wait for the disk.
  ///
  /// - Parameters:
  ///   - slot: The slot.
  ///   - cloudCopy: What happens to the cloud's copy.
  /// - Throws: `GameDataError` with `misuse` for an invalid name, or while the slot is in conflict (load and save it
  ///   first, or resolve it); `StoreError` if the save can't be read or the disk can't be written. Nothing has changed
  ///   then.
  public func keepLocal<Value>(_ slot: Slot<Value>, cloudCopy: CloudCopy) throws {
    try keepLocal(slot.name, cloudCopy: cloudCopy)
  }

  /// Makes a slot local, by the slot's name.
  ///
  /// - Parameters:
  ///   - slot: The slot's name.
  ///   - cloudCopy: What happens to the cloud's copy.
  /// - Throws: As `keepLocal(_:cloudCopy:)` with a `Slot`.
  public func keepLocal(_ slot: String, cloudCopy: CloudCopy) throws {
    let slot = try Self.checked(slot)
    core.slotParents.waitForCaptures(in: slot)
    try core.keepLocal(slot, removing: cloudCopy == .removed)
  }

  /// Ends `keepLocal`: the slot's save is sent to the cloud, as if it had been saved over the version that the slot had
  /// when it became local. Durable on return.
  ///
  /// The history stays. What other devices saved in the meantime is merged or becomes a conflict, by the slot's policy;
  /// nothing is lost. If nothing was saved while the slot was local, or it was deleted, nothing is sent, and the slot
  /// shows what the cloud has. Does nothing for a slot that isn't local.
  ///
  /// - Parameter slot: The slot.
  /// - Throws: As `keepLocal`.
  public func syncAgain<Value>(_ slot: Slot<Value>) throws { try syncAgain(slot.name) }

  /// Ends `keepLocal` for a slot, by the slot's name.
  ///
  /// - Parameter slot: The slot's name.
  /// - Throws: As `keepLocal`.
  public func syncAgain(_ slot: String) throws {
    let slot = try Self.checked(slot)
    core.slotParents.waitForCaptures(in: slot)
    try core.syncAgain(slot)
  }

  /// Whether the slot is local (`keepLocal`).
  ///
  /// - Parameter slot: The slot.
  /// - Returns: Whether the slot is local.
  /// - Throws: `GameDataError` with `misuse` for an invalid name; `StoreError` if the store can't be read.
  public func isLocal<Value>(_ slot: Slot<Value>) throws -> Bool { try isLocal(slot.name) }

  /// Whether a slot is local, by the slot's name.
  ///
  /// - Parameter slot: The slot's name.
  /// - Returns: Whether the slot is local.
  /// - Throws: As `isLocal(_:)` with a `Slot`.
  public func isLocal(_ slot: String) throws -> Bool {
    let slot = try Self.checked(slot)
    return try core.store.read { try $0.isLocal(slot) }
  }

  /// Throws for a name that no saved game can have.
  static func check(_ slot: String) throws {
    if let objection = NameRule.slot.objection(to: slot) { throw GameDataError(.misuse, objection) }
    guard !SlotKey(text: slot).isFile else {
      throw GameDataError(
        .misuse, "\(NameRule.slot.kind) can't begin like the keys of tracked files: \(NameRule.shown(slot)) does")
    }
  }
}
