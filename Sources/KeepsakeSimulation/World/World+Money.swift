import Foundation
import KeepsakeReplication

// What games do with their wallets, what happens to devices for the sake of it, and what must hold.
extension World {
  func operation(_ kind: WalletOperation.Kind) -> WalletOperation {
    let currency = random.once(in: 4) ? "keys" : "gems"
    return WalletOperation(
      id: OperationID(using: &random), kind: kind, currency: currency, amount: Int64.random(in: 1...50, using: &random),
      reason: "simulated")
  }

  func useWallet(_ index: Int) {
    var made: [WalletOperation]
    // Checkpoints that spend and earn, in worlds about money above all.
    let kind = Int.random(in: 0..<20, using: &random)
    switch swarm.isAboutMoney && (10..<13).contains(kind) ? 15 : kind {
    case 0..<6: made = [operation(.earn)]
    case 6..<13:
      made = [operation(.spend)]
      report.statistics.spends += 1
      // Everything, which a copy of the store may spend, too.
      if swarm.isAboutMoney, random.once(in: 4), let all = spendable(made[0].currency, index) { made[0].amount = all }
    case 13..<15:
      let number = Int.random(in: 0..<6, using: &random)
      made = [operation(.claim(key: "quest \(number)"))]
      made[0].currency = "gems"
    case 15:
      made = [operation(.spend), operation(.earn)]
      if random.once(in: 2), let all = spendable(made[0].currency, index) { made[0].amount = all }
    case 16:
      made = [operation(.convert(to: "keys", received: Int64.random(in: 1...5, using: &random)))]
      made[0].currency = "gems"
    case 17: made = repeated(index).map { [$0] } ?? [operation(.earn)]
    default: return need(index)
    }
    commit(index, CommitDraft(wallet: made), paired: nil)
  }

  /// Returns what the device may spend; nil if it may spend nothing.
  private func spendable(_ currency: String, _ index: Int) -> Int64? {
    let amount = devices[index].storage.wallet().map { Wallet($0).spendable(currency) } ?? 0
    return amount > 0 ? min(amount, Wallet.maximumAmount) : nil
  }

  /// Returns an operation that the device performed before, or another one under its id.
  private func repeated(_ index: Int) -> WalletOperation? {
    let ids = devices[index].journal.compactMap { number -> OperationID? in
      if case .operation(let id) = model.writes[number].write { id } else { nil }
    }
    guard let id = ids.randomElement(using: &random), var operation = model.operations[id] else { return nil }
    if random.once(in: 2) { operation.amount += 1 }
    report.statistics.repeats += 1
    return operation
  }

  /// The game needs money for a purchase, more than is usually here, and asks the bank.
  private func need(_ index: Int) {
    guard let state = devices[index].storage.wallet() else { return }
    report.statistics.needs += 1
    var wallet = Wallet(state)
    let amount = Int64.random(in: 1...200, using: &random)
    wallet.need(amount, of: "gems")
    devices[index].storage.setWallet(wallet.state)
    trace(33, UInt64(index), UInt64(amount), words: "device \(index) needs \(amount) gems")
    step(index, .committed)
  }

  /// Statements are sealed only in worlds in which somebody may have to show one, or has a voucher: it takes time.
  var bankRules: BankRules {
    guard swarm.cloudRestoreOdds > 0 || hasGuest else { return BankRules() }
    return BankRules(seal: Self.seal(of: Self.container), epoch: bankEpoch)
  }

  /// Of all containers of the cloud, the keys are the same.
  static func seal(of container: ContainerID) -> BankSeal {
    BankSeal(bank: container, keys: [Data(repeating: 7, count: 32)])
  }

  // MARK: Fates

  /// A copy of each device spends all that the device has, and then the devices do, too: more than there is.
  func spendEverythingTwice() {
    for index in devices.indices { reportFromCopy(of: index, spendingAll: true) }
    for index in devices.indices {
      guard devices[index].engine != nil, let all = spendable("gems", index) else { continue }
      var spend = operation(.spend)
      (spend.currency, spend.amount) = ("gems", all)
      report.statistics.spends += 1
      commit(index, CommitDraft(wallet: [spend]), paired: nil)
    }
  }

  /// A copy of the store on another machine reports everything that its wallet has, and is never used again.
  func reportFromCopy(of index: Int, spendingAll: Bool = false) {
    guard let state = devices[index].storage.wallet(), devices[index].storage.facts().container != nil else { return }
    report.statistics.copies += 1
    trace(35, UInt64(index), words: "a copy of device \(index) reports its money, and is gone")
    var wallet = Wallet(state)
    if spendingAll, let all = spendable("gems", index) {
      var spend = operation(.spend)
      (spend.currency, spend.amount) = ("gems", all)
      do { try wallet.perform(spend) } catch { violation("a copy can't spend what it has: \(error)") }
    }
    let before = cloud.position()
    for _ in 0..<20 where wallet.hasUnreportedOperations {
      let request = ExchangeRequest(
        cursor: cloud.position(), wallet: wallet.offer(upTo: swarm.walletBatch), limit: 1)
      do {
        let earlier = cloud
        let response = try CloudAcceptance.exchange(
          request, now: now, rules: bankRules, in: &cloud, using: &random)
        checkVouchers(request.wallet, response.wallet, earlier)
        guard var reply = response.wallet, case .accepted = reply.state else { break }
        reply.recalled = [:]
        _ = wallet.receive(reply, using: &random)
      } catch {
        violation("the cloud refuses what a copy of device \(index) sent: \(error)")
      }
    }
    if cloud.position().seq > before.seq { announce(since: before, from: index) }
  }

  /// The player removes a device, which registers again under another name when it is online.
  func removeDevice(_ index: Int) {
    guard let chain = devices[index].storage.wallet()?.chain else { return }
    report.statistics.removals += 1
    trace(34, UInt64(index), words: "device \(index) is removed")
    let before = cloud.position()
    do {
      _ = try CloudAcceptance.retire([chain], rules: bankRules, in: &cloud, using: &random)
    } catch {
      violation("device \(index) can't be removed: \(error)")
    }
    if cloud.bank().chains[chain] != nil { violation("the removed device \(index) keeps its rights") }
    if cloud.position().seq > before.seq { announce(since: before, from: index) }
  }

  // MARK: Checks

  /// A spend is declined only if the money that there was, less what waited before it, didn't cover it. Looks at
  /// requests after which there is no more money than before: otherwise it may have come after the decision.
  func checkDeclined(_ request: ExchangeRequest, _ before: MemoryContainer) {
    guard let offer = request.wallet else { return }
    let (old, new) = (Bank(before.bank()), Bank(cloud.bank()))
    let balances = new.shownBalances()
    // The money of a voucher comes after the decisions.
    guard offer.vouchers.isEmpty else { return }
    // A spend that waited, and for which there isn't enough any more, no longer stands before the others.
    let hadWaited = old.state.waiting.flatMap(\.operations).contains { cloud.decision(on: $0.id)?.verdict == .declined }
    guard !hadWaited else { return }
    for (id, decided) in cloud.decisions where decided.verdict == .declined {
      guard before.decision(on: id)?.verdict.isFinal != true, decided.operation.effect == .debit,
        decided.operation.group == nil
      else { continue }
      let currency = decided.operation.currency
      guard new.balance(currency) <= old.balance(currency),
        !(offer.operations + offer.late).contains(where: { $0.adds(to: currency) })
      else { continue }
      if decided.operation.amount <= balances[currency] ?? 0 {
        violation("a spend of \(decided.operation.amount) \(currency) was declined although the balance covers it")
      }
    }
  }

  /// A restored bank grants what statements show, and nothing else before all devices have reported.
  func checkRestored(_ request: ExchangeRequest, _ before: MemoryContainer) {
    guard let offer = request.wallet,
      let objection = cloud.bank().restoredObjection(since: before.bank(), handling: offer, bankRules.seal)
    else { return }
    violation(objection)
  }

  /// What the first of several purchases needs, and has, must not be recalled for another one.
  func checkRecall(_ reply: WalletReply?, of offer: WalletOffer?) {
    let bank = Bank(cloud.bank(), now: now)
    guard let reply, let offer, bank.state.waiting.isEmpty, let need = bank.state.chains[offer.chain]?.need,
      bank.state.chains.values.allSatisfy({ $0.need.map { $0.number >= need.number } ?? true })
    else { return }
    for (currency, amount) in offer.needs {
      let rights = reply.totals[currency]?.rights ?? 0
      if rights >= amount, rights - (reply.recalled[currency] ?? 0) < amount {
        violation("\(reply.recalled[currency] ?? 0) \(currency) are recalled that a purchase needs")
      }
    }
  }
}

extension WalletOperation {
  /// Whether it may bring money in this currency.
  fileprivate func adds(to currency: String) -> Bool {
    effect == .claim && self.currency == currency || movements.contains { $0.currency == currency && $0.earned > 0 }
  }
}
