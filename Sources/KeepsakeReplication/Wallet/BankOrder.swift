import Crypto
import Foundation

/// An operation of the bank itself, which the game's own servers or its support order. It counts once, however often it
/// is repeated under its id.
package struct BankOrder: Hashable, Sendable {
  package enum Kind: String, Hashable, Sendable, Codable {
    /// Adds to the player's money.
    case grant
    /// Takes from the player's money. What the balance doesn't cover is a debt, which later earnings pay.
    case charge
    /// Takes a purchase back: the money returns, and the goods are gone.
    case refund
    /// Money that came with a voucher of another bank.
    case voucher
    /// Money that was missing after the bank had been restored from a backup: the player keeps it.
    case shortfall
  }
  package var id: OperationID
  package var kind: Kind
  package var currency: String
  /// Positive.
  package var amount: Int64
  package var reason: String
  /// What the player receives with a grant, or loses with a charge or a refund.
  package var goods: [String]
  /// The purchase that a refund takes back.
  package var purchase: OperationID?
  /// The SHA-256 of the receipt that a grant pays; nil for any other order.
  package var receipt: ContentHash?
  /// By the server's clock, in milliseconds since 1970.
  package var madeAtMilliseconds: Int64

  package init(
    id: OperationID, kind: Kind, currency: String, amount: Int64, reason: String, goods: [String] = [],
    purchase: OperationID? = nil, receipt: ContentHash? = nil, madeAtMilliseconds: Int64 = 0
  ) {
    self.id = id
    self.kind = kind
    self.currency = currency
    self.amount = amount
    self.reason = reason
    self.goods = goods
    self.purchase = purchase
    self.receipt = receipt
    self.madeAtMilliseconds = madeAtMilliseconds
  }

  /// Whether it adds to the player's money.
  package var isCredit: Bool { kind != .charge }

  /// Whether somebody orders something for the player, rather than the bank itself, or something of the player.
  var isForPlayer: Bool {
    switch kind {
    case .grant, .refund: true
    case .charge, .voucher, .shortfall: false
    }
  }

  /// Whether the player loses the goods.
  var takesGoods: Bool { kind == .charge || kind == .refund }

  /// Creates the refund of a purchase. What it was is added by the bank.
  package init(refunding purchase: OperationID, reason: String, madeAtMilliseconds: Int64 = 0) {
    self.init(
      id: Self.refundID(of: purchase), kind: .refund, currency: "", amount: 0, reason: reason, purchase: purchase,
      madeAtMilliseconds: madeAtMilliseconds)
  }

  /// The id of a purchase's refund: it is derived from the purchase, so that each purchase is refunded once.
  package static func refundID(of purchase: OperationID) -> OperationID {
    id(of: "refund") { hasher in
      hasher.update(purchase.high)
      hasher.update(purchase.low)
    }
  }

  /// The id of the grant that pays a receipt: it follows from the receipt, so that there is one.
  ///
  /// - Parameter app: The app's name.
  package static func receiptID(_ receipt: ContentHash, of app: String) -> OperationID {
    id(of: "receipt") { hasher in
      hasher.update(app)
      hasher.update(data: receipt.bytes)
    }
  }

  private static func id(of purpose: String, _ update: (inout SHA256) -> Void) -> OperationID {
    var hasher = SHA256()
    hasher.update("keepsake bank order")
    hasher.update(purpose)
    update(&hasher)
    return hasher.finalize().withUnsafeBytes { digest in
      OperationID(
        high: UInt64(bigEndian: digest.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
        low: UInt64(bigEndian: digest.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }
  }

  /// Whether `other`, with the same id, is this order once more. Reason and time don't count, nor what the bank added
  /// to a refund.
  package func isRepeated(by other: BankOrder) -> Bool {
    guard kind == other.kind, purchase == other.purchase, receipt == other.receipt else { return false }
    return kind == .refund || (currency, amount, goods) == (other.currency, other.amount, other.goods)
  }

  /// Throws unless amount and texts are within their limits.
  ///
  /// - Throws: ``BankOrderError/invalid(_:)``.
  package func check() throws(BankOrderError) {
    let most: Int64
    switch kind {
    case .grant, .charge, .refund: most = Wallet.maximumAmount
    // Sums of many operations.
    case .voucher, .shortfall: most = Wallet.maximumTotal
    }
    guard (1...most).contains(amount) else {
      throw .invalid("\(amount) is not an amount between 1 and \(most)")
    }
    var texts = [(currency, NameRule.currency), (reason, .reason)]
    guard goods.count <= Wallet.maximumGoods else {
      throw .invalid("an order can have at most \(Wallet.maximumGoods) goods, not \(goods.count)")
    }
    texts += goods.map { ($0, NameRule.good) }
    for (text, rule) in texts {
      if let objection = rule.objection(to: text) { throw .invalid(objection) }
    }
  }
}

extension BankOrder: Codable {
  private enum CodingKeys: String, CodingKey {
    case id, kind, currency, amount, reason, goods, purchase, receipt, madeAtMilliseconds
  }

  package init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      id: try values.decode(OperationID.self, forKey: .id), kind: try values.decode(Kind.self, forKey: .kind),
      currency: try values.decode(String.self, forKey: .currency),
      amount: try values.decode(Int64.self, forKey: .amount), reason: try values.decode(String.self, forKey: .reason),
      goods: try values.decodeList(forKey: .goods),
      purchase: try values.decodeIfPresent(OperationID.self, forKey: .purchase),
      receipt: try values.decodeIfPresent(ContentHash.self, forKey: .receipt),
      madeAtMilliseconds: try values.decodeIfPresent(Int64.self, forKey: .madeAtMilliseconds) ?? 0)
  }

  package func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(id, forKey: .id)
    try values.encode(kind, forKey: .kind)
    try values.encode(currency, forKey: .currency)
    try values.encode(amount, forKey: .amount)
    try values.encode(reason, forKey: .reason)
    try values.encodeUnlessEmpty(goods, forKey: .goods)
    try values.encodeIfPresent(purchase, forKey: .purchase)
    try values.encodeIfPresent(receipt, forKey: .receipt)
    if madeAtMilliseconds != 0 { try values.encode(madeAtMilliseconds, forKey: .madeAtMilliseconds) }
  }
}

/// An order with its number: a container's orders are numbered in their sequence, from 1.
package struct NumberedOrder: Hashable, Sendable, Codable {
  /// The most orders in one reply; the rest follows in the next one.
  package static let maximumListed = 100

  package var number: UInt64
  package var order: BankOrder

  package init(number: UInt64, order: BankOrder) { (self.number, self.order) = (number, order) }
}
