/// What a bank reads and writes of one container beside its state: what it decided about each operation, which
/// payments were claimed, what goods the player has, and which chains were closed. All of it is kept for ever.
package protocol BankStorage {
  /// Returns what the bank decided about an operation, however long ago; nil if the operation was never seen.
  func decision(on operation: OperationID) throws -> DecidedOperation?
  /// Records a decision. Only one that isn't final is ever replaced.
  mutating func recordDecision(_ verdict: WalletDecision.Verdict, on operation: WalletOperation, of chain: ChainID)
    throws
  /// Returns whether a claim with this key was paid.
  func isClaimPaid(_ key: String) throws -> Bool
  /// - Parameter payment: What was paid; nil if that isn't known.
  mutating func markClaimPaid(_ key: String, _ payment: ClaimPayment?) throws
  /// Returns the claims that were paid and of which it is known what was paid: at most `limit` of them, always the
  /// first ones in the storage's order.
  func payments(limit: Int) throws -> [WalletVoucher.Claim]
  /// Returns whether a voucher of another bank for this chain was paid.
  func isVoucherPaid(_ chain: ChainID, of bank: ContainerID) throws -> Bool
  mutating func markVoucherPaid(_ chain: ChainID, of bank: ContainerID) throws
  /// Returns how much of a claim that a voucher of another bank has brought is still to be subtracted from that bank's
  /// vouchers, because this bank has paid it, too. Nil if none has brought it.
  func vouchedClaim(_ key: String, by bank: ContainerID) throws -> Int64?
  /// - Parameter left: In place of what was recorded before.
  mutating func setVouchedClaim(_ key: String, by bank: ContainerID, left: Int64) throws
  /// Returns an operation that was decided, as far as its details are kept.
  func decidedOperation(_ id: OperationID) throws -> WalletOperation?
  /// Returns the bank's order of that id.
  func order(_ id: OperationID) throws -> BankOrder?
  /// Returns the orders after this number, in their sequence.
  func orders(after number: UInt64, limit: Int) throws -> [NumberedOrder]
  mutating func recordOrder(_ order: NumberedOrder) throws
  /// Returns how many of each good the player has, for those that changed after the change of this number, in the order
  /// of their latest changes: at most `limit` of them, and the rest of the last one's change.
  func goods(changedAfter number: UInt64, limit: Int) throws -> [NumberedGood]
  /// Adds to how many of a good the player has, with the change of this number. What would fall below zero is zero.
  mutating func addGood(_ name: String, _ count: Int64, number: UInt64) throws
  /// Returns a chain that was closed; nil for any other.
  func closedChain(_ id: ChainID) throws -> BankState.ClosedChain?
  mutating func recordClosedChain(_ chain: BankState.ClosedChain, _ id: ChainID) throws
  /// Returns what a closed chain took along to another bank; nil for any other chain. Costs reading its claims.
  func voucher(of chain: ChainID) throws -> WalletVoucher?
  /// Keeps the voucher of a chain that was closed with ``recordClosedChain(_:_:)``. Its claims are those that
  /// ``payments(limit:)`` returned, or none: they needn't be kept twice.
  mutating func recordVoucher(_ voucher: WalletVoucher) throws
}

/// How many of a good a player has, with the number of the latest change.
package struct NumberedGood: Hashable, Sendable {
  package var name: String
  package var count: Int64
  package var number: UInt64

  package init(name: String, count: Int64, number: UInt64) {
    self.name = name
    self.count = count
    self.number = number
  }
}

/// What a bank paid for a claim.
package struct ClaimPayment: Hashable, Sendable, Codable {
  package var currency: String
  package var amount: Int64

  package init(currency: String, amount: Int64) { (self.currency, self.amount) = (currency, amount) }
}

extension [String: ClaimPayment?] {
  /// The claims of which it is known what was paid, sorted by their keys.
  package var claims: [WalletVoucher.Claim] {
    sorted { $0.key < $1.key }.compactMap { key, payment in
      payment.map { WalletVoucher.Claim(key: key, currency: $0.currency, amount: $0.amount) }
    }
  }
}
