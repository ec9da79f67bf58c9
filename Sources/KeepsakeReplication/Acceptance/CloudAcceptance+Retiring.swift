extension CloudAcceptance {
  /// Closes the wallet chains of a device that was removed: what they could spend is available to the player's other
  /// devices again.
  ///
  /// - Returns: Whether anything changed; if so, the container has a new seq, so that the other devices fetch.
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
