package import Keepsake

/// What the garden shares with the other games of its studio: coins, and heroes that were unlocked in one of them.
///
///     let studio = try Studio(of: game)
///     try studio.earn(30, for: "a harvest")
///     try studio.unlock(hero: "gardener")
package struct Studio: Sendable {
  package static let name = "studio.coins"

  package let shared: GameData

  /// Opens the shared data of a game; while it is open, it is the same each time.
  package init(of game: GameData) throws { shared = try game.shared(Self.name) }

  package func earn(_ coins: Int, for quest: String) throws { try shared.wallet.earn(coins, .coins, for: quest) }

  /// Buys with all coins of the player, in whichever game they were earned.
  package func buy(_ thing: String, for coins: Int, askingBankFor limit: Duration) async throws {
    try await shared.wallet.spend(coins, .coins, for: thing, goods: [Goods(thing)], askingBankFor: limit)
  }

  package func unlock(hero: String) throws { try shared.progress.insert(hero, into: .heroes) }

  package func view() -> StudioView {
    StudioView(
      coins: Int64(shared.wallet[.coins].total), heroes: shared.progress[.heroes].sorted(),
      isEntitled: shared.cloud.availability != .unavailable(.notEntitled))
  }
}

/// What a player sees of it in one game.
package struct StudioView: Codable, Equatable {
  package var coins: Int64
  package var heroes: [String]
  /// Whether the cloud lets this game use it, as far as is known.
  package var isEntitled: Bool

  package init(coins: Int64, heroes: [String], isEntitled: Bool) {
    (self.coins, self.heroes, self.isEntitled) = (coins, heroes, isEntitled)
  }
}
