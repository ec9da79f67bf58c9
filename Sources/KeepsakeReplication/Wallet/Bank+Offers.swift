// What the bank finds out about an offer before any of it counts.
extension Bank {
  /// Checks an offer, which comes from anybody.
  ///
  /// - Throws: ``ExchangeError`` for one with impossible numbers, amounts or texts, or with more of something than a
  ///   store ever offers.
  static func check(_ offer: WalletOffer) throws {
    let counts = [offer.base.count, offer.statement, offer.goods, offer.orders, offer.epoch]
    guard counts.allSatisfy({ $0 <= Cursor.maximumSeq }), offer.again >= 0, offer.version >= 1 else {
      throw ExchangeError.malformed("a number of the wallet is out of range")
    }
    if let proof = offer.proof {
      guard max(proof.epoch, proof.number, proof.head.count) <= Cursor.maximumSeq, Wallet.arePossible(proof.totals)
      else { throw ExchangeError.malformed("the wallet's statement is out of range") }
      guard proof.totals.count <= Wallet.maximumCurrencies else {
        throw ExchangeError.tooMany("currencies in the wallet's statement")
      }
    }
    if let settled = offer.settled {
      let head = settled.statement.head
      guard max(settled.statement.epoch, settled.statement.number, head.count) <= Cursor.maximumSeq,
        settled.statement.totals.count <= Wallet.maximumCurrencies, Wallet.arePossible(settled.statement.totals)
      else { throw ExchangeError.malformed("the wallet's former statement is out of range") }
      guard settled.operations.count <= SettledOperations.maximumCount else {
        throw ExchangeError.tooMany("wallet operations before a statement")
      }
    }
    guard offer.ancestors.count <= WalletState.maximumAncestors else { throw ExchangeError.tooMany("wallet chains") }
    guard offer.operations.count <= Wallet.maximumBatch, offer.late.count <= Wallet.maximumBatch,
      offer.waiting.count <= Wallet.maximumBatch
    else { throw ExchangeError.tooMany("wallet operations") }
    guard offer.needs.count <= Wallet.maximumNeeds else { throw ExchangeError.tooMany("needs of the wallet") }
    guard offer.vouchers.count <= WalletVoucher.maximumShown,
      offer.vouchers.reduce(0, { $0 + $1.claims.count }) <= WalletVoucher.maximumClaims
    else { throw ExchangeError.tooMany("vouchers") }
    guard Wallet.arePossible(offer.needs) else { throw ExchangeError.malformed("a need is out of range") }
    guard offer.follows != offer.chain else { throw ExchangeError.malformed("a wallet chain can't follow itself") }
    for unit in offer.operations.units + offer.late.units where unit.count > Wallet.maximumGroup {
      throw ExchangeError.tooMany("wallet operations that count together")
    }
    for operation in offer.operations + offer.late + (offer.settled?.operations ?? []) {
      do { try operation.check() } catch { throw ExchangeError.malformed("a wallet operation: \(error)") }
    }
  }

  // MARK: Where the offer stands

  /// How an offer relates to the bank's chain.
  enum Standing {
    /// These operations come after the bank's head.
    case new([WalletOperation])
    /// The offer can't be taken.
    case refused(WalletReply.State)
  }

  func heads(of offer: WalletOffer) -> [ChainHead] {
    offer.operations.reduce(into: [offer.base]) { $0.append($0[$0.count - 1].appending($1)) }
  }

  func standing(of offer: WalletOffer, in chain: BankState.Chain, _ storage: some BankStorage) throws
    -> Standing
  {
    let heads = heads(of: offer)
    if let index = heads.firstIndex(of: chain.head) { return .new(Array(offer.operations.dropFirst(index))) }
    if chain.head.count < offer.base.count { return .refused(.from(head: chain.head, common: nil)) }
    let common = try common(of: offer, heads, upTo: chain.head, storage)
    return .refused(
      common.isWhole ? .from(head: chain.head, common: common.head) : .closed(common: common.head))
  }

  /// How much of an offer the bank has on this chain, and whether that is all of it. Operations of which it is no
  /// longer known on which chain they came are taken for its own.
  func common(of offer: WalletOffer, _ heads: [ChainHead], upTo head: ChainHead, _ storage: some BankStorage)
    throws -> (head: ChainHead, isWhole: Bool)
  {
    var index = 0
    while index < offer.operations.count, heads[index].count < head.count,
      let decided = try storage.decision(on: offer.operations[index].id), decided.chain ?? offer.chain == offer.chain
    { index += 1 }
    return (heads[index], index == offer.operations.count)
  }

  /// Rights are granted to a store that has shown the newest statement, or the one before it, whose response may have
  /// been lost: so no store has more rights than the newest statement that it can show, or the next one, says.
  func mayGrant(_ offer: WalletOffer, _ before: BankState.Chain) -> Bool {
    // Numbers of an earlier epoch say nothing unless they are those that the bank has just taken.
    (offer.epoch == epoch || before.restored != nil || offer.statement == 0) && offer.statement + 1 >= before.statement
  }
}
