import KeepsakeReplication
import KeepsakeStore

/// Nothing changes under a running game.
extension Cloud {
  /// When the game sees what came from other devices; `.immediately` unless something else is set.
  ///
  ///     game.cloud.delivery = .manually      // before `connect`
  ///     ...
  ///     if game.cloud.status.hasArrivals { offer("Your tablet has played on. Load?") }
  ///     try game.cloud.deliver()             // between two levels
  ///     world = try game.saves.load(.main) ?? world
  ///
  /// Kept back are saved games, values of `progress`, synced preferences, scores of other devices, balances and verdicts of the bank, and with
  /// them `changes` and `takeChanges`. Incidents, refusals, `status` and `Version.state` are always told.
  ///
  /// - A save made while something newer is kept back replaces what the game had seen, and stands beside the newer one afterwards, as it would
  ///   if the devices had been apart.
  /// - A balance's `total` and `pending` stand still but for what the game does. `spendable` may fall, because the bank may have given to
  ///   another device what was free here: it never says more than can be spent. What the bank granted meanwhile can be spent once it is shown.
  /// - A store that never saw all that its cloud has hasn't caught up before the first delivery: what is saved until then gives way in a
  ///   conflict, and a reset is refused.
  /// - What was kept back when the game ended is here at its next start, also without a network. The setting itself isn't kept. Balances and
  ///   verdicts are the exception: a game that starts sees its money as the bank said it last.
  ///
  /// - What is kept back shows, whatever this says, when the cloud was restored from a backup or this device joins another player: it is
  ///   sent there, because it might be nowhere else.
  ///
  /// Set it before `connect`: what is being shown at the moment of a change may still come. Setting `.immediately` shows what was kept
  /// back, before it returns or, where a part was still on its way, some time later; it waits for the disk once if there is something. A disk
  /// that takes nothing is an incident.
  public var delivery: CloudDelivery {
    get { connection.deliveryBuffer.delivery }
    set { connection.deliver(newValue) }
  }

  /// Shows what was kept back, where `delivery` is `.onUpdate`, and else does nothing. Returns whether anything was shown. For each frame of a
  /// game without an `Autosave`.
  ///
  /// Costs a look at a flag; when there is something, what `deliver()` costs.
  @discardableResult
  public func update() throws -> Bool {
    guard connection.deliveryBuffer.delivery == .onUpdate, connection.deliveryBuffer.mayHaveArrivals else { return false }
    return try connection.deliver()
  }

  /// Shows what was kept back, all of it, and returns whether there was anything: when this returns, `load`, `progress` and all the others
  /// have it, and `takeChanges` says what it was.
  ///
  /// Nothing is shown while a part of it is still on its way: half of another device's checkpoint is never seen. Costs one wait on the disk
  /// when there is something, and works without a network. Throws `StoreError` if the disk takes nothing;
  /// nothing has changed then. If only the money can't be read it throws too: the rest shows, and what the bank said is kept back for the next call.
  @discardableResult
  public func deliver() throws -> Bool { try connection.deliver() }
}
