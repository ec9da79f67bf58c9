import KeepsakeStore

extension GameData {
  /// Seals with the current secret what earlier ones still seal, and returns when that is all of it: from then on the earlier
  /// ones no longer count on this device, and the game can be opened without them.
  ///
  ///     let game = try GameData.open("com.example.space", seal: .signed(secret, previous: [oldSecret]))
  ///     try game.reseal()
  ///
  /// Each opening does some megabytes of it by itself, so most players never need the call. Blocks, for about a second for
  /// 100 MB; saves go on between its steps. Does nothing where there is nothing to do. Throws `StoreError`; the next call or
  /// opening then does the rest.
  public func reseal() throws { try core.store.reseal() }
}
