// From staged changes to what the game sees.
extension DeviceEngine {
  /// Shows everything that is staged, in one go, if the contents that it needs are here.
  mutating func showIfComplete(
    _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws {
    let missing = try downloads.missing(in: storage)
    guard missing.allSatisfy(\.isOnRequest) || storage.faults.showsWithoutContents else { return }
    downloads.dropHeld(notNeededBy: missing)
    guard holdsArrivals else { return try showStaged(&effects, in: &storage) }
    var facts = try storage.facts()
    if facts.hasArrivals { return }
    // If nothing would change for the game, there is nothing to keep back, and it has seen everything.
    guard try changesWhatShows(storage.staged(), in: storage) else { return try showStaged(&effects, in: &storage) }
    facts.hasArrivals = true
    facts.arrivalsNotDownloaded = try downloads.versionsWithoutContents(storage.staged(), in: storage)
    try storage.setFacts(facts)
  }

  /// Returns whether the game would see a difference. The cloud also sends the result of this device's own commits,
  /// which isn't news from other devices.
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
        // The head that this one replaces would disappear. Among several heads, any detail may decide which one becomes
        // the save.
        let heads = try storage.heads(of: record.slot)
        return heads.count > 1 || heads.contains { joined.covers.contains($0) }
      }
    }
  }

  /// Shows everything that was kept back, in one go; shows nothing while a part of it is still to arrive. The running
  /// engine isn't affected.
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
    // A repaired store has lost what was staged, and fetches it again.
    facts.hasArrivals = false
    try storage.setFacts(facts)
  }

  /// Shows what is staged, which is complete.
  private mutating func showStaged(_ effects: inout [EngineEffect], in storage: inout some DeviceStorage) throws {
    let staged = try storage.staged()
    if !staged.isEmpty {
      try show(staged, &effects, in: &storage)
      try storage.clearStaged()
      downloads.invalidate()
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
    var replacedHere: [String: Set<VersionID>] = [:]
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
      case .version(let received):
        let local = try storage.version(received.id)
        let record = local?.record.joined(with: received) ?? received
        if try storage.isCovered(record.id) { replacedHere[record.slot, default: []].insert(record.id) }
        if local?.neverLeft == true { unsent.insert(record.id) }
        covered.formUnion(record.covers)
        // Whether what it covers here in addition still has to be sent.
        let isWaiting =
          try local?.acknowledged == false && !Set(received.covers).isSuperset(of: record.covers)
          && isToBeSent(record.id, in: storage)
        let stored = StoredVersion(record: record, acknowledged: !isWaiting, offered: true)
        guard stored != local else { continue }
        if local?.acknowledged == false, !isWaiting { acknowledged.append(record.id) }
        if local?.record != record { slots.insert(record.slot) }
        try storage.putVersion(stored)
        for id in record.covers { try storage.markCovered(id) }
      }
    }
    let facts = try storage.facts()
    for id in facts.hasArrivals
      ? facts.arrivalsNotDownloaded : try downloads.versionsWithoutContents(staged, in: storage)
    {
      if try !storage.isCovered(id) { try storage.setNotDownloaded(true, id) }
    }
    for (slot, versions) in replacedHere.sorted(by: { $0.key < $1.key }) {
      // Other devices may have replaced what this one never sent, and still not know what replaced it here.
      let unreported = versions.subtracting(covered).union(versions.intersection(unsent))
      if !unreported.isEmpty { try reportCovered(unreported, besides: covered, in: slot, storage: &storage) }
    }
    try enqueue(offers, in: &storage)
    if !slots.isEmpty { effects.append(.notify(.slots(slots.sorted()))) }
    if !cells.isEmpty { effects.append(.notify(.cells(cells.sorted()))) }
    if !acknowledged.isEmpty { effects.append(.notify(.acknowledged(acknowledged.sorted()))) }
  }

  private func isToBeSent(_ id: VersionID, in storage: some DeviceStorage) throws -> Bool {
    try storage.outbox(limit: storage.outboxCount()).contains { $0.refusals.isEmpty && $0.versions.contains(id) }
  }

  /// Returns this device's own best, to be offered where another device took a player's best back.
  private func offer(
    of key: CellKey, over state: CellState, since local: CellState?, in storage: some DeviceStorage
  ) throws -> CellUpdate? {
    guard key.collection == ScoreEntry.collection, case .best(let held) = state.value else { return nil }
    let isLater = local.map { $0.generation < state.generation } ?? false
    guard isLater || held.isTakenBack else { return nil }
    return state.offering(try storage.keptBest(for: key, held.order), isLater: isLater).map {
      CellUpdate(key: key, state: $0)
    }
  }

  private func enqueue(_ offers: [CellUpdate], in storage: inout some DeviceStorage) throws {
    var pieces = OutboxPieces(
      cells: DeviceCommit.maximumGroupCells, versions: DeviceCommit.maximumGroupVersions,
      bytes: DeviceCommit.maximumGroupBytes,
      isPiece: false)
    for offer in offers { try pieces.add(offer, to: &storage) }
    try pieces.end(in: &storage)
  }
}
