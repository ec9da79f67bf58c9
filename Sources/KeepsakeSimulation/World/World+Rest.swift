import Foundation
import KeepsakeReplication

// The checks after everything that goes wrong by chance has stopped.
extension World {
  /// The most rounds in which every device asks once, until nothing changes any more. Recalled rights take a few.
  private static let maximumRounds = 30
  /// The most exchanges of one device until the rights to new money have spread.
  private static let maximumExchangesForMoney = 20
  /// The most deliveries within one round.
  private static let maximumDeliveries = 4_000

  func comeToRest() {
    calm = true
    isFull = false
    trace(40, words: "calm")
    // What games would have done from here on, they don't do.
    agenda.removeAll { if case .action = $0 { true } else { false } }
    for index in devices.indices {
      devices[index].online = true
      guard devices[index].storage.facts().container == nil else { continue }
      devices[index].storage.connect()
      step(index, .started)
    }
    // The purchases for which money was needed are made or given up.
    for index in devices.indices {
      guard var wallet = devices[index].storage.wallet() else { continue }
      (wallet.needs, wallet.held) = ([:], [:])
      devices[index].storage.setWallet(wallet)
    }
    bringGuestHome()
    settle()
    guard report.violations.isEmpty else { return }
    if cloud.bank().isFrozen == true {
      // A store that was copied or set back may have had a chain that nobody has now. Then the operator ends the wait.
      releaseBank()
      settle()
    }
    guard report.violations.isEmpty else { return }
    checkRest()
    guard report.violations.isEmpty else { return }
    checkQuiet()
  }

  /// Lets all devices sync until nothing changes any more.
  private func settle() {
    var rounds = 0
    var before: [UInt64] = []
    repeat {
      before = fingerprint()
      for index in devices.indices {
        step(index, .sync)
        askFormerBanks(index)
      }
      drain()
      rounds += 1
      guard report.violations.isEmpty else { return }
    } while fingerprint() != before && rounds < Self.maximumRounds
    if fingerprint() != before { violation("the devices don't come to rest in \(rounds) rounds") }
  }

  private func releaseBank() {
    let before = cloud.position()
    trace(45, words: "the operator releases the restored bank")
    do {
      _ = try CloudAcceptance.releaseBank(now: now, rules: bankRules, in: &cloud, using: &random)
    } catch {
      violation("the bank can't be released: \(error)")
    }
    announce(since: before, from: nil)
  }

  private func fingerprint() -> [UInt64] {
    [cloud.position().seq, UInt64(cloud.decisions.count)]
      + devices.flatMap {
        [$0.storage.facts().cursor.seq, UInt64($0.storage.outboxCount()), $0.storage.wallet()?.head.count ?? 0]
      } + guestFingerprint()
  }

  /// Delivers everything that is in progress, and wakes devices that wait to try again; polls are left alone.
  private func drain() {
    var deliveries = 0
    while let next = agenda.next() {
      now = max(now, next.time)
      if case .wake(let device, let opening, let number) = next.item {
        guard devices[device].opening == opening, devices[device].wake == number,
          case .waiting? = devices[device].engine?.status.phase
        else { continue }
      }
      happen(next.item)
      deliveries += 1
      guard report.violations.isEmpty else { return }
      guard deliveries < Self.maximumDeliveries else {
        violation("messages never end: \(deliveries) in one round")
        return
      }
    }
  }

  // MARK: The same everywhere, and nothing lost

  private func checkRest() {
    let first = devices[0].storage
    for index in devices.indices {
      let storage = devices[index].storage
      if case .idle? = devices[index].engine?.status.phase {
      } else {
        violation("device \(index) isn't idle: \(String(describing: devices[index].engine?.status))")
      }
      if storage.outboxCount() != 0 { violation("device \(index) still has \(storage.outbox(limit: 3)) to send") }
      if !storage.staged().isEmpty {
        violation("device \(index) never shows \(CountText.of(storage.staged().count, "change"))")
      }
      if !storage.facts().caughtUp { violation("device \(index) never caught up") }
      for slot in Set(storage.slots()).union(cloud.slots()).sorted() {
        let heads = storage.heads(of: slot)
        if heads != cloud.heads(of: slot) {
          violation(
            """
            \(slot): device \(index) has \(heads.map { short($0) }), the cloud \
            \(cloud.heads(of: slot).map { short($0) })
            """)
        }
        for id in heads {
          if storage.version(id)?.acknowledged == false {
            violation("device \(index) still waits for \(short(id)) to be acknowledged")
          }
          for hash in storage.version(id)?.record.contents ?? [] where !storage.hasContent(hash) {
            violation("device \(index) shows \(short(id)) without its contents")
          }
        }
      }
      if storage.cells(in: nil) != first.cells(in: nil) {
        let theirs = Set(first.cells(in: nil))
        let different = storage.cells(in: nil).filter { !theirs.contains($0) }
        violation("devices 0 and \(index) differ in \(different)")
      }
    }
    checkVersions()
    checkAllSeen()
    checkSetBacks()
    checkCells()
    checkGathered()
    checkSeason()
    checkShown()
    checkMoney()
    checkGuest()
  }

  /// At rest, every device must have reported that it has everything. Exceptions are devices whose older report arrived
  /// last, and those that received what was on its way only after their last request: they would need another exchange.
  private func checkAllSeen() {
    for index in devices.indices {
      let isLate = words[index].map { $0.sent < $0.newest } ?? false
      if !isLate, lastAsked[index]?.isSilent != true, cloud.reached()[Device.id(index)] != cloud.position().seq {
        violation("device \(index) has everything up to \(cloud.position().seq), but the cloud doesn't know")
      }
      do {
        try checkSeen(by: index)
      } catch {
        violation("the cloud can't read what device \(index) has: \(error)")
      }
    }
  }

  /// Every save must be a head, or be replaced by one whose game had seen it.
  private func checkVersions() {
    let storage = devices[0].storage
    for id in model.versions.keys.sorted() {
      guard let made = model.versions[id], !made.mayBeGone else { continue }
      let isHead = { (id: VersionID) in
        self.model.versions[id].map { storage.heads(of: $0.slot).contains(id) } ?? false
      }
      if !isHead(id), !isReplaced(id, among: isHead) {
        violation("the save \(short(id)) of device \(made.device) in \(made.slot) is lost")
      }
    }
  }

  private func checkCells() {
    let storage = devices[0].storage
    var counted: Int64 = 0
    var mayCount: (plus: Int64, minus: Int64) = (0, 0)
    var found: Set<Scalar> = []
    for (write, mayBeGone) in model.writes {
      guard case .cell(let key, let change) = write else { continue }
      let value = storage.cell(key)?.value
      switch change {
      case .max(let scalar) where key == Self.progress("level"):
        if !mayBeGone, case .max(let held)? = value, held >= scalar { continue }
        if !mayBeGone { violation("\(key) went back behind \(scalar): \(String(describing: value))") }
      case .min(let scalar):
        if !mayBeGone, case .min(let held)? = value, held <= scalar { continue }
        if !mayBeGone { violation("\(key) went back behind \(scalar): \(String(describing: value))") }
      case .insert(let scalars):
        if !mayBeGone, case .union(let held)? = value, held.isSuperset(of: scalars) { continue }
        if !mayBeGone { violation("\(key) lost \(scalars)") }
      case .add(let plus, let minus):
        let (plus, minus) = (Int64(clamping: plus), Int64(clamping: minus))
        if mayBeGone {
          mayCount.plus += plus
          mayCount.minus += minus
        } else {
          counted += plus - minus
        }
      case .set(let scalar): found.insert(scalar)
      case .best(let best):
        if !mayBeGone, case .best(let held)? = value, !best.precedes(held) { continue }
        if !mayBeGone { violation("\(key) went back behind \(best): \(String(describing: value))") }
      case .max, .reset, .withdraw, .insertElements, .removeElements, .entries, .optional: break
      }
    }
    if case .counter(let entries)? = storage.cell(Self.progress("jumps"))?.value {
      let total = CellValue.total(of: entries)
      if total < counted - mayCount.minus || total > counted + mayCount.plus {
        violation(
          "the counter is \(total), but \(counted) were counted (and perhaps +\(mayCount.plus) -\(mayCount.minus))")
      }
    } else if counted != 0 {
      violation("the counter is lost")
    }
    if case .latest(_, let held)? = storage.cell(Self.progress("name"))?.value, !found.contains(held) {
      violation("a value that was never written: \(held)")
    }
  }

  private func checkMoney() {
    let bank = Bank(cloud.bank())
    let balances = bank.shownBalances()
    // What such a device spends may have been spent elsewhere meanwhile.
    let copied = report.statistics.copies + report.statistics.rollbacks + report.statistics.removals > 0
    for index in devices.indices {
      guard let state = devices[index].storage.wallet() else {
        violation("device \(index) has no wallet")
        continue
      }
      let wallet = Wallet(state)
      if !wallet.unreported.isEmpty { violation("device \(index) has operations that the bank never decided") }
      for currency in Set(wallet.currencies).union(bank.currencies).sorted() {
        let balance = balances[currency] ?? 0
        if wallet.total(currency) != balance {
          violation("device \(index) shows \(wallet.total(currency)) \(currency), the bank has \(balance)")
        }
      }
    }
    let chains = Set(devices.compactMap { $0.storage.wallet()?.chain })
    for (id, chain) in bank.state.chains where !chains.contains(id) {
      if chain.totals.values.contains(where: { $0.rights > 0 }) {
        violation("money is stranded on the chain \(short(id)), which no device holds")
      }
    }
    if !cloudWasRestored { checkOrders() }
    if !bank.state.waiting.isEmpty { violation("spends wait although everything is delivered") }
    let isGrouped = Set(model.groups.joined())
    var paid: [String: OperationID] = [:]
    for id in model.operations.keys.sorted() {
      guard let operation = model.operations[id] else { continue }
      let isOfGuest = guest.cloud.decision(on: id) != nil
      let verdict = cloud.decision(on: id)?.verdict ?? guest.cloud.decision(on: id)?.verdict
      // What an earlier bank has declined isn't offered to a restored one.
      let isDeclined = cloudWasRestored && devices.contains { $0.storage.outcomes[id].map { !$0.counts } ?? false }
      if verdict == nil, !isDeclined, !model.operationMayBeGone.contains(id) {
        violation("the operation \(id) was lost: \(operation)")
      }
      switch operation.effect {
      case .claim:
        guard verdict == .accepted, let key = operation.kind.key else { continue }
        // For a claim that both banks have paid, less comes with the voucher.
        let place = isOfGuest ? "\(key) of the guest" : key
        if let other = paid.updateValue(id, forKey: place) { violation("\(key) was paid for \(other) and \(id)") }
      case .debit, .convert:
        if verdict == .declined, !copied { violation("a spend within rights was declined: \(operation)") }
      case .credit, .giveBack:
        if verdict == .declined, operation.group == nil, !isGrouped.contains(id) {
          violation("an earning was declined: \(operation)")
        }
      }
    }
    checkVerdicts()
    for group in model.groups where Set(group.compactMap { cloud.decision(on: $0)?.verdict }).count > 1 {
      violation("of a checkpoint, the bank accepted a part: \(group.map { short($0) })")
    }
  }

  /// What the bank declined, and the claims that it paid, must be known where they were made.
  private func checkVerdicts() {
    for index in devices.indices {
      let storage = devices[index].storage
      let noticed = Set(storage.notices.map(\.operation.id))
      // What a guest's bank decided may have been told to the device that adopted the wallet.
      for (id, verdict) in storage.outcomes where verdict == .waiting && guest.cloud.decision(on: id) == nil {
        violation("device \(index) was never told what became of \(short(id)), which waited")
      }
      for number in devices[index].journal {
        guard case .operation(let id) = model.writes[number].write, let decided = cloud.decisions[id],
          storage.performedOperation(id) == decided.operation.fingerprint
        else { continue }
        let isDue = !decided.verdict.counts || decided.operation.effect == .claim
        if isDue, !noticed.contains(id) {
          violation("device \(index) has no notice of \(short(id)), which was \(decided.verdict.rawValue)")
        }
      }
    }
  }

  // MARK: Quiet

  /// After one last write, every device must be quiet within two exchanges.
  private func checkQuiet() {
    for index in devices.indices { devices[index].exchanges = 0 }
    var last: VersionID?
    do {
      let bytes = Data("the last one".utf8)
      let save = SaveDraft(
        id: VersionID(using: &random), slot: Self.slots[0], parents: .everyHead,
        contents: [devices[0].storage.addContent(bytes)], length: bytes.count, savedAtMilliseconds: clock(of: 0))
      let draft = CommitDraft(saves: [save], cells: [CellDraft(Self.progress("level"), .max(.int(2_000)))])
      last = save.id
      try DeviceCommit.apply(
        draft, now: clock(of: 0), writer: devices[0].writer, in: &devices[0].storage, using: &random)
    } catch {
      violation("the last write fails: \(error)")
    }
    trace(41, words: "the last write")
    step(0, .committed)
    drain()
    report.statistics.mostExchangesAfterLastWrite = devices.map(\.exchanges).max() ?? 0
    for index in devices.indices {
      if devices[index].exchanges > 2 {
        violation("device \(index) needed \(devices[index].exchanges) exchanges after one write")
      }
      if devices[index].storage.cell(Self.progress("level"))?.value != .max(.int(2_000)) {
        violation("device \(index) never saw the last write")
      }
      if devices[index].storage.heads(of: Self.slots[0]) != [last].compactMap(\.self) {
        violation("device \(index) never saw the last save")
      }
    }
    checkQuietMoney()
  }

  /// Rights that move to where they are needed take a few more exchanges, but must then be quiet, too.
  private func checkQuietMoney() {
    for index in devices.indices { devices[index].exchanges = 0 }
    do {
      let earning = WalletOperation(
        id: OperationID(using: &random), kind: .earn, currency: "gems", amount: 1_000, reason: "the last one")
      try DeviceCommit.apply(
        CommitDraft(wallet: [earning]), now: clock(of: 0), writer: devices[0].writer, in: &devices[0].storage,
        using: &random)
    } catch {
      violation("the last earning fails: \(error)")
    }
    trace(42, words: "the last earning")
    step(0, .committed)
    drain()
    let most = devices.map(\.exchanges).max() ?? 0
    report.statistics.mostExchangesForMoney = most
    if most > Self.maximumExchangesForMoney { violation("one earning took \(most) exchanges of a device") }
    checkMoney()
  }
}
