import KeepsakeReplication

/// What a game does with its wallet in one checkpoint.
package enum WalletDeed: String, Hashable, Sendable, CaseIterable {
  case earn
  case spendSmall
  /// More than the share of one of two devices.
  case spendLarge
  /// The same payment on every device.
  case claim
  case convert
  /// A spend and an earning that count together or not at all.
  case bundle
  /// An earning under an id that is the same on every device.
  case earnShared
  /// A spend under the id of that earning.
  case reuseShared

  static let gems = "gem"
  static let crowns = "crown"
  static let sharedID = OperationID(high: 0xC0, low: 1)
  /// What a game needs for a large spend.
  static let large: Int64 = 60

  /// Returns the operations.
  ///
  /// - Parameters:
  ///   - slot: The device.
  ///   - number: How many checkpoints the device made before.
  func operations(slot: Int, number: Int) -> [WalletOperation] {
    func operation(
      _ kind: WalletOperation.Kind, _ amount: Int64, of currency: String = Self.gems, id: UInt64 = 1,
      goods: [String] = []
    ) -> WalletOperation {
      WalletOperation(
        id: OperationID(high: 0xA0 + UInt64(slot), low: 2 * UInt64(number) + id), kind: kind, currency: currency,
        amount: amount, reason: "game", goods: goods)
    }
    switch self {
    case .earn: return [operation(.earn, 50)]
    case .spendSmall: return [operation(.spend, 20)]
    case .spendLarge: return [operation(.spend, Self.large, goods: ["castle"])]
    case .claim: return [operation(.claim(key: "gift"), 30)]
    case .convert: return [operation(.convert(to: Self.crowns, received: 2), 20)]
    case .bundle: return [operation(.spend, 25, goods: ["hat"]), operation(.earn, 3, of: Self.crowns, id: 2)]
    case .earnShared:
      var earning = operation(.earn, 40)
      earning.id = Self.sharedID
      return [earning]
    case .reuseShared:
      var spend = operation(.spend, 10)
      spend.id = Self.sharedID
      return [spend]
    }
  }

  /// What the device does, as the second half of a sentence.
  var words: String {
    switch self {
    case .earn: "earns 50"
    case .spendSmall: "spends 20"
    case .spendLarge: "spends \(Self.large)"
    case .claim: "claims the gift of 30"
    case .convert: "converts 20 into 2 crowns"
    case .bundle: "spends 25 and earns 3 crowns in one checkpoint"
    case .earnShared: "earns 40 under the shared id"
    case .reuseShared: "spends 10 under the shared id"
    }
  }
}
