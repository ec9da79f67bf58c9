public import Foundation

/// Whose data it is, of the players on this device: a guest's, or an account's of the game's own identity system.
///
/// ```swift
/// let game = try GameData.open("com.example.space", account: .guest)
/// let game = try GameData.open("com.example.space", account: .named(session.userID))
/// ```
///
/// Each account has a store of its own: saves, values, money, preferences, tables and cloud. Signing in, out or over
/// opens another store and deletes nothing.
public enum Account: Sendable, Hashable {
  /// A player without an account: the data of the profile `default`, including what was played before the game had
  /// accounts.
  case guest
  /// An account, by an identifier that never changes; not an e-mail address. Equivalent Unicode spellings are one
  /// account.
  case named(String)

  /// The greatest length of an account's name, in bytes of UTF-8.
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
  /// The account.
  public var account: Account
  /// The folder with its data.
  public var url: URL
  /// What is in it; nil if it can't be read without opening it: it is damaged, of a newer version of the game, or has
  /// another seal.
  public var contents: Contents?

  /// The data as of the last commit.
  public struct Contents: Sendable, Hashable {
    /// The number of slots with a saved game.
    public var saves: Int
    /// When the newest of them was saved, by the clock of the device that saved it.
    public var lastSaved: Date?
    /// The player's total money by currency, as this device knows it.
    public var money: [Currency: Int]
    /// What no cloud has, as far as this device knows; everything if the cloud refused this device.
    public var unsent: UnsentData
    /// Whether it has ever had a cloud.
    public var hasCloud: Bool
  }
}
