public import KeepsakeArchive
import KeepsakeReplication

extension SaveSlots {
  /// The player's other devices that have what stands in the slot, as the cloud knows it now; nil if it can't know.
  ///
  ///     if let devices = try await game.saves.seenBy(.main), !devices.isEmpty {
  ///       label = "Seen by " + devices.map(\.name).joined(separator: ", ")
  ///     }
  ///
  /// Who is listed has this save, or a later one that replaces it, with all its bytes (or left them in the cloud by its own `Cloud.downloads`), and shows it; of a conflict, all its sides. A device says so with
  /// its next exchange: a running one within about a minute of having it, one that was switched off or stopped in between when it runs again. So one that isn't
  /// listed may have it, too. A delete counts as well. A save that isn't certain in the cloud yet has been seen by nobody. Who has a save whose bytes are damaged
  /// in the cloud is known again when they are mended.
  ///
  /// A device is listed by its last word: one that was set back to a backup, or whose data was deleted by hand, until it is heard again.
  ///
  /// A folder knows no devices, and an older server doesn't know: nil. Waits for captures made before. One round trip; it wakes no device. Throws `GameDataError`:
  /// `notConnected`, `unreachable`, `refused`, and `StoreError` if the store can't be read.
  public func seenBy<Value: Archivable>(_ slot: Slot<Value>) async throws -> [CloudDevice]? { try await seenBy(slot.name) }

  /// The same by name, for lists and tools.
  public func seenBy(_ slot: String) async throws -> [CloudDevice]? {
    try waitForCaptures(in: slot)
    let question = try core.store.read { try SeenByQuery([slot], in: $0) }
    guard !question.isEmpty else { return [] }
    let answers = try await question.answers { [core] in try await core.cloud.devices($0) }
    core.seen.note(answers)
    core.statusTicks.send(())
    return answers[slot]?.devices
  }
}
