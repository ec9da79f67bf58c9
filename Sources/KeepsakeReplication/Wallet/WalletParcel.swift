/// Money in transit from the wallet of one store into that of another. It is removed from the one for good before the
/// other receives it, and kept in between by the code that moves it, so it exists in one place at any time.
package struct WalletParcel: Hashable, Sendable, Codable {
  /// The most operations that are transferred as they were made; if there are more, they are combined into one for each
  /// currency.
  package static let maximumOperations = 10_000
  /// The most spends of the greatest amount that remove one currency from a wallet; what is left after them stays.
  package static let maximumSpends = 16

  /// Random, so that a wallet that received the parcel recognizes it.
  package var id: OperationID
  /// Operations for the other wallet, in this order.
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
  /// Where its chain ends, which is where the next parcel begins.
  package var mark: WalletParcel.Mark { WalletParcel.Mark(chain: state.chain, count: state.head.count) }

  /// Takes out everything that may be spent here, and puts it into a parcel together with the claims. For a wallet that
  /// no bank knows: any other one is settled by its bank (``FormerWallet``).
  ///
  /// The wallet gives its operations themselves, so that copies of it give nothing twice. If there are too many, it
  /// gives what they come to. The receiver of the parcel makes the claims anew, since they count once for each player.
  ///
  /// - Parameter handed: The mark after the last parcel.
  /// - Returns: The parcel; nil, with nothing changed, if there is nothing to take.
  package mutating func pack(
    since handed: WalletParcel.Mark?, reason: String, now: Int64, using random: inout some RandomNumberGenerator
  ) throws(WalletError) -> WalletParcel? {
    let own = ownOperations(since: handed)
    var incoming: [WalletOperation] = own ?? state.late.filter(\.isClaim) + state.operations.filter(\.isClaim)
    for currency in state.totals.keys.sorted() {
      var left = max(0, spendable(currency))
      for _ in 0..<WalletParcel.maximumSpends where left > 0 {
        let amount = min(left, Self.maximumAmount)
        left -= amount
        func operation(_ kind: WalletOperation.Kind) -> WalletOperation {
          WalletOperation(
            id: OperationID(using: &random), kind: kind, currency: currency, amount: amount, reason: reason,
            madeAtMilliseconds: now)
        }
        try perform(operation(.spend))
        if own == nil { incoming.append(operation(.earn)) }
      }
    }
    guard !incoming.isEmpty else { return nil }
    return WalletParcel(id: OperationID(using: &random), operations: incoming)
  }

  /// Returns the operations after the last parcel, if they alone amount to what can be spent here; nil if operations
  /// have to be combined.
  private func ownOperations(since handed: WalletParcel.Mark?) -> [WalletOperation]? {
    guard state.late.isEmpty,
      handed.map({ $0.chain == state.chain }) ?? true,
      let passed = Int(exactly: handed?.count ?? 0), passed <= state.operations.count,
      state.operations.count - passed <= WalletParcel.maximumOperations
    else { return nil }
    let own = Array(state.operations.dropFirst(passed))
    var sums: [String: Int64] = [:]
    for operation in own {
      if operation.effect == .giveBack { return nil }
      for movement in operation.movements {
        sums[movement.currency] = (sums[movement.currency] ?? 0).addingClamped(movement.earned - movement.spent)
      }
    }
    let most = Self.maximumAmount * Int64(WalletParcel.maximumSpends)
    guard state.totals.keys.allSatisfy({ spendable($0) == sums[$0] ?? 0 && spendable($0) <= most }) else { return nil }
    return own
  }

  /// Performs the operations of a parcel, except those that are known here already.
  ///
  /// A spend whose money came with an operation that is known already, as after a copy of the other store, may exceed
  /// what is here: it becomes late, and the bank decides.
  ///
  /// - Parameter knows: Whether an operation of that id was ever performed here.
  /// - Returns: What was performed.
  /// - Throws: ``WalletError`` if a total would become too great; the caller discards the wallet.
  package mutating func receive(_ parcel: WalletParcel, knowing knows: (OperationID) -> Bool) throws(WalletError)
    -> [WalletOperation]
  {
    var done: [WalletOperation] = []
    for unit in parcel.operations.filter({ !knows($0.id) }).units {
      do {
        done += try perform(unit)
      } catch .insufficientRights {
        state.late.append(contentsOf: unit)
        done += unit
      } catch .serverAuthoritative {
        // Earned before a bank said that no device can: it declines them, and the game learns of it.
        state.late.append(contentsOf: unit)
        done += unit
      }
    }
    return done
  }
}

extension WalletOperation {
  var isClaim: Bool { effect == .claim }
}
