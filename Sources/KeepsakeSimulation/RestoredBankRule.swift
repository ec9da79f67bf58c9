import KeepsakeReplication

// What a bank that was set back must do in each exchange, in worlds and in the exhaustive checker.
extension BankState {
  /// Returns what the bank did wrong in an exchange after it was set back: it grants nothing before all devices have
  /// reported, except what a statement shows that it had granted; and it grants all of that.
  ///
  /// - Parameters:
  ///   - before: The state before the exchange.
  ///   - offer: The offer that it has handled.
  ///   - seal: What proves the bank's statements.
  /// - Returns: Nil if nothing is wrong, or if the bank wasn't frozen all the time.
  func restoredObjection(since before: BankState, handling offer: WalletOffer, _ seal: BankSeal?) -> String? {
    guard before.isFrozen == true, before.epoch == epoch else { return nil }
    for (id, chain) in chains {
      let known = before.chains[id]
      let proof = id == offer.chain ? offer.proof : nil
      if isFrozen == true {
        for (currency, totals) in chain.totals {
          let most = max(known?.totals[currency]?.granted ?? 0, proof?.totals[currency]?.granted ?? 0)
          if totals.granted > most { return "a frozen bank granted \(totals.granted - most) \(currency)" }
        }
      }
      // A statement that is shown to an earlier restore counts nothing; nor does one on a chain that this one follows.
      guard let proof, offer.proving == epoch, proof.epoch < epoch ?? 0, let restored = known?.restored,
        !restored.isProven, proof.number > restored.statement, seal?.isValid(proof, on: id) == true
      else { continue }
      for (currency, shown) in proof.totals where chain.totals[currency]?.granted ?? 0 < shown.granted {
        return "a statement shows \(shown.granted) granted \(currency), and the bank has "
          + "\(chain.totals[currency]?.granted ?? 0)"
      }
    }
    return nil
  }
}
