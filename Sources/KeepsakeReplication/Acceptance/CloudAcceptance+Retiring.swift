extension CloudAcceptance {
  /// Closes chains of a wallet whose device was removed: what they could spend is the player's other devices' again.
  ///
  /// - Returns: Whether anything changed; the container has moved then, so that the others come and look.
  package static func retire(
    _ chains: [ChainID], in storage: inout some ContainerStorage, using random: inout some RandomNumberGenerator
  ) throws -> Bool {
    let before = try storage.bank()
    var bank = Bank(before)
    bank.close(chains)
    guard bank.state != before else { return false }
    try storage.setBank(bank.state)
    try advance(&storage, using: &random)
    return true
  }
}
