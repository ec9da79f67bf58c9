/// A currency, identified by its name: one that `GameData.wallet` keeps for the player (gems), or one that belongs to a
/// run and is kept in a `Purse` in the saved game (gold).
///
/// ```swift
/// extension Currency {
///   static let gems = Currency("gems")
///   static let gold = Currency("gold")
/// }
/// ```
public struct Currency: Sendable, Hashable {
  /// The currency's name, the same on every device.
  public let name: String
  /// Whether only the game's own servers make more of it: calls that would make more of it on a device throw
  /// `notAllowed`. Currencies of the same name are equal, whatever this is.
  public let isServerOnly: Bool

  /// Creates a currency.
  ///
  /// - Parameters:
  ///   - name: Its name.
  ///   - serverOnly: Whether only the game's own servers make more of it, such as gems that players buy for money.
  ///     The cloud has to know it, too (`keepsake serve --authoritative`): a manipulated game ignores what it declares.
  public init(_ name: String, serverOnly: Bool = false) { (self.name, isServerOnly) = (name.canonical, serverOnly) }

  public static func == (left: Self, right: Self) -> Bool { left.name == right.name }

  public func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// Something that an operation grants, such as a sword.
///
/// ```swift
/// extension Goods { static let sword = Goods("sword") }
/// ```
public struct Goods: Sendable, Hashable {
  /// The name of the goods.
  public let name: String

  /// Creates goods.
  ///
  /// - Parameter name: The name.
  public init(_ name: String) { self.name = name.canonical }
}

/// A player's money in one currency, as this device knows it.
public struct Balance: Sendable, Hashable {
  /// The money on all devices and in the bank.
  public var total: Int
  /// The amount that can be spent on this device now, without a network.
  public var spendable: Int
  /// The amount that was claimed and isn't confirmed by the bank yet, and money that is on its way from the bank of a
  /// player that this device, or an adopted account, belonged to before. Not part of the total.
  public var pending: Int

  /// Creates a balance.
  ///
  /// - Parameters:
  ///   - total: The money on all devices and in the bank.
  ///   - spendable: The amount that can be spent on this device.
  ///   - pending: The amount that was claimed and isn't confirmed, or is on its way.
  public init(total: Int, spendable: Int, pending: Int) {
    self.total = total
    self.spendable = spendable
    self.pending = pending
  }
}
