import Foundation
import KeepsakeReplication

// Somebody who plays as a guest with a cloud account of their own, beside the devices. A device adopts the guest's
// wallet, or the guest's store joins the devices as a further one; the guest's store is set back, and comes again. The
// money comes with vouchers of the guest's bank.
extension World {
  struct Guest {
    var storage = SimulatedDevice()
    var cloud = MemoryContainer(epoch: 2)
    var writer = WriterID(0)
    /// An older state of the storage, and how many operations it had.
    var backup: (storage: SimulatedDevice, made: Int)?
    /// What was made in the storage.
    var journal: [OperationID] = []
    /// The storage is that of a device by now.
    var isGone = false
    /// A store was set back, of which only what is lost with it knew a wallet or a voucher: money may stay away.
    var hasLost = false
    var audit = VoucherAudit()
  }

  static let guestContainer = ContainerID(high: 0, low: 2)
  /// One in this many actions is followed by one of the guest.
  private static let guestOdds = 4
  private static let claims = 6
  /// The most exchanges of the guest's store until it has nothing to say any more.
  private static let maximumGuestExchanges = 200

  private var guestRules: BankRules { BankRules(seal: Self.seal(of: Self.guestContainer)) }

  func beginGuest() {
    guest.storage.faults = options.faults
    guest.cloud.faults = options.faults
    guest.writer = WriterID(using: &guests)
    do {
      try DeviceCommit.opened(in: &guest.storage, using: &guests)
    } catch {
      violation("the guest's store can't be opened: \(error)")
    }
    var facts = guest.storage.facts()
    facts.container = Self.guestContainer
    guest.storage.setFacts(facts)
  }

  /// Lets the guest do something now and then.
  func playAsGuest() {
    guard hasGuest, guests.once(in: Self.guestOdds) else { return }
    let index = Int.random(in: devices.indices, using: &guests)
    switch Int.random(in: 0..<20, using: &guests) {
    case 0..<8: useGuestWallet()
    case 8..<11: syncGuest()
    case 11..<13: backUpGuest()
    case 13: setBackGuest()
    case 14..<16: adoptGuest(into: index)
    case 16: joinAsGuest()
    default: for index in devices.indices { askFormerBanks(index) }
    }
  }

  // MARK: The guest's store

  private func useGuestWallet() {
    guard !guest.isGone else { return }
    let number = Int.random(in: 0..<Self.claims, using: &guests)
    let kinds: [WalletOperation.Kind] = [.earn, .earn, .spend, .spend, .claim(key: "quest \(number)")]
    let kind = kinds.randomElement(using: &guests) ?? .earn
    let currency = kind.key == nil && guests.once(in: 4) ? "keys" : "gems"
    let made = WalletOperation(
      id: OperationID(using: &guests), kind: kind, currency: currency, amount: Int64.random(in: 1...50, using: &guests),
      reason: "simulated")
    var storage = guest.storage
    do {
      try DeviceCommit.apply(
        CommitDraft(wallet: [made]), now: now, writer: guest.writer, in: &storage, using: &guests)
    } catch is WalletError {
      return
    } catch {
      return violation("the guest can't commit: \(error)")
    }
    guest.storage = storage
    // A claim that was made here before changes nothing.
    guard storage.performedOperation(made.id) != nil else { return }
    model.operations[made.id] = made
    guest.journal.append(made.id)
    trace(46, made.id.low, words: "the guest commits \(short(made.id)) \(made.kind) \(made.amount) \(made.currency)")
  }

  /// Exchanges with the guest's cloud until there is nothing to say any more, or a response is lost.
  private func syncGuest() {
    guard !guest.isGone else { return }
    var engine = DeviceEngine(options: engineOptions)
    var exchanges = 0
    do {
      var effects = try engine.step(.started, now: now, in: &guest.storage, using: &guests)
      while !effects.isEmpty, exchanges < Self.maximumGuestExchanges {
        guard case .exchange(let number, let request) = effects.removeFirst() else { continue }
        exchanges += 1
        let response = try CloudAcceptance.exchange(
          request, now: now, rules: guestRules, in: &guest.cloud, using: &guests)
        if !calm, guests.may(swarm.lossOdds) { break }
        effects += try engine.step(.answered(request: number, response), now: now, in: &guest.storage, using: &guests)
      }
    } catch {
      return violation("the guest's cloud refuses what it was sent: \(error)")
    }
    trace(47, UInt64(exchanges), words: "the guest syncs, \(CountText.of(exchanges, "exchange"))")
    checkBank(of: guest.cloud)
  }

  private func backUpGuest() {
    guard !guest.isGone else { return }
    guest.backup = (guest.storage, guest.journal.count)
  }

  /// Sets the guest's store back; if it has joined the devices, somebody has a copy of it from before that.
  private func setBackGuest() {
    guard let backup = guest.backup else { return }
    report.statistics.rollbacks += 1
    trace(48, words: "the guest's store is restored from a backup")
    if !guest.isGone {
      for id in guest.journal.dropFirst(backup.made) { model.operationMayBeGone.insert(id) }
      if !isContinued(guest.storage.wallet(), by: backup.storage.wallet()) { guest.hasLost = true }
    }
    guest.journal.removeLast(guest.journal.count - min(backup.made, guest.journal.count))
    guest.storage = backup.storage
    guest.isGone = false
  }

  /// Whether what is on a chain of the guest's bank comes back to a store that has an older wallet.
  private func isContinued(_ lost: WalletState?, by kept: WalletState?) -> Bool {
    // What the bank doesn't know has no money, and what is closed has none any more.
    guard let lost, guest.cloud.bank().chains[lost.chain] != nil else { return true }
    return descends(lost.chain, from: kept?.chain)
  }

  /// Whether a chain of the guest's bank is another one, or follows it.
  private func descends(_ chain: ChainID, from former: ChainID?) -> Bool {
    let bank = guest.cloud.bank()
    var seen: Set<ChainID> = []
    var next: ChainID? = chain
    while let chain = next, chain != former, seen.insert(chain).inserted {
      next = bank.chains[chain]?.follows ?? guest.cloud.closedChain(chain)?.follows
    }
    return next != nil && next == former
  }

  /// A store is about to leave the guest's bank. If it was set back to before it had left, what it did there meanwhile
  /// is on a chain that nobody has.
  private func noteOutlived(by wallets: [FormerWallet]) {
    for wallet in wallets.map(\.state) {
      for chain in guest.cloud.bank().chains.keys where chain != wallet.chain {
        if descends(chain, from: wallet.chain) { guest.hasLost = true }
      }
    }
  }

  // MARK: Moving

  /// The store reports everything, and a device adopts what it has.
  func finishGuest(into index: Int) {
    syncGuest()
    adoptGuest(into: index)
  }

  /// A device adopts the guest's wallet, as `Adopter` does it in three transactions.
  private func adoptGuest(into index: Int) {
    guard !guest.isGone else { return }
    do {
      // Operations of a wallet that no bank knows would move themselves: they take another way.
      guard guest.storage.wallet()?.isKnownToBank == true else { return }
      try DeviceCommit.leaveBank(in: &guest.storage, using: &guests)
      let wallets = guest.storage.formerWallets()
      noteOutlived(by: wallets)
      // A process that ends in between does it again.
      for _ in 0...(guests.once(in: 4) ? 1 : 0) {
        try DeviceCommit.adopt(wallets, in: &devices[index].storage)
      }
      guest.storage.setFormerWallets([])
      report.statistics.moves += 1
      trace(
        49, UInt64(index), UInt64(wallets.count),
        words: "device \(index) adopts the guest's wallets \(wallets.map { short($0.state.chain) })")
    } catch {
      return violation("device \(index) can't adopt the guest's wallet: \(error)")
    }
    askFormerBanks(index)
  }

  /// The guest's store joins the devices, as with a code.
  private func joinAsGuest() {
    // An older copy of a wallet that no bank knows could be offered to the guest's bank later.
    guard !guest.isGone, devices.count <= swarm.maximumDevices, guest.storage.wallet()?.isKnownToBank == true else {
      return
    }
    do {
      try DeviceCommit.moved(in: &guest.storage, using: &guests)
    } catch {
      return violation("the guest's store can't join the devices: \(error)")
    }
    noteOutlived(by: guest.storage.formerWallets())
    var facts = guest.storage.facts()
    (facts.container, facts.caughtUp) = (Self.container, false)
    guest.storage.setFacts(facts)
    guest.isGone = true
    report.statistics.moves += 1
    trace(50, UInt64(devices.count), words: "the guest joins as device \(devices.count)")
    addDevice(guest.storage)
    askFormerBanks(devices.count - 1)
  }

  /// A device is about to lose what it knows of the guest's money.
  func noteLosses(of index: Int, goingBackTo backup: SimulatedDevice) {
    guard hasGuest else { return }
    let kept = Set(backup.formerWallets().map(\.state.chain))
    let lost = devices[index].storage.formerWallets().filter { !kept.contains($0.state.chain) }
    for operation in lost.flatMap({ $0.state.undecided.flatMap { Array($0) } }) {
      model.operationMayBeGone.insert(operation.id)
    }
    func vouchers(_ storage: SimulatedDevice) -> Set<ChainID> {
      let wallets = storage.formerWallets().map(\.state) + [storage.wallet()].compactMap(\.self)
      return Set(wallets.flatMap(\.vouchers).map(\.chain))
    }
    let fewer = !vouchers(devices[index].storage).isSubset(of: vouchers(backup))
    if !lost.isEmpty || fewer { guest.hasLost = true }
  }

  // MARK: The bank that is left

  /// Asks the guest's bank about every wallet that a device left there.
  func askFormerBanks(_ index: Int) {
    guard hasGuest, calm || devices[index].online else { return }
    for chain in devices[index].storage.formerWallets().map(\.state.chain) { ask(index, about: chain) }
  }

  private func ask(_ index: Int, about chain: ChainID) {
    let offer: WalletOffer?
    do {
      offer = try DeviceCommit.offer(leavingOn: chain, in: &devices[index].storage)
    } catch {
      return violation("device \(index) can't ask the guest's bank: \(error)")
    }
    guard let offer else { return }
    devices[index].leavingRequests += 1
    let (number, opening) = (devices[index].leavingRequests, devices[index].opening)
    devices[index].leaving[chain] = number
    trace(51, UInt64(index), UInt64(number), words: "device \(index) asks the guest's bank about \(short(chain))")
    func send(after delay: Int64, isReplyLost: Bool = false) {
      schedule(
        after: delay,
        .toFormerBank(device: index, opening: isReplyLost ? -1 : opening, number: number, offer))
    }
    let delay = Int64.random(in: 5...swarm.latencyMilliseconds, using: &guests)
    guard !calm, guests.may(swarm.lossOdds) else {
      if !calm, guests.may(swarm.doublingOdds) {
        send(after: delay + Int64.random(in: 0...8_000, using: &guests), isReplyLost: true)
      }
      return send(after: delay)
    }
    switch Int.random(in: 0..<3, using: &guests) {
    case 0: report.statistics.lostRequests += 1
    case 1:
      report.statistics.lostAnswers += 1
      send(after: delay, isReplyLost: true)
    default:
      report.statistics.lateAnswers += 1
      send(after: Int64.random(in: 4_000...15_000, using: &guests), isReplyLost: true)
    }
  }

  /// The guest's bank receives a request. An opening below zero means that the reply gets lost.
  func leave(with offer: WalletOffer, from index: Int, _ opening: Int, _ number: Int) {
    do {
      let reply = try CloudAcceptance.leave(
        with: offer, from: Device.id(index), now: now, rules: guestRules, in: &guest.cloud, using: &guests)
      trace(
        52, UInt64(index), UInt64(number), reply.voucher == nil ? 0 : 1,
        words: "the guest's bank replies \(short(reply.state)) to device \(index) about \(short(offer.chain))"
          + (reply.voucher.map { ", voucher \($0.amounts.sorted { $0.key < $1.key })" } ?? ""))
      schedule(
        after: Int64.random(in: 5...swarm.latencyMilliseconds, using: &guests),
        .fromFormerBank(device: index, opening: opening, number: number, reply))
    } catch {
      violation("the guest's bank refuses what device \(index) sent: \(error)")
    }
    checkBank(of: guest.cloud)
  }

  func received(_ reply: WalletReply, by index: Int, _ number: Int) {
    // The device waits for the reply to its newest request only.
    guard devices[index].leaving[reply.chain] == number else { return }
    devices[index].leaving[reply.chain] = nil
    do {
      let settled = try DeviceCommit.received(reply, in: &devices[index].storage, using: &guests)
      for notification in settled.notifications { handle(notification, on: index) }
      if settled.isSettled { step(index, .sync) }
      if let next = settled.next { ask(index, about: next) }
    } catch {
      violation("device \(index) can't take what the guest's bank replied: \(error)")
    }
  }
}
