import KeepsakeStore

extension GameData {
  /// Reseals everything that is still sealed with an earlier secret, using the current one.
  ///
  /// Afterwards the earlier secrets are no longer valid on this device, and the game can be opened without them.
  ///
  /// ```swift
  /// let game = try GameData.open("com.example.space", seal: .signed(secret, previous: [oldSecret]))
  /// try game.reseal()
  /// ```
  ///
  /// Each opening reseals some megabytes on its own, so most games never need this call. It blocks while it goes
  /// through all of the data; saves continue between its steps. Does nothing if everything is already sealed with the
  /// current secret.
  ///
  /// - Throws: `StoreError`; the next call or opening continues.
  public func reseal() throws { try core.store.reseal() }

  /// Returns how often the sealed data has been changed. The number only grows.
  ///
  /// If a player puts back an older copy of the whole folder, the folder alone can't reveal it, because everything in
  /// it verifies. A game that keeps this number on a server of its own can compare:
  ///
  /// ```swift
  /// if let known = server.count, let count = try game.sealedChanges(), count < known { ... }
  /// ```
  ///
  /// Restoring a device from a backup looks the same.
  ///
  /// - Returns: The number of changes; nil without a seal.
  /// - Throws: `StoreError` if the store can't be read.
  public func sealedChanges() throws -> UInt64? { try core.store.changeCount() }
}
