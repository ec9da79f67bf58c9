import Foundation
import KeepsakeStore

/// How a game's data was opened: what it takes to look at them again, or at those of another account.
struct OpenOptions: Sendable {
  let game: String
  let profile: String
  let seal: Seal
  let history: HistoryRules
  /// Opened in a folder that the game named, in which it may keep other things.
  let hasCustomURL: Bool
  /// Nil if no account was named.
  let accounts: AccountLocation?

  init(
    game: String, profile: String, seal: Seal, history: HistoryRules, hasCustomURL: Bool = false, accounts: AccountLocation? = nil
  ) {
    (self.game, self.profile, self.seal, self.history) = (game, profile, seal, history)
    self.hasCustomURL = hasCustomURL
    self.accounts = accounts
  }

  /// The same for one account of those in a folder.
  init(game: String, _ place: AccountLocation, seal: Seal, history: HistoryRules) {
    self.init(game: game, profile: place.sealName, seal: seal, history: history, accounts: place)
  }

  var sealRequest: SealRequest { SealRequest(seal, owner: SealOwner(game: game, profile: profile)) }
}
