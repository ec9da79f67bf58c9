package import Foundation

/// What a decision reads of a container's bank: a part of ``ReadSet``.
package struct BankReads: Hashable, Sendable {
  /// A claim that a voucher of another bank has brought.
  package struct VouchedClaim: Hashable, Sendable {
    package var bank: ContainerID
    package var key: ExactText
  }
  /// A voucher of another bank.
  package struct Voucher: Hashable, Sendable {
    package var bank: ContainerID
    package var chain: ChainID
  }
  /// Numbered rows after a number.
  package struct Range: Hashable, Sendable {
    package var after: UInt64
    package var limit: Int

    package init(after: UInt64, limit: Int) { (self.after, self.limit) = (after, limit) }

    fileprivate static func union(_ one: Range?, _ other: Range?) -> Range? {
      guard let one, let other else { return one ?? other }
      return Range(after: min(one.after, other.after), limit: max(one.limit, other.limit))
    }
  }

  /// The bank's state.
  package var state = false
  package var decisions: Set<OperationID> = []
  /// Operations with their details.
  package var operations: Set<OperationID> = []
  package var claims: Set<ExactText> = []
  /// The first so many payments.
  package var payments: Int?
  package var paidVouchers: Set<Voucher> = []
  package var vouchedClaims: Set<VouchedClaim> = []
  package var orders: Set<OperationID> = []
  package var ordersAfter: Range?
  /// How many the player has of these goods.
  package var goods: Set<ExactText> = []
  package var allGoods = false
  package var goodsAfter: Range?
  package var closedChains: Set<ChainID> = []
  package var allClosedChains = false
  /// Vouchers of closed chains.
  package var vouchers: Set<ChainID> = []
  /// Whether this receipt of an app was paid, and to whom.
  package var receipt: Receipt?

  package init() {}

  mutating func formUnion(_ other: BankReads) {
    state = state || other.state
    decisions.formUnion(other.decisions)
    operations.formUnion(other.operations)
    claims.formUnion(other.claims)
    payments = other.payments.map { max($0, payments ?? 0) } ?? payments
    paidVouchers.formUnion(other.paidVouchers)
    vouchedClaims.formUnion(other.vouchedClaims)
    orders.formUnion(other.orders)
    ordersAfter = .union(ordersAfter, other.ordersAfter)
    goods.formUnion(other.goods)
    allGoods = allGoods || other.allGoods
    goodsAfter = .union(goodsAfter, other.goodsAfter)
    closedChains.formUnion(other.closedChains)
    allClosedChains = allClosedChains || other.allClosedChains
    vouchers.formUnion(other.vouchers)
    receipt = other.receipt ?? receipt
  }

  var work: Int { decisions.count + claims.count + vouchedClaims.count + goods.count }
}

/// A shop's receipt, which an app pays once in the whole cloud.
package struct Receipt: Hashable, Sendable {
  package var app: Data
  package var hash: ContentHash
  /// The order that pays it.
  package var operation: OperationID

  package init(app: Data, hash: ContentHash, operation: OperationID) {
    (self.app, self.hash, self.operation) = (app, hash, operation)
  }
}
