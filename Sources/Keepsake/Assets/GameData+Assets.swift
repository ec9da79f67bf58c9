import Synchronization

extension GameData {
  /// The game's asset library, set by `attach`. Throws `GameDataError` with `misuse` before that.
  ///
  /// ```swift
  /// try game.attach(AssetLibrary(at: folder))
  /// let batch = try game.assets.load(["Images/Ship.png"])
  /// ```
  public var assets: AssetLibrary {
    get throws {
      guard let library = attachedAssets.withLock({ $0 }) else {
        throw GameDataError(.misuse, "no assets are attached to this game: call `attach` with an `AssetLibrary` first")
      }
      return library
    }
  }

  /// Sets the game's asset library, so that every part of the game finds it at `assets`. Replaces an earlier one.
  ///
  /// Assets ship with the game and are never saved or synced: a library also works by itself, and after the game's data
  /// is closed.
  ///
  /// - Parameter assets: The library.
  public func attach(_ assets: AssetLibrary) {
    // The previous library is released outside the lock, because its `deinit` may run any code.
    let before = attachedAssets.withLock { attached in
      defer { attached = assets }
      return attached
    }
    withExtendedLifetime(before) {}
  }
}
