import KeepsakeReplication

/// Passes the engine's notifications on to the parts of the game that they concern.
struct CloudEventHandler: Sendable {
  let core: GameCore
  let deliveryBuffer: DeliveryBuffer
  let progress: ProgressStore
  let scores: HighScores
  let wallet: WalletStore
  let preferences: Preferences

  func handle(_ notification: EngineNotification) {
    switch notification {
    case .slots(let names): arrived(names)
    case .cells(let keys): received(keys)
    case .caughtUp: received([])
    case .wallet:
      wallet.invalidate()
      emit(.wallet)
    case .decisions(let decisions):
      wallet.invalidate()
      // A spend that waits until it can be charged is decided later.
      let verdicts = decisions.filter(\.verdict.isFinal).map(WalletVerdict.init)
      if !verdicts.isEmpty { emit(.decisions(verdicts)) }
    case .acknowledged: core.events.slotsDidChange()
    case .refused(let refusals):
      core.events.slotsDidChange()
      for refusal in refusals {
        core.events.report(
          Incident(kind: .refusedByCloud, message: "\(refusal.item): \(refusal.message)", date: core.now))
      }
    case .moneyLost(let lost):
      wallet.invalidate()
      core.events.report(
        Incident(
          kind: .moneyLost,
          message: "\(Self.text(lost)) won't arrive from the player that this device belonged to before: the device "
            + "was removed there, that player's data were deleted, the voucher of the bank isn't accepted, or a copy "
            + "of this device has taken it to another player",
          date: core.now))
    case .moneyOutOfReach(let lost):
      core.events.report(
        Incident(
          kind: .moneyOutOfReach,
          message: "\(Self.text(lost)) can't be fetched from the player that this device belonged to before, since the "
            + "credentials for that player's cloud are missing here: it stays pending until \(FormerClouds.name) is "
            + "restored from a backup",
          date: core.now))
    case .damaged(let hash):
      core.events.report(
        Incident(
          kind: .damagedInCloud, message: "the content \(hash) is damaged in the cloud, or missing from it",
          date: core.now))
    }
  }

  private static func text(_ lost: LostMoney) -> String {
    let amounts = lost.amounts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
    return amounts.isEmpty ? "money" : amounts.joined(separator: ", ")
  }

  /// Emits a change immediately, or holds it back with the rest.
  private func emit(_ change: GameChange) {
    if !deliveryBuffer.keep(change) { core.events.emit(change) }
  }

  /// Updates the game after the store joined another player.
  func joined() throws {
    core.events.slotsDidChange()
    try progress.reload()
  }

  /// Leaves out local slots: nothing that the game sees has changed in them.
  private func arrived(_ names: [String]) {
    core.events.slotsDidChange()
    var local: Set<String> = []
    do {
      local = try core.store.read { try $0.localSlots() }
    } catch {
      core.events.report(
        Incident(
          kind: .unreadable, message: "the list of slots that stay on this device can't be read: \(error)",
          date: core.now))
    }
    let seen = names.filter { !local.contains($0) }
    let keys = seen.map(SlotKey.init(text:))
    let (files, slots) = (keys.compactMap(\.fileName), keys.filter { !$0.isFile }.map(\.name))
    if !slots.isEmpty { core.events.emit(.slots(slots)) }
    if !files.isEmpty { core.events.emit(.files(files)) }
  }

  private func received(_ keys: [CellKey]) {
    scores.received(keys)
    do {
      try progress.received(keys)
      try preferences.received(keys)
    } catch {
      // The store was closed while the last notifications arrived. What it holds is read at the next opening.
      core.events.report(
        Incident(kind: .unreadable, message: "received changes can't be read: \(error)", date: core.now))
    }
  }
}
