// Decides what is sent next.
extension DeviceEngine {
  /// Works out what can be sent. A store that offers all that it holds does so as a whole: everything that waits is
  /// sent together, and waits together for contents.
  mutating func planSending(
    _ effects: inout [EngineEffect], in storage: inout some DeviceStorage,
    using random: inout some RandomNumberGenerator
  ) throws -> SendingPlan {
    if try refusalOfAll(in: storage) != nil {
      let whole = try refusalsOfAll(in: storage)
      refusals.current = whole.map { EngineRefusal(slot: nil, refusal: $0) }
      if whole.contains(where: { refusals.isNews($0) }) { effects.append(.notify(.refused(whole))) }
      return SendingPlan()
    }
    // Each round but the last refuses a group.
    for _ in 0...Self.outboxRead {
      let groups = try sendableGroups(in: &storage)
      if groups.isEmpty {
        rejections.outboxIsEmpty()
        uploads.forgetSizes()
      }
      let isOffer = !rejections.isSingle && groups.contains(where: \.isPiece)
      if let parts = restartOffer.parts, try !isOffer || !isCurrent(parts, in: storage) { restartOffer.dropParts() }
      let candidates = try candidates(groups, isOffer: isOffer, in: storage)
      switch try uploads.plan(candidates, in: storage) {
      case .plan(var plan):
        if isOffer, !plan.groups.isEmpty {
          plan.part = restartOffer.nextPart(of: plan.groups, candidates.known, limits, using: &random)
        }
        return plan
      case .lost(let version, let hash):
        let refusal = Refusal(
          item: ExchangeRules.item(version), reason: .invalid,
          message: "its content \(hash) is damaged or missing on this device")
        for group in groups where group.versions.contains(version) {
          try refuse(group.id, [refusal], &effects, in: &storage)
        }
      }
    }
    return SendingPlan()
  }

  /// How much the next exchange takes.
  var limits: RequestLimits { RequestLimits(options, isSingle: rejections.isSingle) }

  private func candidates(
    _ groups: [OutboxGroup], isOffer: Bool, in storage: some DeviceStorage
  ) throws -> UploadPlanner.Candidates {
    var known: [VersionID: VersionRecord] = [:]
    var arrived: Set<VersionID> = []
    if isOffer {
      for id in (groups + (restartOffer.parts?.groups ?? [])).flatMap(\.versions) where known[id] == nil {
        guard let version = try storage.version(id) else { continue }
        known[id] = version.record
        if version.acknowledged, !version.neverLeft { arrived.insert(id) }
      }
    }
    return UploadPlanner.Candidates(
      groups: groups, known: known, arrived: arrived,
      offer: isOffer ? restartOffer.groups(of: groups, known, limits) : nil, limits: limits,
      uploading: inFlight.uploading)
  }

  /// Returns the groups at the front of the outbox; all groups if refused ones fill that.
  private func oldestGroups(in storage: some DeviceStorage) throws -> [OutboxGroup] {
    let groups = try storage.outbox(limit: Self.outboxRead)
    let isPart = groups.contains(where: refusals.isSendable) && !groups.contains(where: \.isPiece)
    guard groups.count == Self.outboxRead, !isPart else { return groups }
    return try storage.outbox(limit: try storage.outboxCount())
  }

  /// Returns the oldest groups that the cloud hasn't refused, after removing those that are settled.
  private mutating func sendableGroups(in storage: inout some DeviceStorage) throws -> [OutboxGroup] {
    var groups: [OutboxGroup] = []
    var refused: [EngineRefusal] = []
    let isDue = refusals.isSecondTryDue(now: now, after: options.secondTryMilliseconds)
    let oldest = try oldestGroups(in: storage)
    let isOffering = try !rejections.isSingle && oldest.contains { try $0.isPiece && !isSettled($0, in: storage) }
    for group in oldest {
      // What arrived meanwhile belongs to the rest of an offer nevertheless. In a shared folder, a device may get the
      // offer and not the file in which it arrived here: without it, values would be shown without their save.
      if isOffering, group.isPiece, group.refusals.isEmpty, try hasItems(group, in: storage) {
        groups.append(group)
        continue
      }
      if try isSettled(group, in: storage) {
        try storage.removeFromOutbox(group.id)
        continue
      }
      refused += try described(group, in: storage)
      if isDue, OutboxRefusals.lacksRoom(group) { refusals.retry(group, now: now) }
      if refusals.isSendable(group) { groups.append(group) }
    }
    refusals.current = refused
    return groups
  }

  private func hasItems(_ group: OutboxGroup, in storage: some DeviceStorage) throws -> Bool {
    try !group.cells.isEmpty || group.versions.contains { try storage.version($0) != nil }
  }

  private func isSettled(_ group: OutboxGroup, in storage: some DeviceStorage) throws -> Bool {
    guard group.cells.isEmpty else { return false }
    for id in group.versions {
      guard let version = try storage.version(id) else { continue }
      if version.acknowledged { continue }
      // A refused save that a later one replaces no longer matters, if the later one also covers what it covered.
      if try !group.refusals.isEmpty && isCoveredWhole(version.record, in: storage) { continue }
      return false
    }
    return true
  }

  /// Returns whether a head covers a replaced save and all that it covered. Saves made since it was refused do. Those
  /// of a store that offers everything again name only the ones directly before them, and the cloud may learn from no
  /// other version what those replaced.
  private func isCoveredWhole(_ record: VersionRecord, in storage: some DeviceStorage) throws -> Bool {
    let covered = Set(record.covers + [record.id])
    return try storage.heads(of: record.slot).contains { id in
      try storage.version(id).map { covered.isSubset(of: $0.record.covers) } ?? false
    }
  }

  // MARK: Transfers

  /// Starts transfers in parallel: equally many uploads and downloads, as long as there are both.
  mutating func startTransfers(
    _ planned: [PlannedUpload], _ effects: inout [EngineEffect], in storage: inout some DeviceStorage,
    using random: inout some RandomNumberGenerator
  ) throws {
    var planned = planned[...]
    var needed = fetching.isComplete ? try downloads.wanted(in: storage, downloading: inFlight.downloading)[...] : []
    while inFlight.transfers.count < options.parallelTransfers {
      let (up, down) = (
        planned.first { inFlight.hasRoom(for: $0.bytes, options) },
        needed.first { inFlight.hasRoom(for: $0.length, options) }
      )
      let isUpload = up != nil && (down == nil || inFlight.isUploadNext)
      if isUpload, let up {
        planned.removeAll { $0.hash == up.hash }
        // The game may have released what the cloud asked for.
        guard try up.content != nil || storage.hasContent(up.hash) else {
          repair.drop(up.hash)
          continue
        }
        guard let ready = try uploads.encode(up, in: storage), let content = ready.content else { continue }
        try begin(ready, content, &effects, in: &storage, using: &random)
      } else if let down {
        needed.removeAll { $0.hash == down.hash }
        begin(down, &effects, using: &random)
      } else {
        return
      }
    }
  }

  private mutating func begin(
    _ upload: PlannedUpload, _ content: EncodedContent, _ effects: inout [EngineEffect],
    in storage: inout some DeviceStorage,
    using random: inout some RandomNumberGenerator
  ) throws {
    let request = inFlight.nextRequest(using: &random)
    var marksOffered = false
    if var version = try storage.version(upload.version.id), !version.offered {
      version.offered = true
      try storage.putVersion(version)
      marksOffered = true
    }
    let status = EngineTransfer(
      request: request, isUpload: true, content: upload.hash, slot: upload.version.slot, version: upload.version.id,
      length: upload.length, lengthInAll: upload.lengthInAll)
    inFlight.begin(
      Transfer(
        request: request, isUpload: true, hash: upload.hash, bytes: content.bytes.count, base: content.base,
        depth: upload.depth,
        marksOffered: marksOffered, status: status))
    effects.append(.upload(request: request, content))
  }

  private mutating func begin(
    _ need: NeededContent, _ effects: inout [EngineEffect], using random: inout some RandomNumberGenerator
  ) {
    let request = inFlight.nextRequest(using: &random)
    let status = EngineTransfer(
      request: request, isUpload: false, content: need.hash, slot: need.slot, version: need.version,
      length: need.length,
      lengthInAll: downloads.lengthInAll(of: need.version))
    inFlight.begin(Transfer(request: request, isUpload: false, hash: need.hash, bytes: need.length, status: status))
    effects.append(.download(request: request, need.hash))
  }
}
