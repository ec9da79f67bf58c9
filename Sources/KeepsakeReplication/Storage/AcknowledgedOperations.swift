/// What a store has of the operations that the bank acknowledged on the wallet's chain after a head.
package enum AcknowledgedOperations: Hashable, Sendable {
  /// All of them, oldest first.
  case kept([WalletOperation])
  /// The head isn't on the chain: a copy of the store went another way from some head before it.
  case branched
  /// Some of them aren't kept any more.
  case notKept

  /// All of them, oldest first; nil if they aren't known.
  package var operations: [WalletOperation]? {
    if case .kept(let operations) = self { operations } else { nil }
  }
}
