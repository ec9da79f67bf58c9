extension CloudAcceptance {
  /// Returns the statement with which a store proves that the container's bank is older than the statement: the bank
  /// was set back to a backup, and nobody has said so. Nil if the offer doesn't prove that.
  package static func laterStatement(
    in offer: WalletOffer, rules: BankRules, in storage: some ContainerStorage
  ) throws -> WalletStatement? {
    var bank = Bank(try storage.bank(), rules: rules)
    bank.setBack(to: rules.epoch)
    guard let proof = bank.proof(in: offer) else { return nil }
    let closed = try storage.closedChain(offer.chain)
    return bank.isLater(proof, than: bank.state.chains[offer.chain], closed) ? proof : nil
  }

  /// Ends the wait of a bank that was set back to a backup for devices that haven't shown what they were granted.
  ///
  /// - Returns: Whether it waited. If so, the container has a new seq, so that the devices fetch.
  package static func releaseBank(
    now: Int64, rules: BankRules, in storage: inout some ContainerStorage,
    using random: inout some RandomNumberGenerator
  ) throws -> Bool {
    let before = try storage.bank()
    var bank = Bank(before, now: now, rules: rules, faults: storage.faults)
    bank.setBack(to: rules.epoch)
    guard bank.isFrozen else { return false }
    try bank.release(in: &storage)
    try storage.setBank(bank.state)
    try advance(&storage, using: &random)
    return true
  }
}
