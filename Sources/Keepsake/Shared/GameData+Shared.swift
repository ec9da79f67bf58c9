import KeepsakeStore

/// Containers that several games of one studio share.
extension GameData {
  /// Opens the data of a shared container on this device, and creates it on first use: what several games of a studio
  /// keep for one player together, such as a purse, or a hero who was unlocked in one of them.
  ///
  /// ```swift
  /// let studio = try game.shared("studio.coins")
  /// try studio.wallet.earn(5, .coins, for: "level 3")
  /// if studio.progress[.heroIsFree] == true { showHero() }
  /// ```
  ///
  /// It is game data like any other, with a folder, a history and a wallet of its own, and everything in it works
  /// without a cloud. Its cloud follows the game's: while the game is connected to a server, the shared data is
  /// connected to the same one, in the shared container of this name, once the game is registered there. The studio
  /// decides which games may use it (`keepsake team`). For any other game, and for a name that doesn't exist, its
  /// `availability` is `notEntitled`: the data stays on this device, and it is tried again every few minutes. A game
  /// that may only read receives everything, and sends nothing (`CloudStatus.isReadOnly`): saves and values wait on
  /// this device, and operations of the wallet throw `readOnly`, because such a game has no part in the money.
  ///
  /// The devices of the player in this game share one container. Another game of the studio has another player, whose
  /// shared data is joined by a code: `shared.cloud.pairingCode()` in one game, `shared.cloud.join(_:)` in the other;
  /// or by a recovery code or a sign-in on `shared.cloud`. When the game itself joins another player, its shared data
  /// is joined with that player's, once no save is left that exists only in the container before.
  ///
  /// While it is open, each call returns the same object. It is closed with the game, and can be closed before. It has
  /// the seal, the history rules and the credential storage of the game, and lies in the folder `shared` of the game's
  /// data, with the account or profile: `signOut(forgetting:)`, `forget` and `deleteProfile` delete it too. Costs as
  /// much as opening the game's data.
  ///
  /// - Parameter name: The container's name: 1 to 64 of the characters `a-z`, `0-9`, `.` and `-`, beginning with a
  ///   letter or digit, and not ending with a dot.
  /// - Returns: The open data.
  /// - Throws: `GameDataError` with `misuse` for an invalid name, and for data that is shared itself, or `closed`;
  ///   `StoreError` as `open(_:profile:at:seal:history:credentials:)`.
  public func shared(_ name: String) throws -> GameData {
    try SharedFolder.check(name)
    guard options.shared == nil else {
      throw GameDataError(.misuse, "shared data has no shared data of its own: ask the game's for \"\(name)\"")
    }
    return try sharedGames.game(name) {
      guard !isClosed else { throw GameDataError.closed }
      try StoreFolder.create(SharedFolder.all(in: url), isPrivate: true)
      let shared = try GameData.open(
        at: SharedFolder.url(of: name, in: url), options.sharing(name), core.environment,
        of: GameReference(cloud.connection), cloud.state)
      cloud.state.followers.add(shared.cloud)
      return shared
    }
  }

  /// Lists the shared containers that have data on this device. Opens none of them.
  ///
  /// - Returns: Their names, sorted.
  /// - Throws: `StoreError` if the folder can't be read.
  public func sharedNames() throws -> [String] { try SharedFolder.names(in: url) }

  /// The name of the shared container whose data this is; nil for a game's own data.
  public var sharedName: String? { options.shared }
}

extension GameCore {
  /// Throws `readOnly` if the game may only read this shared container: its money isn't the game's to change.
  func requireWritableMoney() throws {
    guard cloud.status.isReadOnly else { return }
    throw GameDataError(
      .readOnly, "this game may only read this shared container, and has no part in its money: its studio decides that")
  }
}
