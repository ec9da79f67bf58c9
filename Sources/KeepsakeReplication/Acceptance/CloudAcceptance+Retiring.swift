extension CloudAcceptance {
  /// Closes the wallet chains of a device that was removed: what they could spend is available to the player's other
  /// devices again.
  ///
  /// - Parameters:
  ///   - chains: All that the device ever offered.
  ///   - device: The device; nil in a cloud that knows no devices.
  ///   - rules: Those of the container's bank.
  /// - Returns: Whether anything changed; if so, the container has a new seq, so that the other devices fetch.
  package static func retire(
    _ chains: [ChainID], of device: DeviceID? = nil, now: Int64 = 0, rules: BankRules = BankRules(),
    in storage: inout some ContainerStorage, using random: inout some RandomNumberGenerator
  ) throws -> Bool {
    let before = try storage.bank()
    var bank = Bank(before, now: now, rules: rules, faults: storage.faults)
    bank.setBack(to: rules.epoch)
    try bank.close(chains, of: device, in: &storage)
    // A bank where nothing was ever earned or spent keeps nothing, not even the cloud's epoch.
    guard bank.state != before, !bank.state.isEmpty else { return false }
    try storage.setBank(bank.state)
    try advance(&storage, using: &random)
    return true
  }
}
