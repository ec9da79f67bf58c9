package import Foundation

/// The head of a chain: how many operations it has, and the hash that links them all.
package struct ChainHead: Hashable, Sendable, Codable {
  /// The number of operations on the chain; 0 for an empty chain. The first operation has the number 1.
  package var count: UInt64
  /// The SHA-256 over the previous head's hash and the operation; for an empty chain, over the chain's id.
  package var hash: ContentHash

  package init(count: UInt64, hash: ContentHash) {
    self.count = count
    self.hash = hash
  }
}

/// A device's side of the wallet in an exchange.
package struct WalletOffer: Hashable, Sendable {
  /// The version that this release offers.
  package static let currentVersion = 2

  package var chain: ChainID
  /// What the store can read in a reply: a store of version 1 would refuse the whole response with a `restored`, or
  /// with a verdict `notAllowed`.
  package var version: Int
  /// The chain that this one follows.
  package var follows: ChainID?
  /// The head that the bank last acknowledged, after which `operations` begin.
  package var base: ChainHead
  /// The number of the newest statement on this chain that the store has; 0 for none.
  package var statement: UInt64
  /// The epoch of the bank that made that statement.
  package var epoch: UInt64
  /// The epoch of the bank that has asked to be shown a statement; nil if none has.
  package var proving: UInt64?
  /// The newest statement, if it is asked for and the store has it whole.
  package var proof: WalletStatement?
  /// Of a new chain: what the bank had settled on one that it follows. A bank that doesn't know it was set back.
  package var settled: SettledOperations?
  /// Whether the store doesn't have the operations any more that the bank has lost: the statement has to do.
  package var skipsLost: Bool
  package var operations: [WalletOperation]
  /// Operations of chains that this one follows, which were made there and never seen by the bank.
  package var late: [WalletOperation]
  /// Chains before `follows`, the newest first: a bank that was set back may not know that they were followed.
  package var ancestors: [ChainID]
  /// How many late operations, from the front, the bank had settled before it was set back: those in this offer, and
  /// those that follow.
  package var again: Int
  /// The first of those that the bank was waiting to charge: what became of them?
  package var waiting: [OperationID]
  /// What has to be spendable on this device for purchases that are being made, by currency.
  package var needs: [String: Int64]
  /// The number of the last change of the player's goods that the store knows; 0 for none.
  package var goods: UInt64
  /// The number of the bank's last order that the store knows; 0 for none.
  package var orders: UInt64
  /// What other banks owe the player.
  package var vouchers: [WalletVoucher]
  /// The container for whose bank this chain is to be closed, with a voucher.
  package var leaving: ContainerID?

  package init(
    chain: ChainID, version: Int = currentVersion, follows: ChainID? = nil, base: ChainHead, statement: UInt64 = 0,
    epoch: UInt64 = 0, proving: UInt64? = nil, proof: WalletStatement? = nil, settled: SettledOperations? = nil,
    skipsLost: Bool = false, operations: [WalletOperation] = [], late: [WalletOperation] = [],
    ancestors: [ChainID] = [],
    again: Int = 0,
    waiting: [OperationID] = [], needs: [String: Int64] = [:], goods: UInt64 = 0, orders: UInt64 = 0,
    vouchers: [WalletVoucher] = [], leaving: ContainerID? = nil
  ) {
    self.chain = chain
    self.version = version
    self.follows = follows
    self.base = base
    self.statement = statement
    self.epoch = epoch
    self.proving = proving
    self.proof = proof
    self.settled = settled
    self.skipsLost = skipsLost
    self.operations = operations
    self.late = late
    self.ancestors = ancestors
    self.again = again
    self.waiting = waiting
    self.needs = needs
    self.goods = goods
    self.orders = orders
    self.vouchers = vouchers
    self.leaving = leaving
  }
}

extension WalletOffer {
  /// Whether the store can show a bank that was set back what that had granted.
  var knowsRestores: Bool { version >= 2 }
  /// The chains that this one follows, the newest first.
  var formers: [ChainID] { [follows].compactMap(\.self) + ancestors }
  /// Whether the store knows that there are currencies which no device earns.
  var knowsAuthoritative: Bool { version >= 2 }
}

/// The bank's reply to an offer.
package struct WalletReply: Hashable, Sendable {
  package enum State: Hashable, Sendable {
    /// The bank has the chain as offered, up to this head.
    case accepted(ChainHead)
    /// The bank's chain is at `head`, which isn't among what was offered: a store that has this head continues from
    /// there. Otherwise the two are the same up to `common`; nil if the bank can't tell.
    case from(head: ChainHead, common: ChainHead?)
    /// The chain is closed, or another copy of this store continued it: continue with a new one that follows it, and
    /// offer what came after `common` as late.
    case closed(common: ChainHead)
    /// The bank was set back since it made the statement that the offer names: show it, and offer again what it had
    /// settled.
    case restored
  }
  package var chain: ChainID
  package var state: State
  /// The number of the bank's newest statement on this chain, which says `totals`. Rights are only granted to a store
  /// that has shown the newest one, or the one before it.
  package var statement: UInt64
  /// How often the bank was set back.
  package var epoch: UInt64
  /// What proves the statement (``WalletStatement/code``).
  package var code: Data
  /// The chain's totals as the bank keeps them, up to the head in `state`.
  package var totals: [String: WalletTotals]
  /// The player's money by currency: what the bank holds plus all rights, less the spends that wait.
  package var balances: [String: Int64]
  /// What this chain should give back for another device, or for spends that wait, by currency.
  package var recalled: [String: Int64]
  /// The decisions about late operations, claims, and operations that nothing covered.
  package var decisions: [WalletDecision]
  /// Where the rest of the money is, by currency, if a need isn't met.
  package var held: [String: [WalletHolding]]
  /// What changed in the player's goods; nil if nothing did.
  package var goods: WalletGoods?
  /// The bank's own operations after those that the store knows, in their sequence.
  package var orders: [NumberedOrder]
  /// What the player owes after charges beyond the balance, by currency.
  package var owed: [String: Int64]
  /// The currencies that no device can earn, sorted.
  package var authoritative: [String]
  /// What the chain took along when it was closed for another bank.
  package var voucher: WalletVoucher?
  /// The chains whose vouchers are paid, of those that the store showed.
  package var takenVouchers: [ChainID]
  /// The chains whose vouchers this bank will never pay: no bank of this cloud issued them, or not for this one.
  package var declinedVouchers: [ChainID]
  /// Where the bank has the chain, for a store that has to continue with another one: what it shows to a bank that was
  /// set back (``WalletStatement/isOfHead``).
  package var proof: WalletStatement?

  package init(
    chain: ChainID, state: State, statement: UInt64 = 0, epoch: UInt64 = 0, code: Data = Data(),
    totals: [String: WalletTotals] = [:], balances: [String: Int64] = [:], recalled: [String: Int64] = [:],
    decisions: [WalletDecision] = [], held: [String: [WalletHolding]] = [:], goods: WalletGoods? = nil,
    orders: [NumberedOrder] = [], owed: [String: Int64] = [:], authoritative: [String] = [],
    voucher: WalletVoucher? = nil, takenVouchers: [ChainID] = [], declinedVouchers: [ChainID] = [],
    proof: WalletStatement? = nil
  ) {
    self.chain = chain
    self.state = state
    self.statement = statement
    self.epoch = epoch
    self.code = code
    self.totals = totals
    self.balances = balances
    self.recalled = recalled
    self.decisions = decisions
    self.held = held
    self.goods = goods
    self.orders = orders
    self.owed = owed
    self.authoritative = authoritative
    self.voucher = voucher
    self.takenVouchers = takenVouchers
    self.declinedVouchers = declinedVouchers
    self.proof = proof
  }
}

/// Changes of the goods that a player has: what accepted operations granted.
package struct WalletGoods: Hashable, Sendable, Codable {
  /// The most goods in one reply, besides those of the same operation; the rest follows in the next one.
  package static let maximumChanges = 1_000

  /// The number of the change after which these come; 0 if they are all that the player has.
  package var after: UInt64
  /// The number of the last of them.
  package var number: UInt64
  /// How many the player has of the goods that changed.
  package var counts: [String: Int64]

  /// Whether more of them may follow.
  var isPart: Bool { counts.count >= Self.maximumChanges }

  package init(after: UInt64, number: UInt64, counts: [String: Int64]) {
    self.after = after
    self.number = number
    self.counts = counts
  }
}

/// The goods that a player has, as a store knows them.
package struct PlayerGoods: Hashable, Sendable, Codable {
  /// The number of the last change; 0 if the bank should send all.
  package var number: UInt64
  package var counts: [String: Int64]

  package init(number: UInt64 = 0, counts: [String: Int64] = [:]) { (self.number, self.counts) = (number, counts) }

  /// Takes changes that come after those that are known.
  ///
  /// - Returns: Whether they do: a reply to an earlier offer has changes that came before. Nor does it take a number
  ///   that no bank accepts in an offer.
  package mutating func take(_ goods: WalletGoods) -> Bool {
    guard goods.after == 0 || goods.after == number, goods.number <= Cursor.maximumSeq else { return false }
    counts = (goods.after == 0 ? [:] : counts).merging(goods.counts) { $1 }.filter { $0.value != 0 }
    number = goods.number
    return true
  }
}

/// The bank's decision about an operation that wasn't covered by rights in advance.
package struct WalletDecision: Hashable, Sendable, Codable {
  package enum Verdict: String, Hashable, Sendable, Codable {
    /// Counted, exactly once.
    case accepted
    /// The balance couldn't cover it: it was never charged, and its goods are revoked.
    case declined
    /// The balance covers it, but other devices hold too much of it: it is charged when they have returned enough.
    case waiting
    /// Another operation has the same id. This one was never charged.
    case idReused
    /// No device can earn this currency (``BankRules/authoritative``). It was never counted.
    case notAllowed
    /// The bank doesn't know the operation that it was asked about: offer it again.
    case unknown

    /// Whether it stays so.
    package var isFinal: Bool { self != .waiting && self != .unknown }
    /// Whether the operation counts.
    package var counts: Bool { self == .accepted }
  }
  package var id: OperationID
  package var verdict: Verdict

  package init(id: OperationID, verdict: Verdict) {
    self.id = id
    self.verdict = verdict
  }
}

/// What a bank keeps of an operation that it has decided.
package struct DecidedOperation: Hashable, Sendable {
  package var verdict: WalletDecision.Verdict
  package var fingerprint: UInt64
  /// The chain on which it came, or which the chain that brought it follows; nil if that is no longer kept.
  package var chain: ChainID?

  package init(verdict: WalletDecision.Verdict, fingerprint: UInt64, chain: ChainID?) {
    self.verdict = verdict
    self.fingerprint = fingerprint
    self.chain = chain
  }
}
