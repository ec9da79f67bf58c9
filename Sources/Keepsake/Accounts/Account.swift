public import Foundation

/// Whose data they are, of those who play on this device: a guest's, or those of an account of the game's own identity system.
///
///     let game = try GameData.open("com.example.space", account: .guest)
///     let game = try GameData.open("com.example.space", account: .named(session.userID))
///
/// Each account has a store of its own: saves, values, money, preferences, tables and cloud. Signing in, out or over opens another one and wipes
/// nothing; each comes back as it was left.
public enum Account: Sendable, Hashable {
  /// Who plays without an account: the data of the profile `default`, with what was played before the game had accounts.
  case guest
  /// An account, by whatever never changes about it: an identifier rather than an address. Two spellings of one text are one account.
  case named(String)

  /// The most bytes of an account's name.
  public static let maximumNameBytes = 1024

  static let guestProfile = "default"
}

extension Account: CustomStringConvertible {
  public var description: String {
    switch self {
    case .guest: "guest"
    case .named(let name): "account \"\(name.prefix(80))\""
    }
  }
}

/// What an account has on this device.
public struct AccountSummary: Sendable, Hashable {
  /// Whose it is.
  public var account: Account
  /// The folder.
  public var url: URL
  /// What is in it; nil if that can't be told without opening it: it is damaged, of a newer version of the game, or under another seal.
  public var contents: Contents?

  /// What was kept by the last commit.
  public struct Contents: Sendable, Hashable {
    /// Slots with a saved game.
    public var saves: Int
    /// When the newest of them was saved, by the clock of the device that did.
    public var lastSaved: Date?
    /// The player's money in all, as this device knows it.
    public var money: [Currency: Int]
    /// What no cloud has, as far as is known here; everything where the cloud refused this device.
    public var unsent: UnsentData
    /// Whether it ever had a cloud.
    public var hasCloud: Bool
  }
}
