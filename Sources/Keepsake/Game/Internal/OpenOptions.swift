import Foundation
import KeepsakeReplication
import KeepsakeStore

/// The options that a game's data was opened with, kept to open it again, or the data of another account.
struct OpenOptions: Sendable {
  let game: String
  let profile: String
  let seal: Seal
  let history: HistoryRules
  /// Where this device keeps its credentials.
  let credentials: CredentialStorage
  /// Whether the data was opened in a folder that the game chose, which may contain other files.
  let hasCustomURL: Bool
  /// The account's location; nil if no account was given.
  let accounts: AccountLocation?
  /// The name of the shared container; nil for a game's own data.
  let shared: String?

  init(
    game: String, profile: String, seal: Seal, history: HistoryRules, credentials: CredentialStorage,
    hasCustomURL: Bool = false, accounts: AccountLocation? = nil, shared: String? = nil
  ) {
    (self.game, self.profile, self.seal, self.history) = (game, profile, seal, history)
    self.credentials = credentials
    self.hasCustomURL = hasCustomURL
    self.accounts = accounts
    self.shared = shared
  }

  /// Makes the options for one of the accounts in a folder.
  ///
  /// - Parameter credentials: For data that is opened and may be connected; the folder for data that is only read.
  init(
    game: String, _ place: AccountLocation, seal: Seal, history: HistoryRules,
    credentials: CredentialStorage = .folder
  ) {
    self.init(
      game: game, profile: place.sealName, seal: seal, history: history, credentials: credentials, accounts: place)
  }

  /// Makes the options for the data of a shared container, which lies in the folder of this data. A seal binds it to
  /// both.
  func sharing(_ name: String) -> OpenOptions {
    OpenOptions(
      game: game, profile: "\(profile)/\(SharedFolder.name)/\(name)", seal: seal, history: history,
      credentials: credentials, hasCustomURL: true, shared: name)
  }

  var sealRequest: SealRequest { SealRequest(seal, owner: SealOwner(game: game, profile: profile)) }
}
