import KeepsakeReplication

/// Makes steps. Remembers what became of the same parts before, because most states differ in only one of them. For one
/// thread.
struct StepRunner {
  /// What is remembered of each kind: at about 200 bytes an entry.
  private static let maximumEntries = 400_000

  /// The rounds that a trace shows of what never rests.
  private static let shownRounds = 8

  let options: ExhaustiveOptions
  private var checkpoints: [StateDigest: CheckedStore?] = [:]
  private var answers: [StateDigest: CheckedBank.Outcome] = [:]
  private var receipts: [StateDigest: Receipt] = [:]
  /// How many more rounds such a state takes to rest.
  private var rested: [StateDigest: Int] = [:]

  private struct Receipt {
    let store: CheckedStore
    let drawn: UInt32
  }

  init(_ options: ExhaustiveOptions) { self.options = options }

  /// The steps that may be possible from a state, always in the same order.
  func steps(from state: CheckedState) -> [WalletStep] {
    var steps: [WalletStep] = []
    steps.reserveCapacity(32)
    for slot in [0, 1] {
      let device = state[slot]
      if device.made < options.operations { for deed in options.deeds { steps.append(.perform(deed, device: slot)) } }
      if state.needs < options.needs { steps.append(.need(device: slot)) }
      steps.append(.reopen(device: slot))
      if !device.isRemoved {
        steps.append(.exchange(device: slot))
        if state.losses < options.losses {
          steps.append(.loseReply(device: slot))
          steps.append(.send(device: slot))
        }
        if state.removals < options.removals { steps.append(.remove(device: slot)) }
      } else {
        steps.append(.join(device: slot))
      }
      if state.copies < options.copies {
        steps.append(.backUp(device: slot))
        steps.append(.restore(device: slot))
        steps.append(.copy(device: slot))
      }
      if state.moves < options.moves {
        if !device.isRemoved { steps.append(.move(device: slot)) }
        // The second device is the guest.
        if slot == 0 { steps.append(.adopt(device: slot)) }
      }
      for former in device.store.membership.former.indices.map(UInt8.init) {
        steps.append(.leave(device: slot, former: former))
        guard state.losses < options.losses else { continue }
        steps.append(.loseLeaving(device: slot, former: former))
        steps.append(.sendLeaving(device: slot, former: former))
      }
    }
    for (index, message) in state.messages.enumerated() {
      if message.isAwaited { steps.append(.arrive(message: index, .answered)) }
      steps.append(.arrive(message: index, .replyLost))
      if options.hasLateReplies, message.reply == nil, message.isOfStore {
        steps.append(.arrive(message: index, .replyHeldUp))
      }
    }
    if state.pauses < options.pauses { steps.append(.pause) }
    if state.restores < options.restores {
      steps.append(.backUpBank)
      steps.append(.restoreBank(isMarked: true))
      if options.hasRawBackups { steps.append(.restoreBank(isMarked: false)) }
    }
    if state.bank.state.isFrozen == true { steps.append(.releaseBank) }
    return steps
  }

  /// Makes a step.
  ///
  /// - Returns: The next state; nil if the step isn't possible, or changes nothing that matters.
  /// - Throws: ``CheckedViolation``.
  mutating func state(after step: WalletStep, from state: CheckedState) throws(CheckedViolation) -> CheckedState? {
    var next = state
    switch step {
    case .perform(let deed, let slot):
      guard let store = checkpoint(deed, slot, state) else { return nil }
      next[slot].store = store
      next[slot].made += 1
    case .need(let slot):
      guard let store = state[slot].store.needing(options) else { return nil }
      next[slot].store = store
      next.needs += 1
    case .reopen(let slot):
      guard let store = state[slot].store.reopened(options) else { return nil }
      next[slot].store = store
      next.stopWaiting(slot)
    case .exchange(let slot): try exchange(slot, &next)
    case .loseReply(let slot):
      try exchange(slot, &next, isReplyLost: true)
      next.losses += 1
    case .send(let slot):
      let store = state[slot].store.offering(options)
      next[slot].store = store
      next.send(store.offer, from: slot, to: store.membership.place, isLeaving: false)
    case .arrive(let index, let arrival): try arrive(index, arrival, &next)
    case .backUp(let slot):
      guard state[slot].backup?.digest != state[slot].store.digest else { return nil }
      next[slot].backup = state[slot].store
    case .restore(let slot):
      guard let backup = state[slot].backup, backup.digest != state[slot].store.digest else { return nil }
      next.replaceStore(of: slot, with: backup.reopened(options) ?? backup)
      next.copies += 1
    case .copy(let slot):
      let store = state[slot].store
      next.replaceStore(of: 1 - slot, with: (store.reopened(options) ?? store).copied(as: state.installs, options))
      next.installs += 1
      next.copies += 1
    case .remove(let slot):
      guard state.bank(of: slot).knows(state.id(of: slot)) else { return nil }
      try adopt(state.bank(of: slot).removing(state.id(of: slot), options), &next)
      next[slot].isRemoved = true
      next.removals += 1
    case .join(let slot):
      next[slot].isRemoved = false
      next[slot].registration += 1
    case .pause:
      (next.bank, next.secondBank) = (state.bank.waiting(), state.secondBank.waiting())
      next.pauses += 1
    case .backUpBank:
      guard state.bankBackup?.digest != state.bank.digest else { return nil }
      next.bankBackup = state.bank
    case .restoreBank(let isMarked):
      guard let backup = state.bankBackup, backup.digest != state.bank.digest else { return nil }
      next.restores += 1
      next.bank = backup
      if isMarked { try adopt(backup.settingBack(to: UInt64(next.restores), options), &next) }
    case .releaseBank: try adopt(state.bank.released(options), &next)
    case .move(let slot):
      var random = DrawnNumbers(slot: slot, drawn: state[slot].drawn)
      guard let store = state[slot].store.moved(using: &random, options) else { return nil }
      next[slot].store = store
      next[slot].drawn = random.drawn
      next.stopWaiting(slot, isLeaving: false)
      next.moves += 1
    case .adopt(let slot):
      var random = DrawnNumbers(slot: 1 - slot, drawn: state[1 - slot].drawn)
      guard let (own, guest) = state[slot].store.adopting(state[1 - slot].store, using: &random, options) else {
        return nil
      }
      (next[slot].store, next[1 - slot].store) = (own, guest)
      next[1 - slot].drawn = random.drawn
      next.stopWaiting(1 - slot)
      next.moves += 1
    case .leave(let slot, let former): try leave(slot, Int(former), &next)
    case .loseLeaving(let slot, let former):
      try leave(slot, Int(former), &next, isReplyLost: true)
      next.losses += 1
    case .sendLeaving(let slot, let former):
      guard let request = state[slot].store.request(about: Int(former), options) else { return nil }
      next[slot].store = request.store
      next.send(request.offer, from: slot, to: request.place, isLeaving: true)
    }
    for slot in [0, 1] { if let violation = violation(of: slot, next) { throw violation } }
    return next
  }

  private func violation(of slot: Int, _ state: CheckedState) -> CheckedViolation? {
    let violation = state[slot].store.violation
    // A bank that doesn't know that it was set back may pay a claim to another device, until it finds out.
    if options.hasRawBackups, state.restores > 0, violation?.rule == .deviceRights { return nil }
    return violation
  }

  // MARK: Parts of steps

  private mutating func checkpoint(_ deed: WalletDeed, _ slot: Int, _ state: CheckedState) -> CheckedStore? {
    let device = state[slot]
    var key = device.store.digest
    key.add("\(deed.rawValue)")
    key.add(UInt64(slot) << 8 | UInt64(device.made))
    if let known = checkpoints[key] { return known }
    let operations = deed.operations(slot: slot, number: Int(device.madeBefore + device.made))
    let store = device.store.performing(operations, options)
    Self.limit(&checkpoints)
    checkpoints[key] = .some(store)
    return store
  }

  private mutating func exchange(
    _ slot: Int, _ state: inout CheckedState, isReplyLost: Bool = false
  ) throws(CheckedViolation) {
    let device = state[slot]
    let store = device.store.offering(options)
    let (outcome, digest) = answer(store.offer, slot, device.registration, state.bank(of: slot))
    try adopt(outcome, &state)
    state[slot].store = store
    state.stopWaiting(slot, isLeaving: false)
    guard !isReplyLost, let reply = outcome.reply else { return }
    receive(CheckedState.Reply(reply: reply, digest: digest), slot, &state)
  }

  /// An exchange about a former wallet.
  private mutating func leave(
    _ slot: Int, _ former: Int, _ state: inout CheckedState, isReplyLost: Bool = false
  ) throws(CheckedViolation) {
    let device = state[slot]
    guard let request = device.store.request(about: former, options) else { return }
    let (outcome, digest) = answer(request.offer, slot, device.registration, state[bankAt: request.place])
    try adopt(outcome, &state)
    state[slot].store = request.store
    state.stopWaiting(slot, isLeaving: true)
    guard !isReplyLost, let reply = outcome.reply else { return }
    receive(CheckedState.Reply(reply: reply, digest: digest), slot, &state, isLeaving: true)
  }

  private func adopt(_ outcome: CheckedBank.Outcome, _ state: inout CheckedState) throws(CheckedViolation) {
    if let violation = outcome.violation { throw violation }
    guard outcome.bank !== state[bankAt: outcome.bank.place] else { return }
    state[bankAt: outcome.bank.place] = outcome.bank
    if state.moves > 0, let violation = state.twoBanksViolation { throw violation }
  }

  private mutating func arrive(
    _ index: Int, _ arrival: WalletStep.Arrival, _ state: inout CheckedState
  ) throws(CheckedViolation) {
    let message = state.messages.remove(at: index)
    let slot = Int(message.device)
    if let reply = message.reply {
      // Taken even if the device waits for another one by now.
      if arrival == .answered || options.hasLateReplies { receive(reply, slot, &state, isLeaving: message.isLeaving) }
      return
    }
    // The cloud refuses a device that was removed meanwhile. At a bank that it left it wasn't.
    guard message.isLeaving || !state[slot].isRemoved && message.registration == state[slot].registration else {
      return
    }
    let (outcome, digest) = answer(message.offer, slot, message.registration, state[bankAt: Int(message.place)])
    try adopt(outcome, &state)
    guard let reply = outcome.reply.map({ CheckedState.Reply(reply: $0, digest: digest) }) else { return }
    switch arrival {
    case .answered: receive(reply, slot, &state, isLeaving: message.isLeaving)
    case .replyLost: break
    case .replyHeldUp:
      var late = message
      late.reply = reply
      late.isAwaited = false
      state.messages.append(late)
    }
  }

  private mutating func answer(
    _ offer: CheckedOffer, _ slot: Int, _ registration: UInt8, _ bank: CheckedBank
  ) -> (CheckedBank.Outcome, StateDigest) {
    var key = bank.digest
    key.add(offer.digest)
    key.add(UInt64(slot) << 8 | UInt64(registration))
    if let known = answers[key] { return (known, key) }
    let outcome = bank.answering(offer.offer, from: CheckedState.id(of: slot, registration: registration), options)
    Self.limit(&answers)
    answers[key] = outcome
    return (outcome, key)
  }

  private mutating func receive(
    _ reply: CheckedState.Reply, _ slot: Int, _ state: inout CheckedState, isLeaving: Bool = false
  ) {
    let device = state[slot]
    var key = device.store.digest
    key.add(reply.digest)
    key.add(UInt64(isLeaving ? 1 : 0) << 40 | UInt64(slot) << 32 | UInt64(device.drawn))
    let receipt: Receipt
    if let known = receipts[key] {
      receipt = known
    } else {
      var random = DrawnNumbers(slot: slot, drawn: device.drawn)
      let store =
        isLeaving
        ? device.store.leaving(with: reply.reply, using: &random, options)
        : device.store.receiving(reply.reply, using: &random, options)
      receipt = Receipt(store: store, drawn: random.drawn)
      Self.limit(&receipts)
      receipts[key] = receipt
    }
    state[slot].store = receipt.store
    state[slot].drawn = receipt.drawn
  }

  private static func limit<Value>(_ entries: inout [StateDigest: Value]) {
    if entries.count >= maximumEntries { entries.removeAll(keepingCapacity: true) }
  }

  // MARK: Rest

  /// Has removed devices join again, delivers every message, and lets the devices exchange in turn until nothing
  /// changes. Checks what must hold on the way and in the end. Ends early at a state that was seen on such a way.
  ///
  /// - Parameter visit: Called for every state on the way. Then none of them is known.
  /// - Throws: ``CheckedViolation``.
  mutating func rest(
    from state: CheckedState, _ visit: ((String, CheckedState) -> Void)? = nil
  ) throws(CheckedViolation) {
    var state = state
    for slot in [0, 1] where state[slot].isRemoved {
      state[slot].isRemoved = false
      state[slot].registration += 1
    }
    while !state.messages.isEmpty {
      try arrive(0, .replyLost, &state)
      visit?("the first message arrives, and the reply goes nowhere", state)
    }
    var path: [StateDigest] = []
    var left = 0
    while true {
      let digest = state.restDigest
      if visit == nil, let known = rested[digest] {
        left = known
        break
      }
      guard path.count <= ExhaustiveOptions.roundsToRest else { break }
      path.append(digest)
      for slot in [0, 1] {
        try exchange(slot, &state)
        if path.count <= Self.shownRounds { visit?("\(CheckedWords.device(slot)) exchanges", state) }
        for chain in state[slot].store.membership.former.map(\.state.chain) {
          // What is settled meanwhile isn't asked about.
          let former = state[slot].store.membership.former.firstIndex { $0.state.chain == chain }
          guard let former else { continue }
          try leave(slot, former, &state)
          if path.count <= Self.shownRounds { visit?("\(CheckedWords.device(slot)) asks a bank that it left", state) }
        }
        if let violation = violation(of: slot, state) { throw violation }
      }
      guard state.restDigest != digest else {
        if state.bank.state.isFrozen == true {
          // A device may be lost: then the operator ends the wait.
          try adopt(state.bank.released(options), &state)
          visit?("the bank is released", state)
          continue
        }
        if let violation = state.restViolation { throw violation }
        // A game makes its purchase in the end, or gives it up: what waited for the money then gets it.
        var isNeeding = false
        for slot in [0, 1] where !state[slot].store.wallet.needs.isEmpty {
          guard let store = state[slot].store.reopened(options) else { continue }
          state[slot].store = store
          isNeeding = true
          visit?("\(CheckedWords.device(slot)) needs nothing any more", state)
        }
        if isNeeding { continue }
        break
      }
    }
    guard path.count + left <= ExhaustiveOptions.roundsToRest else {
      throw CheckedViolation(
        .rest, "exchanges still change something after \(ExhaustiveOptions.roundsToRest) of each device")
    }
    Self.limit(&rested)
    for (index, digest) in path.enumerated() { rested[digest] = path.count - index + left }
  }
}
