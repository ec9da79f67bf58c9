// From the wire to what the game sees.
extension DeviceEngine {
  // MARK: Answers

  mutating func answered(
    _ response: ExchangeResponse, to sent: SentExchange, now: Int64, _ effects: inout [EngineEffect],
    in storage: inout some DeviceStorage, using random: inout some RandomNumberGenerator
  ) throws {
    if let fault = Self.fault(of: response, to: sent, limit: options.page) {
      exchangeDue = true
      pause(TransportFailure(.server(retryAfterMilliseconds: nil), fault), of: .exchange, atLeast: 0, &effects, using: &random)
      return
    }
    succeeded(.exchange)
    pollIsSet = false
    gone.subtract(sent.gone)
    damagedThere.subtract(sent.damaged)
    var facts = try storage.facts()
    facts.serverOffsetMilliseconds = response.serverTimeMilliseconds.addingClamped(-now)
    facts.lastFetchedMilliseconds = now
    facts.isRefused = false
    if response.restart {
      try storage.setFacts(facts)
      try beginEpoch(response.cursor.epoch, &effects, in: &storage)
      return
    }

    facts.cursor = response.cursor
    if !response.changes.isEmpty { facts.hasArrivals = false }
    try storage.setFacts(facts)
    if !response.changes.isEmpty {
      try storage.stage(response.changes)
      needs = nil
      reconsider(response.changes)
    }
    try takeWanted(response.wanted, in: &storage)
    // An announcement that was known when this was asked is answered, even if a restored cloud never comes so far.
    if sent.announced == announced { announced = 0 }
    paging = response.more
    complete = !response.more || storage.faults.showsHalfPages
    for content in response.contents { try take(content, &effects, in: &storage) }

    switch response.outcome {
    case nil: break
    case .accepted:
      missingRounds = 0
      sendFull.subtract(sent.contents.map(\.hash))
      guard sent.part?.isLast ?? true else {
        // A cloud that doesn't know of parts took this one by itself.
        offering?.held += 1
        break
      }
      offering = nil
      try accepted(sent, certain: !response.more, &effects, in: &storage)
    case .held(let parts):
      heldParts(parts, of: sent.part, &effects, using: &random)
    case .missing(let hashes):
      missingRounds += 1
      // What replaces a save that isn't here any more was committed since the first part went: both go together, in an offer of their own.
      if try hashes.contains(where: { try !storage.hasContent($0) }) { offering = nil }
      try missing(hashes, of: sent, &effects, in: &storage)
      if missingRounds > Self.maximumMissingRounds {
        missingRounds = 0
        let failure = TransportFailure(
          .server(retryAfterMilliseconds: nil), "the cloud asks again and again for contents that were sent")
        pause(failure, of: .exchange, atLeast: 0, &effects, using: &random)
      }
    case .refused(let refusals):
      try refused(refusals, of: sent, &effects, in: &storage)
    }
    if let use = response.quota { try heardOfRoom(use, in: storage) }

    // A cloud without a bank: asking again at once would never end. What waits is offered at the next start.
    if sent.hasWallet, response.wallet == nil { walletPaused = true }
    if let reply = response.wallet, let state = try storage.wallet() {
      var wallet = Wallet(state)
      var ignored = false
      if case .fork = reply.state, storage.faults.ignoresForks { ignored = true }
      if !ignored {
        let change = wallet.receive(reply, using: &random)
        if wallet.state != state { try storage.setWallet(wallet.state) }
        if change.balancesChanged { effects.append(.notify(.wallet)) }
        if !change.decisions.isEmpty { effects.append(.notify(.decisions(change.decisions))) }
        if change.hasMore { exchangeDue = true }
      }
    }
  }

  /// What is wrong with an answer; nil if nothing is.
  static func fault(of response: ExchangeResponse, to sent: SentExchange, limit: Int) -> String? {
    let cursor = response.cursor
    guard cursor.seq <= Cursor.maximumSeq, cursor.epoch <= Cursor.maximumSeq,
      cursor.ahead.map({ (cursor.seq...Cursor.maximumSeq).contains($0.seq) }) ?? true
    else { return "the cursor is out of range" }
    guard abs(Int128(response.serverTimeMilliseconds)) <= Int128(ExchangeRules.maximumMilliseconds) else {
      return "the server's time is out of range"
    }
    if case .held = response.outcome, sent.part == nil { return "it holds a part of what was sent as a whole" }
    if response.restart { return sent.cursor.seq == 0 ? "a start was answered by a restart" : nil }
    guard cursor.seq >= sent.cursor.seq, !response.more || cursor.seq > sent.cursor.seq else { return "the cursor stands still" }
    guard response.changes.count <= limit else { return "there are more changes than asked for" }
    for change in response.changes {
      guard change.seq > sent.cursor.seq, change.seq <= cursor.seq else { return "a change is out of order" }
      switch change.item {
      case .cell(let update):
        if let objection = ExchangeRules.objection(to: update) { return "\(objection.item): \(objection.message)" }
      case .version(let record):
        if let objection = ExchangeRules.objection(to: record) { return "\(objection.item): \(objection.message)" }
      }
    }
    return nil
  }

  // MARK: Showing

  /// Shows what is staged, all of it at once, if the contents that it needs are here.
  mutating func showIfComplete(
    _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws {
    let missing = try missingContents(in: storage)
    guard missing.allSatisfy(\.isAsked) || storage.faults.showsWithoutContents else { return }
    held.removeAll { content in !missing.contains { $0.hash == content.root } }
    guard holdsArrivals else { return try showStaged(&effects, in: &storage) }
    var facts = try storage.facts()
    if facts.hasArrivals { return }
    // Whoever kept back nothing has seen everything.
    guard try changesWhatShows(storage.staged(), in: storage) else { return try showStaged(&effects, in: &storage) }
    facts.hasArrivals = true
    facts.arrivalsNotDownloaded = try deferring(storage.staged(), in: storage)
    try storage.setFacts(facts)
  }

  /// Whether the game would see a difference. The cloud also tells what it made of this device's own commits, which is no news from others.
  private func changesWhatShows(_ staged: [CloudChange], in storage: some DeviceStorage) throws -> Bool {
    try staged.contains { change in
      switch change.item {
      case .cell(let update):
        guard let local = try storage.cell(update.key) else { return true }
        return local.joined(with: update.state, under: storage.faults) != local
      case .version(let record):
        guard let local = try storage.version(record.id)?.record else { return true }
        let joined = local.joined(with: record)
        guard joined != local else { return false }
        // A head that this one is said to replace would go. Among several heads anything may tell which one is the save.
        let heads = try storage.heads(of: record.slot)
        return heads.count > 1 || heads.contains { joined.covers.contains($0) }
      }
    }
  }

  /// Shows what was kept back, all of it at once; nothing while a part of it is still on its way. Whichever engine runs beside it goes on.
  ///
  /// - Returns: What is new for the game, once the transaction has committed.
  package static func deliver(in storage: inout some DeviceStorage) throws -> [EngineNotification] {
    var engine = DeviceEngine()
    var effects: [EngineEffect] = []
    try engine.showArrivals(&effects, in: &storage)
    return effects.compactMap { if case .notify(let notifications) = $0 { notifications } else { nil } }
  }

  mutating func showArrivals(_ effects: inout [EngineEffect], in storage: inout some DeviceStorage) throws {
    var facts = try storage.facts()
    guard facts.hasArrivals else { return }
    if try !storage.staged().isEmpty { return try showStaged(&effects, in: &storage) }
    // A store that was repaired lost it, and hears it again.
    facts.hasArrivals = false
    try storage.setFacts(facts)
  }

  /// Shows what is staged, which is whole.
  private mutating func showStaged(_ effects: inout [EngineEffect], in storage: inout some DeviceStorage) throws {
    let staged = try storage.staged()
    if !staged.isEmpty {
      try show(staged, &effects, in: &storage)
      try storage.clearStaged()
      needs = nil
    }
    var facts = try storage.facts()
    guard !facts.caughtUp || facts.hasArrivals else { return }
    if !facts.caughtUp { effects.append(.notify(.caughtUp)) }
    facts.caughtUp = true
    facts.hasArrivals = false
    facts.arrivalsNotDownloaded = []
    try storage.setFacts(facts)
  }

  private mutating func show(
    _ staged: [CloudChange], _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws {
    var cells: Set<CellKey> = []
    var slots: Set<String> = []
    var acknowledged: [VersionID] = []
    var stragglers: [String: Set<VersionID>] = [:]
    var unsent: Set<VersionID> = []
    var covered: Set<VersionID> = []
    var offers: [CellUpdate] = []
    for change in staged {
      switch change.item {
      case .cell(let update):
        let local = try storage.cell(update.key)
        let joined = local?.joined(with: update.state, under: storage.faults) ?? update.state
        guard joined != local else { continue }
        try storage.setCell(CellUpdate(key: update.key, state: joined))
        cells.insert(update.key)
        if let offer = try offer(of: update.key, over: joined, since: local, in: storage) {
          try storage.setCell(offer)
          offers.append(offer)
        }
      case .version(var record):
        let local = try storage.version(record.id)
        if let known = local?.record { record = known.joined(with: record) }
        if try storage.isCovered(record.id) { stragglers[record.slot, default: []].insert(record.id) }
        if local?.neverLeft == true { unsent.insert(record.id) }
        covered.formUnion(record.covers)
        let stored = StoredVersion(record: record, acknowledged: true, offered: true)
        guard stored != local else { continue }
        if local?.acknowledged == false { acknowledged.append(record.id) }
        if local?.record != record { slots.insert(record.slot) }
        try storage.putVersion(stored)
        for id in record.covers { try storage.markCovered(id) }
      }
    }
    let facts = try storage.facts()
    for id in facts.hasArrivals ? facts.arrivalsNotDownloaded : try deferring(staged, in: storage) {
      if try !storage.isCovered(id) { try storage.setNotDownloaded(true, id) }
    }
    for (slot, versions) in stragglers.sorted(by: { $0.key < $1.key }) {
      // What was never sent from here others may have replaced, and still not know what it has become here.
      let unreported = versions.subtracting(covered).union(versions.intersection(unsent))
      if !unreported.isEmpty { try sayCovered(unreported, toldBesides: covered, in: slot, storage: &storage) }
    }
    try send(offers, in: &storage)
    if !slots.isEmpty { effects.append(.notify(.slots(slots.sorted()))) }
    if !cells.isEmpty { effects.append(.notify(.cells(cells.sorted()))) }
    if !acknowledged.isEmpty { effects.append(.notify(.acknowledged(acknowledged.sorted()))) }
  }

  /// The best of this device where another one took a player's best back.
  private func offer(
    of key: CellKey, over state: CellState, since local: CellState?, in storage: some DeviceStorage
  ) throws -> CellUpdate? {
    guard key.collection == ScoreEntry.collection, case .best(let held) = state.value else { return nil }
    let isLater = local.map { $0.generation < state.generation } ?? false
    guard isLater || held.isTakenBack else { return nil }
    return state.offering(try storage.keptBest(for: key, held.order), isLater: isLater).map { CellUpdate(key: key, state: $0) }
  }

  private func send(_ offers: [CellUpdate], in storage: inout some DeviceStorage) throws {
    var group = OutboxGroup()
    var bytes = 0
    for offer in offers {
      if !group.cells.isEmpty, group.cells.count >= DeviceCommit.maximumGroupCells || bytes + offer.size > DeviceCommit.maximumGroupBytes {
        try storage.appendToOutbox(group)
        (group, bytes) = (OutboxGroup(), 0)
      }
      group.cells.append(offer)
      bytes += offer.size
    }
    if !group.cells.isEmpty { try storage.appendToOutbox(group) }
  }

  /// The cloud brings versions that were replaced here long ago. Each head that comes from one, but by no record that the cloud can know, says
  /// so from now on. Either that record was thinned away here, and a restored cloud lost its copy; or a copy of this store, made while it was
  /// open, sent what was replaced here before it ever left.
  private func sayCovered(
    _ replaced: Set<VersionID>, toldBesides told: Set<VersionID>, in slot: String, storage: inout some DeviceStorage
  ) throws {
    let waiting = Set(try storage.outbox(limit: storage.outboxCount()).flatMap(\.versions))
    let staysHere = try storage.staysHere(slot)
    let heads = try storage.heads(of: slot).filter { try !staysHere || storage.version($0)?.record.tombstone == true }
    var unreported = replaced.subtracting(told)
    for head in heads {
      var known: Set<VersionID> = []
      var knownHere: Set<VersionID> = []
      for id in try ancestry(from: [head], in: storage) {
        guard let version = try storage.version(id) else { continue }
        // What was replaced before the store was ever connected is offered as far as copies know, but was never sent.
        if version.acknowledged ? !version.neverLeft : waiting.contains(id) { known.formUnion(version.record.covers) }
        knownHere.formUnion(version.record.covers)
      }
      let lacking = replaced.intersection(knownHere).subtracting(known)
      if !lacking.isEmpty { try say(lacking, by: head, isWaiting: waiting.contains(head), in: &storage) }
      unreported.subtract(knownHere)
    }
    // Nobody knows any more which of the heads comes from it. That one of them stands for it is enough to take it away.
    if !unreported.isEmpty, let head = heads.first { try say(unreported, by: head, isWaiting: waiting.contains(head), in: &storage) }
  }

  private func say(
    _ replaced: Set<VersionID>, by id: VersionID, isWaiting: Bool, in storage: inout some DeviceStorage
  ) throws {
    guard var head = try storage.version(id) else { return }
    head.record.covers = replaced.union(head.record.covers).sorted()
    head.acknowledged = false
    try storage.putVersion(head)
    // What waits and never left is sent as it is then. Of what may be under way only another group makes sure; that one never joins a
    // later commit, because its version was offered.
    if head.offered || !isWaiting { try storage.appendToOutbox(OutboxGroup(versions: [id])) }
  }
}
