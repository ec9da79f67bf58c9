import Synchronization

extension GameData {
  /// The game's assets, as `attach` was given them.
  ///
  ///     try game.attach(AssetLibrary(at: folder))
  ///     let batch = try game.assets.load(["Images/Ship.png"])
  ///
  /// Throws `GameDataError` with `misuse` before anything was attached.
  public var assets: AssetLibrary {
    get throws {
      guard let library = attachedAssets.withLock({ $0 }) else {
        throw GameDataError(.misuse, "no assets are attached to this game: call `attach` with an `AssetLibrary` first")
      }
      return library
    }
  }

  /// Makes a library of assets the game's, so that every part of the game finds it at `assets`; another one replaces it.
  ///
  /// Assets ship with the game and are never saved or synced: a library works as well by itself, and after the game's data is closed.
  public func attach(_ assets: AssetLibrary) {
    // The one before is let go of behind the lock: its end is its own affair.
    let before = attachedAssets.withLock { attached in
      defer { attached = assets }
      return attached
    }
    withExtendedLifetime(before) {}
  }
}
