import KeepsakeReplication
import KeepsakeStore

/// Control over when changes from other devices become visible.
extension Cloud {
  /// When the game sees changes received from other devices; `.immediately` by default.
  ///
  /// ```swift
  /// game.cloud.delivery = .manually    // before `connect`
  /// ...
  /// if game.cloud.status.hasArrivals { offer("Your tablet has played on. Load?") }
  /// try game.cloud.deliver()           // between two levels
  /// world = try game.saves.load(.main) ?? world
  /// ```
  ///
  /// This holds back saved games, values of `progress`, synced preferences, other devices' scores, balances and the
  /// bank's decisions, together with their entries in `changes` and `takeChanges`. Incidents, refusals, `status` and
  /// `Version.state` are always current.
  ///
  /// - A save that the game makes while a newer one is held back replaces only what the game had seen. Both are kept
  ///   afterwards, as if the devices had been offline.
  /// - A balance's `total` and `pending` change only through the game's own operations. `spendable` may decrease,
  ///   because the bank may have given the money to another device: it is never more than what can be spent. What the
  ///   bank granted in the meantime can be spent after delivery.
  /// - A store that has never seen all of its cloud's data counts as not caught up until the first delivery: its saves
  ///   rank last in a conflict, and resets are refused.
  /// - What is held back survives a restart, even without a network; the setting itself doesn't. Balances and decisions
  ///   are not held back across a restart: the game starts with the bank's last state.
  /// - After the cloud is restored from a backup, or when this device joins another player, everything is delivered
  ///   regardless of this setting, because it is sent to the cloud again.
  ///
  /// Set it before `connect`: changes that are being delivered while it is set may still appear. Setting `.immediately`
  /// delivers what was held back before it returns, or soon after if part of it was still being downloaded. That costs
  /// one wait for the disk if there is something to deliver; a full or failing disk is reported as an incident.
  public var delivery: CloudDelivery {
    get { connection.deliveryBuffer.delivery }
    set { connection.deliver(newValue) }
  }

  /// Delivers what is held back if `delivery` is `.onUpdate`; otherwise does nothing. Call it once per frame in a game
  /// without `Autosave`.
  ///
  /// Costs one atomic load; if there is something to deliver, as much as `deliver()`.
  ///
  /// - Returns: Whether anything was delivered.
  /// - Throws: As `deliver()`.
  @discardableResult
  public func update() throws -> Bool {
    guard connection.deliveryBuffer.delivery == .onUpdate, connection.deliveryBuffer.mayHaveArrivals else {
      return false
    }
    return try connection.deliver()
  }

  /// Delivers everything that is held back. On return, it is visible in `load`, `progress` and the others, and
  /// `takeChanges` lists it.
  ///
  /// Changes that belong together are delivered together: another device's checkpoint appears only when all of it is on
  /// this device. Costs one wait for the disk if there is something to deliver. Needs no network.
  ///
  /// - Returns: Whether anything was delivered.
  /// - Throws: `StoreError` if the disk can't be written; nothing has changed then. If only the wallet can't be read,
  ///   the rest is delivered, and the bank's decisions are held back for the next call.
  @discardableResult
  public func deliver() throws -> Bool { try connection.deliver() }
}
