/// A currency, by its name: a permanent one, of which `GameData.wallet` keeps account (gems), or one that lasts for a run and stands in
/// a `Purse` of the saved game (gold).
///
///     extension Currency {
///       static let gems: Self = "gems"
///       static let gold: Self = "gold"
///     }
public struct Currency: Sendable, Hashable, ExpressibleByStringLiteral {
  /// Its name, on every device.
  public let name: String

  /// Names a currency. Names are compared in Unicode's form NFC.
  public init(_ name: String) { self.name = name.canonical }
  public init(stringLiteral name: String) { self.init(name) }
}

/// What an operation grants with it: a sword.
public struct Goods: Sendable, Hashable, ExpressibleByStringLiteral {
  /// The name, on every device.
  public let name: String

  /// Names goods. Names are compared in Unicode's form NFC.
  public init(_ name: String) { self.name = name.canonical }
  public init(stringLiteral name: String) { self.init(name) }
}

/// A player's money in one currency, as this device knows it.
public struct Balance: Sendable, Hashable {
  /// On all devices and in the bank.
  public var total: Int
  /// What can be spent here now, without asking anybody.
  public var spendable: Int
  /// Claimed and not yet confirmed by the bank.
  public var pending: Int

  /// Makes a balance, for tests and previews.
  ///
  /// - Parameters:
  ///   - total: What there is on all devices and in the bank.
  ///   - spendable: What can be spent here now.
  ///   - pending: What was claimed and isn't confirmed yet.
  public init(total: Int, spendable: Int, pending: Int) {
    self.total = total
    self.spendable = spendable
    self.pending = pending
  }
}
