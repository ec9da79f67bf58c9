/// Money on its way from the wallet of one store into that of another: taken out of the one for good before the other gets it, and kept in between
/// by whoever moves it. So it is in one place at any time.
package struct WalletParcel: Hashable, Sendable, Codable {
  /// Operations that go over as they were made; more are put together into one for each currency.
  package static let maximumOperations = 10_000
  /// Spends of the greatest amount that take one currency out of a wallet; what is left after them stays.
  package static let maximumSpends = 16

  /// Random: who got it once knows it again.
  package var id: OperationID
  /// For the other wallet, in this order.
  package var operations: [WalletOperation]

  package init(id: OperationID, operations: [WalletOperation]) {
    self.id = id
    self.operations = operations
  }

  /// How far a wallet's operations were handed over before.
  package struct Mark: Hashable, Sendable, Codable {
    package var chain: ChainID
    package var count: UInt64
  }
}

extension Wallet {
  /// Where its chain ends now, for the next parcel to begin.
  package var mark: WalletParcel.Mark { WalletParcel.Mark(chain: state.chain, count: state.head.count) }

  /// Takes out all that may be spent here but what claims paid, and puts it into a parcel with the claims; nil, and nothing done, if there is
  /// nothing to take.
  ///
  /// Whoever gets the parcel makes the claims anew, because they count once for each player. A wallet that no bank was ever told of gives its
  /// operations themselves, so that copies of it give nothing twice. Any other gives what it holds: what it may spend by itself is its alone, and
  /// its own bank hears of the spending like of any other.
  ///
  /// - Parameters:
  ///   - neverConnected: Whether no bank can have heard of any operation.
  ///   - handed: The mark after the last parcel.
  ///   - claims: The claims in the ledger that a bank has decided.
  package mutating func pack(
    neverConnected: Bool, since handed: WalletParcel.Mark?, claims: [WalletOperation], reason: String, now: Int64,
    using random: inout some RandomNumberGenerator
  ) throws(WalletError) -> WalletParcel? {
    var paid: [String: Int64] = [:]
    for claim in claims { paid[claim.currency] = (paid[claim.currency] ?? 0).addingClamped(claim.amount) }
    let own = neverConnected ? ownOperations(since: handed) : nil

    var incoming: [WalletOperation] = own ?? claims + state.late.filter(\.isClaim) + state.operations.filter(\.isClaim)
    for currency in state.totals.keys.sorted() {
      var left = max(0, spendable(currency) - (paid[currency] ?? 0))
      for _ in 0..<WalletParcel.maximumSpends where left > 0 {
        let amount = min(left, Self.maximumAmount)
        left -= amount
        func operation(_ kind: WalletOperation.Kind) -> WalletOperation {
          WalletOperation(
            id: OperationID(using: &random), kind: kind, currency: currency, amount: amount, reason: reason, madeAtMilliseconds: now)
        }
        try perform(operation(.spend))
        if own == nil { incoming.append(operation(.earn)) }
      }
    }
    guard !incoming.isEmpty else { return nil }
    return WalletParcel(id: OperationID(using: &random), operations: incoming)
  }

  /// The operations after the last parcel, if they alone make what can be spent here; nil if they have to be put together.
  private func ownOperations(since handed: WalletParcel.Mark?) -> [WalletOperation]? {
    guard state.acknowledged.count == 0, state.follows == nil, state.late.isEmpty, handed.map({ $0.chain == state.chain }) ?? true,
      let passed = Int(exactly: handed?.count ?? 0), passed <= state.operations.count,
      state.operations.count - passed <= WalletParcel.maximumOperations
    else { return nil }
    let own = Array(state.operations.dropFirst(passed))
    var sums: [String: Int64] = [:]
    for operation in own {
      switch operation.effect {
      case .credit: sums[operation.currency] = (sums[operation.currency] ?? 0).addingClamped(operation.amount)
      case .debit: sums[operation.currency] = (sums[operation.currency] ?? 0).addingClamped(-operation.amount)
      case .claim: break
      case .giveBack: return nil
      }
    }
    let most = Self.maximumAmount * Int64(WalletParcel.maximumSpends)
    guard state.totals.keys.allSatisfy({ spendable($0) == sums[$0] ?? 0 && spendable($0) <= most }) else { return nil }
    return own
  }

  /// Does what a parcel holds, but for what is known here already.
  ///
  /// A spend whose money came with an operation that is known, as after a copy of the other store, may be more than is held here: it is late, and
  /// the bank decides.
  ///
  /// - Parameter knows: Whether an operation of that id was ever done here.
  /// - Returns: What was done.
  /// - Throws: ``WalletError`` where a total would become too great; the caller gives the wallet up.
  package mutating func receive(_ parcel: WalletParcel, knowing knows: (OperationID) -> Bool) throws(WalletError) -> [WalletOperation] {
    var done: [WalletOperation] = []
    for operation in parcel.operations where !knows(operation.id) {
      do {
        if try perform(operation) { done.append(operation) }
      } catch .insufficientRights {
        state.late.append(operation)
        done.append(operation)
      }
    }
    return done
  }
}

extension WalletOperation {
  var isClaim: Bool { effect == .claim }
}
