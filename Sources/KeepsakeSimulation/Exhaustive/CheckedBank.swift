import KeepsakeReplication

/// The bank of a container and what it has decided. Immutable, so that states share it.
final class CheckedBank: Sendable {
  /// 0 for the first bank, and 1 for the second one.
  let place: Int
  let state: BankState
  let records: Records
  /// The server's clock.
  let now: Int64
  let digest: StateDigest

  /// Creates a bank that nobody has used.
  convenience init(place: Int) { self.init(place, BankState(), Records(), now: Self.beginning) }

  /// The container whose bank it is.
  static func id(of place: Int) -> ContainerID { ContainerID(high: 0xBA, low: UInt64(place) + 1) }

  /// A full hour, as the bank records times.
  private static let beginning: Int64 = 500_000 * 3_600_000
  /// Longer than needs are met, and than a device that isn't seen counts as active.
  private static let pause: Int64 = 8 * 24 * 3_600_000

  private init(_ place: Int, _ state: BankState, _ records: Records, now: Int64) {
    (self.place, self.state, self.records, self.now) = (place, state, records, now)
    var digest = StateDigest(tag: 3)
    digest.add(place)
    digest.add(state)
    digest.addUnordered(records.decisions) { digest, entry in
      digest.add(entry.value.operation)
      digest.add(entry.value.verdict.code)
      digest.add(entry.value.chain)
    }
    digest.addUnordered(records.paid) { $0.add($1) }
    digest.addUnordered(records.goods.values) { digest, good in
      digest.add(good.name)
      digest.add(good.count)
      digest.add(good.number)
    }
    digest.addUnordered(records.closed) { digest, entry in
      digest.add(entry.key)
      digest.add(entry.value.head)
      digest.add(entry.value.follows)
      if let voucher = records.vouchers[entry.key] { digest.add(voucher) }
    }
    digest.add(records.orders.count)
    for order in records.orders {
      digest.add(order.id)
      digest.add(order.currency)
      digest.add(order.amount)
    }
    digest.addUnordered(records.audit.taken) { $0.add($1) }
    digest.addUnordered(records.paidVouchers) { digest, entry in
      digest.add(entry.key)
      digest.addUnordered(entry.value) { $0.add($1) }
    }
    digest.addUnordered(records.vouchedClaims) { digest, entry in
      digest.add(entry.key)
      digest.add(entry.value)
    }
    digest.add(now)
    self.digest = digest
  }

  /// The bank after a step, and the rule that the step violates.
  struct Outcome: Sendable {
    let bank: CheckedBank
    let reply: WalletReply?
    let violation: CheckedViolation?
  }

  func answering(_ offer: WalletOffer, from device: DeviceID, _ options: ExhaustiveOptions) -> Outcome {
    let outcome = step(options) { bank, records in
      guard !offer.vouchers.isEmpty else { return try bank.answer(offer, from: device, in: &records) }
      let before = records
      let reply = try bank.answer(offer, from: device, in: &records)
      records.check(offer.vouchers, taken: Set(reply.takenVouchers), since: before)
      return reply
    }
    guard outcome.violation == nil,
      let objection = outcome.bank.state.restoredObjection(since: state, handling: offer, options.rules(of: place).seal)
    else { return outcome }
    return Outcome(bank: outcome.bank, reply: nil, violation: CheckedViolation(.restored, objection))
  }

  /// Removes a device: closes the chains that it offered.
  func removing(_ device: DeviceID, _ options: ExhaustiveOptions) -> Outcome {
    let chains = state.chains.filter { $0.value.device == device }.keys.sorted()
    let outcome = step(options) {
      try $0.close(chains, in: &$1)
      return nil
    }
    guard outcome.violation == nil, let kept = chains.first(where: { outcome.bank.state.chains[$0] != nil }) else {
      return outcome
    }
    return Outcome(
      bank: outcome.bank, reply: nil,
      violation: CheckedViolation(.money, "\(CheckedWords.of(kept)) of the removed device is still open"))
  }

  /// Returns the bank in a new epoch, because it is a backup.
  func settingBack(to epoch: UInt64, _ options: ExhaustiveOptions) -> Outcome {
    step(options) { bank, _ in
      bank.setBack(to: epoch)
      return nil
    }
  }

  func released(_ options: ExhaustiveOptions) -> Outcome {
    step(options) {
      try $0.release(in: &$1)
      return nil
    }
  }

  /// Returns the bank after a long time.
  func waiting() -> CheckedBank { CheckedBank(place, state, records, now: now + Self.pause) }

  func knows(_ device: DeviceID) -> Bool { state.chains.values.contains { $0.device == device } }

  private func step(
    _ options: ExhaustiveOptions, _ body: (inout Bank, inout Records) throws -> WalletReply?
  ) -> Outcome {
    var bank = Bank(state, now: now, rules: options.rules(of: place), faults: options.faults)
    var records = records
    let reply: WalletReply?
    do {
      reply = try body(&bank, &records)
    } catch {
      return Outcome(bank: self, reply: nil, violation: CheckedViolation(.exchange, "the bank rejects it: \(error)"))
    }
    let events = records.takeEvents()
    // Of a voucher of which nothing is left to pay, only the records know.
    if events.isEmpty, bank.state == state, records.violation == nil, records.audit == self.records.audit,
      records.vouchedClaims == self.records.vouchedClaims
    {
      return Outcome(bank: self, reply: reply, violation: nil)
    }
    let after = CheckedBank(place, bank.state, records, now: now)
    return Outcome(
      bank: after, reply: reply,
      violation: records.violation ?? objection(to: events) ?? after.moneyViolation ?? after.groupViolation)
  }
}

extension CheckedBank {
  /// What the bank decided and paid.
  struct Records: BankStorage, Hashable, Sendable {
    struct Decision: Hashable, Sendable {
      let operation: WalletOperation
      let verdict: WalletDecision.Verdict
      let chain: ChainID
    }

    private(set) var decisions: [OperationID: Decision] = [:]
    private var payments: [String: ClaimPayment?] = [:]
    private(set) var orders: [BankOrder] = []
    private(set) var audit = VoucherAudit()
    fileprivate var paidVouchers: [ContainerID: Set<ChainID>] = [:]
    fileprivate var vouchedClaims: [ContainerID: [String: Int64]] = [:]
    private(set) var goods: [String: NumberedGood] = [:]
    private(set) var closed: [ChainID: BankState.ClosedChain] = [:]
    /// What chains took along to the other bank.
    private(set) var vouchers: [ChainID: WalletVoucher] = [:]
    /// What was decided in this step, in its order.
    private var events: [Decision] = []
    private(set) var violation: CheckedViolation?

    func decision(on operation: OperationID) -> DecidedOperation? {
      decisions[operation].map {
        DecidedOperation(verdict: $0.verdict, fingerprint: $0.operation.fingerprint, chain: $0.chain)
      }
    }

    mutating func recordDecision(_ verdict: WalletDecision.Verdict, on operation: WalletOperation, of chain: ChainID) {
      if let known = decisions[operation.id] {
        if known.verdict.isFinal {
          violation = CheckedViolation(
            .decidedOnce,
            "\(CheckedWords.of(operation)) is decided again: \(known.verdict.rawValue), then \(verdict.rawValue)")
        } else if known.operation.fingerprint != operation.fingerprint {
          violation = CheckedViolation(.decidedOnce, "\(CheckedWords.of(operation)) has the id of another operation")
        }
      }
      let decision = Decision(operation: operation, verdict: verdict, chain: chain)
      decisions[operation.id] = decision
      events.append(decision)
    }

    var paid: Set<String> { Set(payments.keys) }
    func isClaimPaid(_ key: String) -> Bool { payments[key] != nil }

    mutating func markClaimPaid(_ key: String, _ payment: ClaimPayment?) {
      if payments.updateValue(payment, forKey: key) != nil {
        violation = CheckedViolation(.claimPaidOnce, "the claim \(key) is paid again")
      }
    }

    func payments(limit: Int) -> [WalletVoucher.Claim] { payments.claims }

    func isVoucherPaid(_ chain: ChainID, of bank: ContainerID) -> Bool { paidVouchers[bank]?.contains(chain) ?? false }

    mutating func markVoucherPaid(_ chain: ChainID, of bank: ContainerID) {
      paidVouchers[bank, default: []].insert(chain)
    }

    func vouchedClaim(_ key: String, by bank: ContainerID) -> Int64? { vouchedClaims[bank]?[key] }

    mutating func setVouchedClaim(_ key: String, by bank: ContainerID, left: Int64) {
      vouchedClaims[bank, default: [:]][key] = left
    }

    func decidedOperation(_ id: OperationID) -> WalletOperation? { decisions[id]?.operation }

    func order(_ id: OperationID) -> BankOrder? { orders.first { $0.id == id } }

    func orders(after number: UInt64, limit: Int) -> [NumberedOrder] {
      orders.enumerated().dropFirst(Int(clamping: number)).prefix(limit)
        .map { NumberedOrder(number: UInt64($0.offset + 1), order: $0.element) }
    }

    mutating func recordOrder(_ order: NumberedOrder) {
      if orders.contains(where: { $0.id == order.order.id }) {
        violation = CheckedViolation(.decidedOnce, "an order of the bank counts again")
      }
      orders.append(order.order)
    }

    func goods(changedAfter number: UInt64, limit: Int) -> [NumberedGood] {
      goods.values.filter { $0.number > number }.sorted { ($0.number, $0.name) < ($1.number, $1.name) }
    }

    mutating func addGood(_ name: String, _ count: Int64, number: UInt64) {
      goods[name] = NumberedGood(name: name, count: max(0, (goods[name]?.count ?? 0) + count), number: number)
    }

    func closedChain(_ id: ChainID) -> BankState.ClosedChain? { closed[id] }

    mutating func recordClosedChain(_ chain: BankState.ClosedChain, _ id: ChainID) {
      if closed.updateValue(chain, forKey: id) != nil {
        violation = CheckedViolation(.decidedOnce, "\(CheckedWords.of(id)) is closed again")
      }
    }

    func voucher(of chain: ChainID) -> WalletVoucher? { vouchers[chain] }

    mutating func recordVoucher(_ voucher: WalletVoucher) { vouchers[voucher.chain] = voucher }

    var issued: [WalletVoucher] { vouchers.values.sorted { $0.chain < $1.chain } }

    /// Checks what was paid for vouchers: each once, less the claims that were paid here before.
    fileprivate mutating func check(_ vouchers: [WalletVoucher], taken chains: Set<ChainID>, since before: Records) {
      let claims = events.filter { $0.verdict.counts }.compactMap { $0.operation.kind.key }
      let due = audit.due(for: vouchers, taken: chains, claimed: before.paid.union(claims))
      var paid: [String: Int64] = [:]
      for order in orders.dropFirst(before.orders.count) { paid[order.currency, default: 0] += order.amount }
      guard violation == nil, paid != due else { return }
      let isOfClaims = paid.allSatisfy { $1 >= due[$0] ?? 0 } && vouchers.contains { !$0.claims.isEmpty }
      violation = CheckedViolation(
        isOfClaims ? .claimPaidOnce : .money,
        "\(CheckedWords.of(paid)) is paid for vouchers, and \(CheckedWords.of(due)) is due")
    }

    fileprivate mutating func takeEvents() -> [Decision] {
      defer { events = [] }
      return events
    }
  }
}

// What must hold after each step of the bank.
extension CheckedBank {
  /// Follows the decisions of a step from the bank before it: each changes the balance, or the queue of spends that
  /// wait. A spend may only be declined if the balance at that moment, less the spends that wait before it, didn't
  /// cover it.
  private func objection(to events: [Records.Decision]) -> CheckedViolation? {
    var balances = balances
    var queue = state.waiting.map(\.operations)
    for unit in Self.units(of: events) {
      let operations = unit.map(\.operation)
      let ids = Set(operations.map(\.id))
      let place = queue.firstIndex { $0.contains { ids.contains($0.id) } }
      switch unit[0].verdict {
      case .accepted:
        if let place { queue.remove(at: place) }
        for operation in operations { Self.count(operation, in: &balances) }
      case .waiting:
        if place == nil { queue.append(operations) }
      case .unknown: return CheckedViolation(.decidedOnce, "\(CheckedWords.of(operations)) is decided as unknown")
      case .declined, .idReused, .notAllowed:
        let ahead = Self.taken(by: queue[..<(place ?? queue.count)]).merging(state.debts ?? [:]) { $0 + $1 }
        if let place { queue.remove(at: place) }
        let net = Self.net(operations)
        guard net.contains(where: { $0.value < 0 }) else { continue }
        if net.allSatisfy({ $1 >= 0 || (balances[$0] ?? 0) - (ahead[$0] ?? 0) + $1 >= 0 }) {
          return CheckedViolation(
            .declined,
            "\(CheckedWords.of(operations)) is declined although the balance of \(CheckedWords.of(balances)), less "
              + "\(CheckedWords.of(ahead)) that waits, covers it")
        }
      }
    }
    return nil
  }

  /// Decisions on operations of one group that were made together.
  private static func units(of events: [Records.Decision]) -> [[Records.Decision]] {
    var units: [[Records.Decision]] = []
    for event in events {
      if let group = event.operation.group, let last = units.last?.last, last.operation.group == group,
        last.verdict == event.verdict
      {
        units[units.count - 1].append(event)
      } else {
        units.append([event])
      }
    }
    return units
  }

  private var moneyViolation: CheckedViolation? {
    for (currency, amount) in state.pool where amount < 0 {
      return CheckedViolation(.money, "the pool has \(amount) \(currency)")
    }
    for (id, chain) in state.chains {
      for (currency, totals) in chain.totals {
        let rights = totals.rights
        if rights < 0 { return CheckedViolation(.money, "\(CheckedWords.of(id)) has \(rights) \(currency)") }
      }
    }
    var counted: [String: Int64] = [:]
    for decision in records.decisions.values where decision.verdict.counts {
      Self.count(decision.operation, in: &counted)
    }
    var granted: [String: Int64] = [:]
    for decision in records.decisions.values where decision.verdict.counts {
      for good in decision.operation.goods { granted[good, default: 0] += 1 }
    }
    // What is owed wasn't there to be charged.
    for sums in [records.orders.sums, state.debts ?? [:]] { counted.merge(sums) { $0 + $1 } }
    for order in records.orders {
      for good in order.goods { granted[good, default: 0] += order.kind == .grant ? 1 : -1 }
    }
    guard granted == records.goods.mapValues(\.count) else {
      return CheckedViolation(.money, "the player has the goods \(records.goods.keys.sorted()), not \(granted)")
    }
    for voucher in records.issued { counted.merge(voucher.amounts.mapValues { -$0 }) { $0 + $1 } }
    let held = balances.merging(state.missing ?? [:]) { $0 - $1 }
    guard counted.filter({ $0.value != 0 }) == held.filter({ $0.value != 0 }) else {
      return CheckedViolation(
        .money, "the bank and the chains hold \(CheckedWords.of(held)), but \(CheckedWords.of(counted)) was counted")
    }
    return nil
  }

  private var groupViolation: CheckedViolation? {
    var verdicts: [OperationID: WalletDecision.Verdict] = [:]
    let grouped = records.decisions.values.filter { $0.operation.group != nil }
    // Sorted, so that the same state always has the same words.
    for decision in grouped.sorted(by: { $0.operation.id < $1.operation.id }) {
      guard let group = decision.operation.group, !decision.operation.movements.isEmpty else { continue }
      if let other = verdicts.updateValue(decision.verdict, forKey: group), other != decision.verdict {
        return CheckedViolation(
          .groups, "of one checkpoint, an operation is \(other.rawValue) and another \(decision.verdict.rawValue)")
      }
    }
    return nil
  }

  /// The player's money: the pool and the rights of open chains.
  var balances: [String: Int64] {
    var sums = state.pool
    for chain in state.chains.values {
      for (currency, totals) in chain.totals { sums[currency, default: 0] += totals.rights }
    }
    return sums
  }

  /// What spends that wait take, by currency.
  static func taken(by units: some Sequence<[WalletOperation]>) -> [String: Int64] {
    var sums: [String: Int64] = [:]
    for unit in units {
      for (currency, change) in net(unit) where change < 0 { sums[currency, default: 0] -= change }
    }
    return sums
  }

  private static func net(_ operations: [WalletOperation]) -> [String: Int64] {
    var sums: [String: Int64] = [:]
    for movement in operations.flatMap(\.movements) {
      sums[movement.currency, default: 0] += movement.earned - movement.spent
    }
    return sums
  }

  private static func count(_ operation: WalletOperation, in sums: inout [String: Int64]) {
    if operation.effect == .claim { sums[operation.currency, default: 0] += operation.amount }
    for movement in operation.movements { sums[movement.currency, default: 0] += movement.earned - movement.spent }
  }
}
