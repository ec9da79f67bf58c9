extension CloudAcceptance {
  /// Performs an order of the bank itself, once, however often it is repeated.
  ///
  /// - Parameter rules: Those of the container's bank.
  /// - Returns: What became of it. If it was done now, the container has a new seq, so that the devices fetch.
  /// - Throws: ``BankOrderError``, or what the storage throws. The caller has to roll back then.
  package static func perform(
    _ order: BankOrder, now: Int64, rules: BankRules = BankRules(), in storage: inout some ContainerStorage,
    using random: inout some RandomNumberGenerator
  ) throws -> Bank.OrderOutcome {
    let before = try storage.bank()
    var bank = Bank(before, now: now, rules: rules, faults: storage.faults)
    bank.setBack(to: rules.epoch)
    let outcome = try bank.perform(order, in: &storage)
    guard bank.state != before else { return outcome }
    try storage.setBank(bank.state)
    try advance(&storage, using: &random)
    return outcome
  }
}
