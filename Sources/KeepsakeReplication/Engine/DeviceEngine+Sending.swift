// From the outbox to the wire, and the outcome there.
extension DeviceEngine {
  func hasWalletToSend(in storage: some DeviceStorage) throws -> Bool {
    try hasBank && !rejections.skipsWallet && !isReadOnly(in: storage)
      && storage.wallet().map { Wallet($0).hasQuestions } ?? false
  }

  /// Assembles the exchange that sends what was planned.
  mutating func assemble(
    _ plan: SendingPlan, in storage: inout some DeviceStorage
  ) throws -> (request: ExchangeRequest, sent: SentExchange) {
    let facts = try storage.facts()
    let cursor = facts.cursor
    var sent = SentExchange(cursor: cursor, groups: plan.groups, setBack: facts.setBack)
    (sent.skipped, sent.contents, sent.announced, sent.gone) = (
      plan.skipped, plan.contents, fetching.announced, downloads.failures.gone
    )
    for record in plan.records {
      guard var version = try storage.version(record.id), !version.offered else { continue }
      version.offered = true
      try storage.putVersion(version)
      sent.newlyOffered.append(record.id)
    }
    sent.versions = plan.records.map(\.id)
    inFlight.exchangeOffers(sent.versions)
    let groups = plan.part?.groups ?? plan.groups
    sent.part = plan.part?.part
    if let part = sent.part, !part.isLast { sent.contents = [] }
    let cells = groups.reduce(into: [CellUpdate]()) { $0 = CellUpdate.joined($0, $1.cells) }
    // A rejected request is searched for its cause one group at a time.
    let wallet =
      !hasBank || rejections.isSingle && !plan.groups.isEmpty || rejections.skipsWallet || facts.isReadOnly
      ? nil : try offer(in: &storage)
    sent.hasWallet = wallet != nil
    if storage.faults.forgetsWhenSent {
      for group in plan.groups { try storage.removeFromOutbox(group.id) }
    }
    sent.damaged = Array(repair.damaged.sorted().prefix(ExchangeRules.maximumDamaged))
    let own = Set(groups.flatMap(\.versions))
    let request = ExchangeRequest(
      cursor: cursor, cells: cells,
      versions: plan.part == nil ? plan.records : plan.records.filter { own.contains($0.id) },
      contents: sent.contents, wallet: wallet, limit: options.page, damaged: sent.damaged, part: sent.part,
      hasStaged: try storage.hasStaged() || downloads.lacksContents(in: storage), setBack: facts.setBack)
    return (request, sent)
  }

  /// Returns the wallet's offer. From the first one on, a bank may know the chain: which one is noted before, since no
  /// other bank may ever be offered it.
  private func offer(in storage: inout some DeviceStorage) throws -> WalletOffer? {
    guard var state = try storage.wallet() else { return nil }
    let container = try storage.facts().container
    // A wallet of another bank was put aside when the store left its container, so this never happens.
    if let bank = state.bank, bank != container { return nil }
    if !state.isBound || state.bank != container {
      (state.isBound, state.bank) = (true, container)
      try storage.setWallet(state)
    }
    return Wallet(state).offer(upTo: options.walletBatch, knowingGoods: try storage.goods().number)
  }

  /// Marks versions as not offered, because nobody can have received what was sent: a later commit may remove them from
  /// the outbox again. Versions that are also in a group that wasn't sent stay offered.
  func unmarkOffered(_ sent: SentExchange, in storage: inout some DeviceStorage) throws {
    guard !sent.newlyOffered.isEmpty else { return }
    let own = Set(sent.groups.map(\.id))
    let others = Set(
      try storage.outbox(limit: storage.outboxCount()).filter { !own.contains($0.id) }.flatMap(\.versions))
    for id in sent.newlyOffered where !others.contains(id) {
      guard var version = try storage.version(id), !version.acknowledged else { continue }
      version.offered = false
      try storage.putVersion(version)
    }
  }

  /// Does the same for a version that was never sent because the upload of one of its contents failed.
  func unmarkOffered(_ transfer: Transfer, in storage: inout some DeviceStorage) throws {
    let id = transfer.status.version
    guard transfer.marksOffered, var version = try storage.version(id), !version.acknowledged else { return }
    guard try storage.outbox(limit: storage.outboxCount()).count(where: { $0.versions.contains(id) }) == 1 else {
      return
    }
    version.offered = false
    try storage.putVersion(version)
  }

  // MARK: What became of it

  /// Handles the acceptance of what was sent: all of it is in the cloud.
  mutating func accepted(
    _ sent: SentExchange, isLastPage: Bool, _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws {
    for content in sent.contents {
      let depth = try content.base.map { (try storage.cloudDepth(of: $0) ?? options.maximumDepth) + 1 } ?? 0
      try storage.setCloudDepth(depth, of: content.hash)
    }
    // More pages follow: once they are here the groups are sent again, which costs little and leaves no doubt.
    guard isLastPage, !sent.groups.isEmpty else { return }
    var waiting: [Int64: OutboxGroup] = [:]
    for group in try storage.outbox(limit: try storage.outboxCount()) { waiting[group.id] = group }
    for group in sent.groups where waiting[group.id] == group {
      try storage.removeFromOutbox(group.id)
      waiting[group.id] = nil
    }
    // Some may cover more by now than when they were sent: they are sent once more.
    let further = Set(waiting.values.flatMap(\.versions))
    var accepted: [VersionRecord] = []
    for id in sent.versions + sent.skipped where !further.contains(id) {
      guard var version = try storage.version(id), !version.acknowledged else { continue }
      version.acknowledged = true
      try storage.putVersion(version)
      accepted.append(version.record)
    }
    try shortenCovers(after: accepted, waiting: further, in: &storage)
    let acknowledged = accepted.map(\.id)
    if !acknowledged.isEmpty { effects.append(.notify(.acknowledged(acknowledged.sorted()))) }
    try retryAfterDelete(acknowledged, in: storage)
  }

  /// Handles contents that the cloud lacks although it was thought to have them.
  mutating func missing(
    _ hashes: [ContentHash], of sent: SentExchange, _ effects: inout [EngineEffect],
    in storage: inout some DeviceStorage
  ) throws {
    let missing = Set(hashes)
    for hash in hashes {
      try storage.setCloudDepth(nil, of: hash)
      uploads.sendInFull(hash)
    }
    for content in sent.contents {
      if let base = content.base, missing.contains(base) { uploads.sendInFull(content.hash) }
    }
    // A version from history whose contents aren't here either can't be uploaded, and the cloud doesn't need it.
    let outbox = try storage.outbox(limit: storage.outboxCount())
    let waiting = outbox.filter(refusals.isSendable)
    var replaced: Set<VersionID> = []
    for id in waiting.flatMap(\.versions) { replaced.formUnion(try storage.version(id)?.record.covers ?? []) }
    for group in waiting {
      var kept = group
      for id in group.versions {
        guard var version = try storage.version(id), try storage.isCovered(id) else { continue }
        let lost = try version.record.contents.contains { try missing.contains($0) && !storage.hasContent($0) }
        guard lost else { continue }
        // What its checkpoint wrote beside it is sent together with what replaces it, not before, however much waits
        // between the two. That isn't possible while groups are sent one by one.
        if !group.cells.isEmpty, replaced.contains(id), !rejections.isSingle {
          kept.isPiece = true
          continue
        }
        guard kept.removeVersion(id) else { continue }
        version.acknowledged = true
        try storage.putVersion(version)
        try inheritCovers(of: version.record, by: outbox.flatMap(\.versions), in: &storage)
      }
      if kept.cells.isEmpty, kept.versions.isEmpty {
        try storage.removeFromOutbox(group.id)
      } else if kept != group {
        try storage.updateOutbox(kept)
      }
    }
    try refuseNotDownloaded(waiting, lacking: missing, &effects, in: &storage)
  }

  /// Refuses saves whose contents were left in the cloud, which has lost them: another device has them, or nobody. The
  /// cloud sends such a save again when it has all of it.
  private mutating func refuseNotDownloaded(
    _ groups: [OutboxGroup], lacking missing: Set<ContentHash>, _ effects: inout [EngineEffect],
    in storage: inout some DeviceStorage
  ) throws {
    let lost = try storage.notDownloadedRecords().filter { record in
      try record.contents.contains { try missing.contains($0) && !storage.hasContent($0) }
    }
    guard !lost.isEmpty else { return }
    for group in groups {
      let refusals = lost.filter { group.versions.contains($0.id) }.map { record in
        Refusal(
          item: ExchangeRules.item(record.id), reason: .invalid,
          message:
            """
            its bytes were only in the cloud, which no longer has them: another device of the player may still upload \
            them
            """)
      }
      guard !refusals.isEmpty else { continue }
      try refuse(group.id, refusals, &effects, in: &storage)
      // The rest goes on without them.
      rejections.endMissing()
    }
  }

  /// Handles items that the cloud refuses: these stay in the outbox, visibly, and the rest of their groups goes on.
  mutating func refused(
    _ refusals: [Refusal], of sent: SentExchange, _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws {
    if refusals.contains(where: \.reason.isOfAll) {
      return try refuseAll(sent, refusals, &effects, in: &storage)
    }
    // Sent alone, one of them may find room.
    if sent.groups.count > 1, refusals.contains(where: { $0.reason == .quota }) {
      rejections.sendSingly()
      return
    }
    var matched = false
    for group in sent.groups {
      let names = Set(group.cells.map { ExchangeRules.item($0.key) } + group.versions.map { ExchangeRules.item($0) })
      let own = refusals.filter { names.contains($0.item) }
      guard !own.isEmpty else { continue }
      matched = true
      try refuse(group.id, own, &effects, in: &storage)
    }
    guard !matched else { return }
    if sent.groups.count > 1 {
      rejections.sendSingly()
    } else if let group = sent.groups.first {
      try refuse(group.id, refusals, &effects, in: &storage)
    }
  }

  /// Keeps the items of a group that `refusals` name, with the reasons, and moves the rest to a group of its own.
  /// Refusals that name nothing of the group apply to all of it.
  mutating func refuse(
    _ id: Int64, _ refusals: [Refusal], _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws {
    guard var group = try storage.outbox(limit: try storage.outboxCount()).first(where: { $0.id == id }) else { return }
    let items = Set(refusals.map(\.item))
    var rest = OutboxGroup(isPiece: group.isPiece)
    group.isPiece = false
    rest.cells = group.cells.filter { !items.contains(ExchangeRules.item($0.key)) }
    rest.versions = group.versions.filter { !items.contains(ExchangeRules.item($0)) }
    if rest.cells.count < group.cells.count || rest.versions.count < group.versions.count {
      group.cells.removeAll { !items.contains(ExchangeRules.item($0.key)) }
      group.versions.removeAll { !items.contains(ExchangeRules.item($0)) }
      if !rest.cells.isEmpty || !rest.versions.isEmpty, !storage.faults.refusesWholeGroups {
        try storage.appendToOutbox(rest)
      }
    }
    group.refusals = refusals
    try storage.updateOutbox(group)
    let notifications = self.refusals.refused(group, now: now)
    if storage.faults.dropsRefused { try storage.removeFromOutbox(group.id) }
    if !notifications.isEmpty { effects.append(.notify(.refused(notifications))) }
  }

  /// Handles a content that the cloud doesn't take.
  mutating func refuse(
    groupsWith hash: ContentHash, _ failure: TransportFailure, _ effects: inout [EngineEffect],
    in storage: inout some DeviceStorage
  ) throws {
    for group in try storage.outbox(limit: try storage.outboxCount()) where self.refusals.isSendable(group) {
      var refusals: [Refusal] = []
      for id in group.versions {
        guard let version = try storage.version(id), version.record.contents.contains(hash) else { continue }
        let reason: Refusal.Reason = failure.quota == nil ? .tooLarge : .quota
        refusals.append(
          Refusal(item: ExchangeRules.item(id), reason: reason, message: failure.message, quota: failure.quota))
      }
      if !refusals.isEmpty { try refuse(group.id, refusals, &effects, in: &storage) }
    }
  }
}
