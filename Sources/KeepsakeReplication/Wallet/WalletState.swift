/// A store's wallet: its chain, what it knows of the bank, and what it has still to report to it.
package struct WalletState: Hashable, Sendable {
  package var chain: ChainID
  /// The chain that this one follows because it was closed, or because a copy of this store continued it.
  package var follows: ChainID?
  /// The chain's newest head.
  package var head: ChainHead
  /// The head that the bank last acknowledged.
  package var acknowledged: ChainHead
  /// Operations after `acknowledged`, oldest first.
  package var operations: OperationList
  /// Operations of earlier chains that the bank has not decided yet.
  package var late: OperationList
  /// Late spends that the bank has, and will charge as soon as other devices have returned enough.
  package var waiting: OperationList
  /// Totals of this chain by currency: the bank's at `acknowledged`, with `operations` added.
  package var totals: [String: WalletTotals]
  /// The player's money in total by currency at `acknowledged`, as last reported by the bank, without what `waiting`
  /// spends will take.
  package var balances: [String: Int64]
  /// The number of the bank's newest statement on this chain; 0 before the first one.
  package var statement: UInt64
  /// What has to be spendable here for purchases that are being made, by currency: the bank is asked for it.
  package var needs: [String: Int64]
  /// Where the rest of the money was when the bank couldn't meet a need, by currency.
  package var held: [String: [WalletHolding]]
  /// Whether the chain was ever offered to a bank. A bank that may know it decides what becomes of it.
  package var isBound: Bool

  package init(chain: ChainID, follows: ChainID? = nil) {
    self.chain = chain
    self.follows = follows
    head = ChainHead(emptyChain: chain)
    acknowledged = head
    operations = []
    late = []
    waiting = []
    totals = [:]
    balances = [:]
    statement = 0
    needs = [:]
    held = [:]
    isBound = false
  }

  /// The operations that no bank has decided.
  package var undecided: [OperationList] { [operations, late, waiting] }

  /// Why no wallet can have this state, which somebody who knows the format may have written; nil if one can. Looks at
  /// no operation.
  package var objection: String? {
    guard acknowledged.count <= head.count, head.count <= Cursor.maximumSeq, statement <= Cursor.maximumSeq else {
      return "its chain has an invalid length"
    }
    guard Wallet.arePossible(totals), Wallet.arePossible(balances) else { return "it contains impossible amounts" }
    guard needs.count <= Wallet.maximumNeeds, Wallet.arePossible(needs) else {
      return "it requests impossible rights"
    }
    return nil
  }
}

extension WalletState: Codable {
  private enum CodingKeys: String, CodingKey {
    case chain, follows, head, acknowledged, operations, late, waiting, totals, balances, statement, needs, held
    case isBound
  }

  package init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    chain = try values.decode(ChainID.self, forKey: .chain)
    follows = try values.decodeIfPresent(ChainID.self, forKey: .follows)
    head = try values.decode(ChainHead.self, forKey: .head)
    acknowledged = try values.decode(ChainHead.self, forKey: .acknowledged)
    operations = try values.decode(OperationList.self, forKey: .operations)
    late = try values.decode(OperationList.self, forKey: .late)
    totals = try values.decode([String: WalletTotals].self, forKey: .totals)
    balances = try values.decode([String: Int64].self, forKey: .balances)
    // Wallets of older stores don't have these fields.
    waiting = try values.decodeIfPresent(OperationList.self, forKey: .waiting) ?? []
    statement = try values.decodeIfPresent(UInt64.self, forKey: .statement) ?? 0
    needs = try values.decodeIfPresent([String: Int64].self, forKey: .needs) ?? [:]
    held = try values.decodeIfPresent([String: [WalletHolding]].self, forKey: .held) ?? [:]
    isBound = try values.decodeIfPresent(Bool.self, forKey: .isBound) ?? (acknowledged.count > 0 || follows != nil)
  }

  package func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(chain, forKey: .chain)
    try values.encodeIfPresent(follows, forKey: .follows)
    try values.encode(head, forKey: .head)
    try values.encode(acknowledged, forKey: .acknowledged)
    try values.encode(operations, forKey: .operations)
    try values.encode(late, forKey: .late)
    try values.encodeUnlessEmpty(waiting, forKey: .waiting)
    try values.encode(totals, forKey: .totals)
    try values.encode(balances, forKey: .balances)
    try values.encode(statement, forKey: .statement)
    try values.encodeUnlessEmpty(needs, forKey: .needs)
    try values.encodeUnlessEmpty(held, forKey: .held)
    try values.encode(isBound, forKey: .isBound)
  }
}

/// One chain's totals in one currency.
package struct WalletTotals: Hashable, Sendable, Codable {
  package var granted: Int64 = 0
  package var earned: Int64 = 0
  package var spent: Int64 = 0
  package var returned: Int64 = 0

  package init() {}

  /// What may be spent; never negative if the totals are the bank's. A store's own are negative while it has spent an
  /// earning that counted on another device under the same id.
  package var rights: Int64 {
    // Each term is at most `Wallet.maximumTotal`, so this can't overflow.
    granted &+ earned &- spent &- returned
  }
}

/// A device that holds part of the player's money.
package struct WalletHolding: Hashable, Sendable, Codable {
  /// The most devices of which a reply says what they hold, for each currency.
  static let maximumListed = 64

  package var device: DeviceID?
  package var amount: Int64
  /// When the cloud last heard of it, by the server's clock, to the hour.
  package var seenMilliseconds: Int64

  package init(device: DeviceID?, amount: Int64, seenMilliseconds: Int64) {
    self.device = device
    self.amount = amount
    self.seenMilliseconds = seenMilliseconds
  }
}
