extension CloudAcceptance {
  /// Handles the offer of a store that has joined another player, outside of any exchange: nothing but its wallet is
  /// still of this container.
  ///
  /// - Parameters:
  ///   - device: The device by the token that it had before it joined; nil in a cloud that knows no devices.
  ///   - rules: Those of the container's bank.
  /// - Throws: ``ExchangeError`` for an offer that no correct device sends, or what the storage throws. The caller has
  ///   to roll back then.
  package static func leave(
    with offer: WalletOffer, from device: DeviceID? = nil, now: Int64, rules: BankRules,
    in storage: inout some ContainerStorage, using random: inout some RandomNumberGenerator
  ) throws -> WalletReply {
    try answer(offer, from: device, now, rules, in: &storage, using: &random)
  }

  /// Returns the bank's reply. If it concerns other devices, the container has a new seq, so that they fetch.
  static func answer(
    _ offer: WalletOffer, from device: DeviceID?, _ now: Int64, _ rules: BankRules,
    in storage: inout some ContainerStorage, using random: inout some RandomNumberGenerator
  ) throws -> WalletReply {
    let state = try storage.bank()
    var bank = Bank(state, now: now, rules: rules, faults: storage.faults)
    let reply = try bank.answer(offer, from: device, in: &storage)
    // A bank where nothing was ever earned or spent keeps nothing, not even the cloud's epoch.
    if bank.state.isEmpty { return reply }
    if bank.state != state { try storage.setBank(bank.state) }
    // There is nothing to page through, but the other devices should fetch.
    if bank.state.concernsOthers(since: state) { try advance(&storage, using: &random) }
    return reply
  }
}

/// The body of a request of a store that leaves a bank.
package struct LeavingRequest: Hashable, Sendable, Codable {
  package var offer: WalletOffer

  package init(offer: WalletOffer) { self.offer = offer }
}

/// The body of the response.
package struct LeavingResponse: Hashable, Sendable, Codable {
  package var reply: WalletReply

  package init(reply: WalletReply) { self.reply = reply }
}
