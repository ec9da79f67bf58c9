// Offers all that a store holds to a cloud that isn't the one it knew.
extension DeviceEngine {
  /// Starts over with a cloud that isn't the one this device knew: all that is held here is offered again, and joining
  /// does the rest.
  mutating func beginEpoch(
    _ epoch: UInt64, _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws {
    // What is kept back and complete may exist nowhere else by now. Only what is shown is offered.
    try showArrivals(&effects, in: &storage)
    var facts = try storage.facts()
    facts.cursor = Cursor(epoch: epoch, seq: 0, mark: 0)
    try storage.setFacts(facts)
    // Changes of goods may have other numbers than those that are known here.
    var goods = try storage.goods()
    if goods.number > 0 {
      goods.number = 0
      try storage.setGoods(goods)
    }
    // The same is true for the bank's orders.
    if var wallet = try storage.wallet(), wallet.orders > 0 {
      wallet.orders = 0
      try storage.setWallet(wallet)
    }
    try offerEverything(in: &storage)
    fetching.restart()
    downloads.restart()
    // One exchange sends everything and fetches everything, once the contents that it needs are uploaded. It waits
    // until the next poll at most.
    restartOffer.begin()
    wakeUps.replaceByPoll()
    effects.append(.wake(afterMilliseconds: options.pollMilliseconds))
  }

  /// Fetches everything from the start, from a cloud that has forgotten where this device was: it has what was certain
  /// there, so that nothing is offered again.
  mutating func fetchAnew(
    from epoch: UInt64, _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws {
    try showArrivals(&effects, in: &storage)
    try storage.clearStaged()
    var facts = try storage.facts()
    facts.cursor = Cursor(epoch: epoch, seq: 0, mark: 0)
    try storage.setFacts(facts)
    fetching.restart()
    downloads.restart()
  }

  /// Handles an event saying that the cursor which the device named isn't of the cloud's history. The current cursor
  /// shows whether that still holds after whatever arrived meanwhile; an exchange in flight finds it out itself.
  ///
  /// - Returns: Whether a new epoch has begun.
  mutating func restartIfCurrent(
    _ cursor: Cursor, _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws -> Bool {
    guard case .running = state, inFlight.exchange == nil, cursor.seq > 0 else { return false }
    var facts = try storage.facts()
    guard facts.cursor == cursor else { return false }
    facts.lastFetchedMilliseconds = now
    try storage.setFacts(facts)
    // The cloud is reachable: what failed before need not wait any longer.
    backoff.reset()
    backoff.reached()
    try beginEpoch(cursor.epoch, &effects, in: &storage)
    return true
  }

  /// Fills the outbox with all that the store holds. What was waiting is part of that: sent alone, it would be seen
  /// without what it belongs to, or with what was committed since.
  private mutating func offerEverything(in storage: inout some DeviceStorage) throws {
    // What is still staged isn't complete: offering it again is up to the device that wrote it.
    try storage.clearStaged()
    try storage.clearCloudDepths()
    uploads.forgetSizes()
    var waiting: [VersionID] = []
    var refused: Set<VersionID> = []
    for group in try storage.outbox(limit: storage.outboxCount()) {
      guard group.refusals.isEmpty else {
        refused.formUnion(group.versions)
        continue
      }
      waiting += group.versions
      try storage.removeFromOutbox(group.id)
    }
    var pieces = OutboxPieces(
      cells: options.pieceCells, versions: options.pieceVersions, bytes: options.pieceBytes,
      isPiece: !storage.faults.offersInPieces)
    var offered = refused
    for slot in try storage.slots() {
      // A version comes before those that it replaces, so that the cloud never takes history for a head.
      for id in try ancestry(of: headsToOffer(of: slot, in: storage), in: storage) where !offered.contains(id) {
        if storage.faults.offersOnlyUnacknowledged, try storage.version(id)?.acknowledged == true { continue }
        guard var version = try storage.version(id), !version.neverLeft else { continue }
        version.acknowledged = false
        version.offered = true
        try storage.putVersion(version)
        offered.insert(id)
        try pieces.add(version.record, to: &storage)
      }
    }
    for id in waiting where offered.insert(id).inserted {
      guard var version = try storage.version(id) else { continue }
      if try storage.staysHere(version.record.slot), !version.record.tombstone {
        version.withdraw()
        try storage.putVersion(version)
        continue
      }
      try pieces.add(version.record, to: &storage)
    }
    try pieces.end(in: &storage)
    for update in try storage.cells(in: nil) { try pieces.add(update, to: &storage) }
    try pieces.end(in: &storage)
  }

  /// Returns the heads to offer; of a slot that stays on this device, only the tombstone that reports that it left its
  /// cloud, with what that replaces.
  private func headsToOffer(of slot: String, in storage: some DeviceStorage) throws -> [VersionID] {
    let heads = try storage.heads(of: slot)
    return try storage.staysHere(slot) ? heads.filter { try storage.version($0)?.record.tombstone == true } : heads
  }

  // MARK: In several requests

  /// Returns whether the parts that were sent are still parts of what waits: what was taken out of the cloud meanwhile
  /// must not be sent with them. A value that was changed since is sent once more afterwards; sending again what the
  /// cloud has by then does no harm.
  func isCurrent(_ parts: OfferParts, in storage: some DeviceStorage) throws -> Bool {
    var waiting: [Int64: OutboxGroup] = [:]
    for group in try storage.outbox(limit: storage.outboxCount()) { waiting[group.id] = group }
    return parts.groups.allSatisfy { group in
      waiting[group.id].map { $0.versions.starts(with: group.versions) && refusals.isSendable($0) } ?? false
    }
  }

  /// Records how many parts the cloud keeps, and pauses if it has no room for the next one.
  mutating func keptParts(
    _ count: Int, of part: OfferPart?, _ effects: inout [EngineEffect], using random: inout some RandomNumberGenerator
  ) {
    guard restartOffer.kept(count, of: part, patience: RejectionSearch.maximumMissingRounds) else { return }
    let failure = TransportFailure(
      .server(retryAfterMilliseconds: nil), "the cloud currently has no space for a part of what is offered")
    pause(failure, of: .exchange, atLeast: options.offerPauseMilliseconds, &effects, using: &random)
  }
}
