public import KeepsakeArchive
import KeepsakeReplication
import KeepsakeStore

/// What becomes of what the cloud has of a slot, or of a tracked file, that stays on this device from now on.
public enum CloudCopy: Sendable, Hashable {
  /// It goes: the player's other devices see it go as by a delete. What they saved without knowing of that stays theirs, as always.
  case removed
  /// It stays there, and the other devices go on with it. This device only stops sending.
  case kept
}

/// Slots that stay on this device, or leave the cloud.
extension SaveSlots {
  /// Keeps a slot on this device from now on, durably: no cloud gets any of it, until `syncAgain`.
  ///
  ///     try game.saves.keepLocal(.scratch, cloudCopy: .removed)     // leave the cloud, and stay here
  ///     try game.saves.keepLocal(.main, cloudCopy: .kept)           // only stop sending
  ///
  /// The game plays on without loading: what stands in the slot stands there as before, with its history. It is also for a slot in which nothing
  /// was saved yet. Declared once, it holds over restarts, accounts that are joined and clouds that are restored.
  ///
  /// - What waits to be sent isn't sent any more; what is under way at this moment may still get there. Of a checkpoint that saves this slot and
  ///   others, the others go: here all of it is durable or nothing, elsewhere only their part exists.
  /// - What other devices save under the same name is kept beside it and not shown: `SlotStatus.elsewhere` has it, and `syncAgain` brings both together.
  /// - Nothing else has a copy: a lost device loses it. `UnsentData` counts it.
  ///
  /// Declaring it again with `.removed` takes out what `.kept` had left in the cloud. Costs reading the save once, to see that it is whole, and one wait on
  /// the disk.
  ///
  /// - Throws: `GameDataError` with `misuse` for a name that can't be and while the slot is in conflict: load and save it first, or resolve it; `StoreError` if
  ///   what stands there can't be read, or the disk takes nothing. Everything is as it was then.
  public func keepLocal<Value: Archivable>(_ slot: Slot<Value>, cloudCopy: CloudCopy) throws {
    try keepLocal(slot.name, cloudCopy: cloudCopy)
  }

  /// The same by name, for lists and tools.
  public func keepLocal(_ slot: String, cloudCopy: CloudCopy) throws {
    try refuseOthers(slot)
    try waitForCaptures(in: slot)
    try core.keepLocal(slot, removing: cloudCopy == .removed)
  }

  /// Takes `keepLocal` back, durably: what stands in the slot is offered to the cloud, as if it had been saved over what the slot showed when it left.
  ///
  /// The history stays as it is. What other devices saved meanwhile stands beside it, and merges or is a conflict by the slot's policy: nothing is lost. Where
  /// nothing was saved here meanwhile, or it was deleted, nothing is offered, and the slot shows what the cloud has. Does nothing for a slot that isn't local.
  ///
  /// - Throws: As `keepLocal`.
  public func syncAgain<Value: Archivable>(_ slot: Slot<Value>) throws { try syncAgain(slot.name) }

  /// The same by name, for lists and tools.
  public func syncAgain(_ slot: String) throws {
    try refuseOthers(slot)
    try waitForCaptures(in: slot)
    try core.syncAgain(slot)
  }

  /// Whether the slot stays on this device. Throws `StoreError` if the store can't be read.
  public func isLocal<Value: Archivable>(_ slot: Slot<Value>) throws -> Bool {
    try core.store.read { try $0.isLocal(slot.name) }
  }

  /// A name that no saved game can have means nothing here.
  private func refuseOthers(_ slot: String) throws {
    let record = VersionRecord(
      id: VersionID(high: 0, low: 0), slot: slot, covers: [], contents: [], length: 0, savedAtMilliseconds: 0, writer: core.store.writer,
      provisional: false)
    if let refusal = SaveSlots.objection(to: record) {
      throw GameDataError(.misuse, "\"\(slot.prefix(80))\" can't be a slot's name: \(refusal.message)")
    }
  }

  /// Why a saved game can't be kept so; nil if it can.
  static func objection(to record: VersionRecord) -> Refusal? {
    if FileSlot.contains(record.slot) {
      return Refusal(item: ExchangeRules.item(record.id), reason: .invalid, message: "names that begin so are for tracked files")
    }
    return ExchangeRules.objection(to: record)
  }
}
