/// A store's wallet: its chain, what it knows of the bank, and what it has still to report to it.
package struct WalletState: Hashable, Sendable {
  package var chain: ChainID
  /// The chain that this one follows because it was closed, or because a copy of this store continued it.
  package var follows: ChainID?
  /// The chain's newest head.
  package var head: ChainHead
  /// The head that the bank last acknowledged.
  package var acknowledged: ChainHead
  /// A head not far before `acknowledged`, with at least one operation between them; nil if none is known.
  package var previous: ChainHead?
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
  /// The container whose bank it was offered to, noted before the first offer: no other bank is ever offered it. Nil in
  /// a wallet of an older store.
  package var bank: ContainerID?
  /// The bank's newest statement on this chain, if it has a seal.
  package var proof: WalletStatement?
  /// What the bank had settled on a former chain, until it has made a statement on this one.
  package var settled: SettledOperations?
  /// How often the bank was set back, as far as this store knows.
  package var epoch: UInt64
  /// The epoch of the bank that has asked for `proof`, because it was set back; nil if none has.
  package var proving: UInt64?
  /// The chains before `follows`, the newest first, as far as they are kept.
  package var ancestors: [ChainID]
  static let maximumAncestors = 16
  /// How many of `operations`, from the front, the bank had settled before it was set back.
  package var replayed: Int
  /// Whether the operations that the bank then lost aren't kept here any more.
  package var skipsLost: Bool
  /// How many of `late`, from the front, the bank had settled before it was set back.
  package var again: Int
  /// The number of the bank's last order that is known here.
  package var orders: UInt64
  /// Whether the orders that the bank had before this store first reached it are still to come: the game isn't told of
  /// them.
  package var isCatchingUp: Bool
  /// What the player owes, by currency, as last reported by the bank.
  package var owed: [String: Int64]
  /// The currencies that no device can earn, as last reported by the bank.
  package var authoritative: [String]
  /// What other banks owe the player, until this one has paid it.
  package var vouchers: [WalletVoucher]

  package init(chain: ChainID, follows: ChainID? = nil) {
    self.chain = chain
    self.follows = follows
    head = ChainHead(emptyChain: chain)
    acknowledged = head
    previous = nil
    operations = []
    late = []
    waiting = []
    totals = [:]
    balances = [:]
    statement = 0
    needs = [:]
    held = [:]
    isBound = false
    bank = nil
    proof = nil
    settled = nil
    epoch = 0
    proving = nil
    ancestors = []
    replayed = 0
    skipsLost = false
    again = 0
    orders = 0
    isCatchingUp = follows == nil
    owed = [:]
    authoritative = []
    vouchers = []
  }

  /// The operations that no bank has decided.
  package var undecided: [OperationList] { [operations, late, waiting] }

  /// Why no wallet can have this state, which somebody who knows the format may have written; nil if one can. Looks at
  /// no operation.
  package var objection: String? {
    guard acknowledged.count <= head.count, head.count <= Cursor.maximumSeq, statement <= Cursor.maximumSeq else {
      return "its chain has an invalid length"
    }
    guard previous.map({ $0.count < acknowledged.count }) ?? true,
      settled.map({ $0.operations.count <= SettledOperations.maximumCount }) ?? true
    else { return "it says impossible things of what the bank has settled" }
    guard max(epoch, proving ?? 0) <= Cursor.maximumSeq, orders <= Cursor.maximumSeq,
      min(again, replayed) >= 0, max(again, replayed) <= Int(clamping: Cursor.maximumSeq),
      ancestors.count <= Self.maximumAncestors
    else {
      return "it contains impossible numbers"
    }
    guard Wallet.arePossible(totals), Wallet.arePossible(balances), Wallet.arePossible(owed: owed),
      proof.map({ Wallet.arePossible($0.totals) }) ?? true,
      vouchers.allSatisfy({ Wallet.arePossible($0.amounts) })
    else { return "it contains impossible amounts" }
    guard needs.count <= Wallet.maximumNeeds, Wallet.arePossible(needs) else {
      return "it requests impossible rights"
    }
    guard authoritative.count <= Wallet.maximumCurrencies else { return "it lists impossible currencies" }
    return nil
  }
}

extension WalletState: Codable {
  private enum CodingKeys: String, CodingKey {
    case chain, follows, head, acknowledged, operations, late, waiting, totals, balances, statement, needs, held
    case isBound, bank, proof, epoch, proving, ancestors, replayed, skipsLost, again, orders
    case isCatchingUp, owed, authoritative, vouchers, previous, settled
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
    bank = try values.decodeIfPresent(ContainerID.self, forKey: .bank)
    proof = try values.decodeIfPresent(WalletStatement.self, forKey: .proof)
    previous = try values.decodeIfPresent(ChainHead.self, forKey: .previous)
    settled = try values.decodeIfPresent(SettledOperations.self, forKey: .settled)
    epoch = try values.decodeIfPresent(UInt64.self, forKey: .epoch) ?? 0
    proving = try values.decodeIfPresent(UInt64.self, forKey: .proving)
    ancestors = try values.decodeIfPresent([ChainID].self, forKey: .ancestors) ?? []
    replayed = try values.decodeIfPresent(Int.self, forKey: .replayed) ?? 0
    skipsLost = try values.decodeIfPresent(Bool.self, forKey: .skipsLost) ?? false
    again = try values.decodeIfPresent(Int.self, forKey: .again) ?? 0
    orders = try values.decodeIfPresent(UInt64.self, forKey: .orders) ?? 0
    isCatchingUp = try values.decodeIfPresent(Bool.self, forKey: .isCatchingUp) ?? false
    owed = try values.decodeIfPresent([String: Int64].self, forKey: .owed) ?? [:]
    authoritative = try values.decodeIfPresent([String].self, forKey: .authoritative) ?? []
    vouchers = try values.decodeIfPresent([WalletVoucher].self, forKey: .vouchers) ?? []
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
    try values.encodeIfPresent(bank, forKey: .bank)
    try values.encodeIfPresent(proof, forKey: .proof)
    try values.encodeIfPresent(previous, forKey: .previous)
    try values.encodeIfPresent(settled, forKey: .settled)
    if epoch != 0 { try values.encode(epoch, forKey: .epoch) }
    try values.encodeIfPresent(proving, forKey: .proving)
    try values.encodeUnlessEmpty(ancestors, forKey: .ancestors)
    if replayed != 0 { try values.encode(replayed, forKey: .replayed) }
    if skipsLost { try values.encode(skipsLost, forKey: .skipsLost) }
    if again != 0 { try values.encode(again, forKey: .again) }
    if orders != 0 { try values.encode(orders, forKey: .orders) }
    if isCatchingUp { try values.encode(isCatchingUp, forKey: .isCatchingUp) }
    try values.encodeUnlessEmpty(owed, forKey: .owed)
    try values.encodeUnlessEmpty(authoritative, forKey: .authoritative)
    try values.encodeUnlessEmpty(vouchers, forKey: .vouchers)
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
