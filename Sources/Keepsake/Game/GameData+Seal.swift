import KeepsakeStore

extension GameData {
  /// Seals with the current secret what earlier ones still seal, and returns when that is all of it: from then on the earlier
  /// ones no longer count on this device, and the game can be opened without them.
  ///
  ///     let game = try GameData.open("com.example.space", seal: .signed(secret, previous: [oldSecret]))
  ///     try game.reseal()
  ///
  /// Each opening does some megabytes of it by itself, so most players never need the call. Blocks while it passes
  /// over all that is kept; saves go on between its steps. Does nothing where there is nothing to do. Throws `StoreError`; the next call or
  /// opening then does the rest.
  public func reseal() throws { try core.store.reseal() }

  /// How often what is kept was changed, counted under the seal; nil without one.
  ///
  /// It only grows. A player who puts back an older copy of the whole folder can't be found out from the folder, since
  /// everything in it verifies. A game that keeps this number elsewhere, on a server of its own, finds it smaller than before:
  ///
  ///     if let known = server.count, let count = try game.sealedChanges(), count < known { ... }
  ///
  /// Restoring a backup of the device has the same look and is honest. Throws `StoreError`.
  public func sealedChanges() throws -> UInt64? { try core.store.changeCount() }
}
