import KeepsakeReplication

extension SaveSlots {
  /// Asks the cloud which of the player's other devices have the current save of a slot.
  ///
  /// ```swift
  /// if let devices = try await game.saves.seenBy(.main), !devices.isEmpty {
  ///   label = "Seen by " + devices.map(\.name).joined(separator: ", ")
  /// }
  /// ```
  ///
  /// A listed device has this save, or a later one that replaces it, with all its bytes (unless its own
  /// `Cloud.downloads` left them in the cloud), and shows it; in a conflict it has every side. A delete counts as a
  /// save. A device reports with its next exchange: a running one within about a minute, others when they run again. So
  /// a device that isn't listed may have the save too. No device counts as having a save that isn't certain to be in
  /// the cloud, or one whose bytes are damaged there, until they are repaired.
  ///
  /// The list reflects each device's last report: a device that was restored from a backup, or whose data was deleted
  /// by hand, stays listed until its next exchange.
  ///
  /// Waits for earlier captures. Costs one round trip; wakes no device.
  ///
  /// - Parameter slot: The slot.
  /// - Returns: The devices; nil if the cloud is a folder, or an older server, which can't report this.
  /// - Throws: `GameDataError` with `notConnected`, `unreachable` or `refused`, or `misuse` for an invalid name;
  ///   `StoreError` if the store can't be read.
  public func seenBy<Value>(_ slot: Slot<Value>) async throws -> [CloudDevice]? {
    try await seenBy(slot.name)
  }

  /// Asks which other devices have the current save of a slot, by the slot's name.
  ///
  /// - Parameter slot: The slot's name.
  /// - Returns: The devices; nil if the cloud doesn't know.
  /// - Throws: As `seenBy(_:)` with a `Slot`.
  public func seenBy(_ slot: String) async throws -> [CloudDevice]? {
    let slot = try Self.checked(slot)
    await core.slotParents.awaitCaptures(in: slot)
    let question = try core.store.read { try SeenByQuery([slot], in: $0) }
    guard !question.isEmpty else { return [] }
    let answers = try await question.answers { [core] in try await core.cloud.devices(having: $0) }
    core.seen.note(answers)
    core.events.statusDidChange()
    return answers[slot]?.devices
  }
}
