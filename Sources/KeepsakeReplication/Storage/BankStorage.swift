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
  mutating func markClaimPaid(_ key: String) throws
  /// Returns how many of each good the player has, for those that changed after the change of this number, in the order
  /// of their latest changes: at most `limit` of them, and the rest of the last one's change.
  func goods(changedAfter number: UInt64, limit: Int) throws -> [NumberedGood]
  /// Adds to how many of a good the player has, with the change of this number.
  mutating func addGood(_ name: String, _ count: Int64, number: UInt64) throws
  /// Returns a chain that was closed; nil for any other.
  func closedChain(_ id: ChainID) throws -> BankState.ClosedChain?
  mutating func recordClosedChain(_ chain: BankState.ClosedChain, _ id: ChainID) throws
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
