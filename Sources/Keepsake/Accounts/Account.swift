public import Foundation

/// The owner of a store, among the players on this device: a guest, or an account of the game's own identity system.
///
/// ```swift
/// let game = try GameData.open("com.example.space", account: .guest)
/// let game = try GameData.open("com.example.space", account: .named(session.userID))
/// ```
///
/// Each account has its own store: saves, values, money, preferences, tables and cloud. Signing in, signing out or
/// switching accounts opens another store and deletes nothing.
public enum Account: Sendable, Hashable {
  /// A player without an account: the data of the profile `default`, including what was played before the game had
  /// accounts.
  case guest
  /// An account, identified by a name that never changes; not an e-mail address. Equivalent Unicode spellings are the
  /// same account.
  case named(String)

  /// The maximum length of an account's name, in bytes of UTF-8.
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

/// What one account has on this device.
public struct AccountSummary: Sendable, Hashable {
  /// The account.
  public var account: Account
  /// The folder with its data.
  public var url: URL
  /// The data's contents; nil if they can't be read without opening the account, because the data is damaged, from a
  /// newer version of the game, or has another seal.
  public var contents: Contents?

  /// The data as of the last commit.
  public struct Contents: Sendable, Hashable {
    /// The number of slots with a saved game.
    public var saves: Int
    /// When the newest of them was saved, by the clock of the device that saved it.
    public var lastSaved: Date?
    /// The player's total money by currency, as this device knows it.
    public var money: [Currency: Int]
    /// Data that no cloud has, as far as this device knows; all data if the cloud refused this device.
    public var unsent: UnsentData
    /// Whether the data has ever been connected to a cloud.
    public var hasCloud: Bool
  }
}
