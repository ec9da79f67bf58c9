// From the outbox to the wire.
extension DeviceEngine {
  enum Sending {
    case upload(EncodedContent, depth: Int)
    case exchange(ExchangeRequest, SentExchange)
  }

  /// Whether an exchange would say anything.
  func hasWork(in storage: some DeviceStorage) throws -> Bool {
    if exchangeDue || announced > 0 { return true }
    if try oldestGroups(in: storage).contains(where: { $0.refusals.isEmpty }) { return true }
    return try hasWalletNews(in: storage)
  }

  private func hasWalletNews(in storage: some DeviceStorage) throws -> Bool {
    try !walletPaused && storage.wallet().map { Wallet($0).hasNews } ?? false
  }

  /// The groups at the front of the outbox; all of them where refused ones fill it.
  private func oldestGroups(in storage: some DeviceStorage) throws -> [OutboxGroup] {
    let groups = try storage.outbox(limit: Self.outboxRead)
    guard groups.count == Self.outboxRead, !groups.contains(where: { $0.refusals.isEmpty }) else { return groups }
    return try storage.outbox(limit: try storage.outboxCount())
  }

  /// The next request that brings the outbox on; nil if there is nothing to send and no exchange is due.
  mutating func nextSending(
    _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws -> Sending? {
    // Each round but the last takes a group out of the way.
    for _ in 0...Self.outboxRead {
      let groups = try selectGroups(in: &storage)
      guard try !groups.isEmpty || exchangeDue || announced > 0 || hasWalletNews(in: storage) else { return nil }
      switch try assemble(groups, in: &storage) {
      case .request(let request, let sent):
        return .exchange(request, sent)
      case .upload(let content, let depth):
        return .upload(content, depth: depth)
      case .lost(let version, let hash):
        let refusal = Refusal(
          item: ExchangeRules.item(version), reason: .invalid,
          message: "its content \(hash) is damaged or gone on this device")
        for group in groups where group.versions.contains(version) {
          try refuse(group.id, [refusal], &effects, in: &storage)
        }
      }
    }
    return nil
  }

  /// The oldest groups that go together, after groups that nobody waits for any more are gone.
  private mutating func selectGroups(in storage: inout some DeviceStorage) throws -> [OutboxGroup] {
    var selected: [OutboxGroup] = []
    var cells = 0
    var versions = 0
    var bytes = 0
    for group in try oldestGroups(in: storage) {
      if try isSettled(group, in: storage) {
        try storage.removeFromOutbox(group.id)
        continue
      }
      guard group.refusals.isEmpty else { continue }
      cells += group.cells.count
      versions += group.versions.count
      bytes += try size(of: group, in: storage)
      let fits = cells <= options.maximumCells && versions <= options.maximumVersions && bytes <= options.maximumBytes
      guard selected.isEmpty || (fits && !single) else { break }
      selected.append(group)
    }
    if selected.isEmpty { single = false }
    return selected
  }

  private func size(of group: OutboxGroup, in storage: some DeviceStorage) throws -> Int {
    var bytes = group.cells.reduce(0) { $0 + $1.size }
    for id in group.versions { bytes += try storage.version(id)?.record.size ?? 0 }
    return bytes
  }

  private func isSettled(_ group: OutboxGroup, in storage: some DeviceStorage) throws -> Bool {
    guard group.cells.isEmpty else { return false }
    for id in group.versions {
      guard let version = try storage.version(id) else { continue }
      if version.acknowledged { continue }
      // A refused save that a later one replaces is of no more interest; the later one names it.
      if try !group.refusals.isEmpty && storage.isCovered(id) { continue }
      return false
    }
    return true
  }

  // MARK: The request

  private enum Assembly {
    case request(ExchangeRequest, SentExchange)
    case upload(EncodedContent, depth: Int)
    case lost(VersionID, ContentHash)
  }

  private mutating func assemble(_ groups: [OutboxGroup], in storage: inout some DeviceStorage) throws -> Assembly {
    let cursor = try storage.facts().cursor
    var sent = SentExchange(cursor: cursor, groups: groups)
    var records: [VersionRecord] = []
    var covered: Set<VersionID> = []
    for id in groups.flatMap(\.versions).reversed() {
      guard let version = try storage.version(id) else { continue }
      // It stays out only if all that it replaces is named without it: a copy of this store, made while it was open, may have
      // sent what was replaced before it ever left here.
      if covered.contains(id), version.record.covers.allSatisfy(covered.contains) {
        sent.skipped.append(id)
        continue
      }
      covered.formUnion(version.record.covers)
      records.append(version.record)
    }
    records.reverse()

    var left = options.inlineBytes
    var planned: Set<ContentHash> = []
    for record in records where !covered.contains(record.id) {
      // By the older version.
      var alignments: [VersionID: [ContentHash?]] = [:]
      for (index, hash) in record.contents.enumerated() where planned.insert(hash).inserted {
        guard try storage.cloudDepth(of: hash) == nil else { continue }
        guard try storage.hasContent(hash) else {
          // History needs no contents where the cloud knows what replaced it; if it doesn't, it will say so.
          if try storage.isCovered(record.id) { continue }
          return .lost(record.id, hash)
        }
        let base = sendFull.contains(hash) ? nil : try base(for: hash, at: index, of: record, &alignments, in: storage)
        let content = try storage.encoded(hash, against: base?.hash)
        guard content.bytes.count <= left else {
          return .upload(content, depth: content.base == nil ? 0 : (base?.depth ?? 0) + 1)
        }
        left -= content.bytes.count
        sent.contents.append(content)
      }
    }

    for record in records {
      guard var version = try storage.version(record.id), !version.offered else { continue }
      version.offered = true
      try storage.putVersion(version)
      sent.newlyOffered.append(record.id)
    }
    sent.versions = records.map(\.id)
    let cells = groups.reduce(into: [CellUpdate]()) { $0 = CellUpdate.joined($0, $1.cells) }
    // A rejected request is searched for its cause piece by piece.
    let wallet = single && !groups.isEmpty || walletPaused ? nil : try storage.wallet().map { Wallet($0).offer }
    sent.hasWallet = wallet != nil
    if planted.contains(.forgetWhenSent) {
      for group in groups { try storage.removeFromOutbox(group.id) }
    }
    let request = ExchangeRequest(
      cursor: cursor, cells: cells, versions: records, contents: sent.contents, wallet: wallet, limit: options.page)
    return .request(request, sent)
  }

  /// The nearest content of the version's lineage that the cloud has and can decode quickly.
  private func base(
    for hash: ContentHash, at index: Int, of record: VersionRecord, _ alignments: inout [VersionID: [ContentHash?]],
    in storage: some DeviceStorage
  ) throws -> (hash: ContentHash, depth: Int)? {
    var seen: Set<VersionID> = [record.id]
    var next = record.covers
    var looked = 0
    while !next.isEmpty {
      var further: [VersionID] = []
      for id in next where seen.insert(id).inserted {
        looked += 1
        guard looked <= Self.maximumLookBack else { return nil }
        guard let older = try storage.version(id)?.record else { continue }
        let alignment = try alignments[id] ?? ContentAlignment(of: storage.parts(of: record), in: storage.parts(of: older)).bases
        alignments[id] = alignment
        let candidate = alignment[index]
        if let candidate, candidate != hash, let depth = try storage.cloudDepth(of: candidate), depth < options.maximumDepth,
          try storage.hasContent(candidate)
        {
          return (candidate, depth)
        }
        further += older.covers
      }
      next = further
    }
    return nil
  }

  func unmarkOffered(_ ids: [VersionID], in storage: inout some DeviceStorage) throws {
    for id in ids {
      guard var version = try storage.version(id), !version.acknowledged else { continue }
      version.offered = false
      try storage.putVersion(version)
    }
  }

  // MARK: What became of it

  /// All that went is in the cloud.
  func accepted(
    _ sent: SentExchange, certain: Bool, _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws {
    for content in sent.contents {
      let depth = try content.base.map { (try storage.cloudDepth(of: $0) ?? options.maximumDepth) + 1 } ?? 0
      try storage.setCloudDepth(depth, of: content.hash)
    }
    // Pages still follow: once they are here the groups go again, which costs little and leaves no doubt.
    guard certain, !sent.groups.isEmpty else { return }
    var waiting: [Int64: OutboxGroup] = [:]
    for group in try storage.outbox(limit: try storage.outboxCount()) { waiting[group.id] = group }
    for group in sent.groups where waiting[group.id] == group { try storage.removeFromOutbox(group.id) }
    var acknowledged: [VersionID] = []
    for id in sent.versions + sent.skipped {
      guard var version = try storage.version(id), !version.acknowledged else { continue }
      version.acknowledged = true
      try storage.putVersion(version)
      acknowledged.append(id)
    }
    if !acknowledged.isEmpty { effects.append(.news(.acknowledged(acknowledged.sorted()))) }
  }

  /// The cloud lacks contents that were thought to be there.
  mutating func missing(
    _ hashes: [ContentHash], of sent: SentExchange, _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws {
    let missing = Set(hashes)
    for hash in hashes {
      try storage.setCloudDepth(nil, of: hash)
      sendFull.insert(hash)
    }
    for content in sent.contents {
      if let base = content.base, missing.contains(base) { sendFull.insert(content.hash) }
    }
    // A version from history whose contents aren't here either can't be given to the cloud, and isn't needed there.
    for group in try storage.outbox(limit: Self.outboxRead) where group.refusals.isEmpty {
      var kept = group
      for id in group.versions {
        guard var version = try storage.version(id), try storage.isCovered(id) else { continue }
        let lost = try version.record.contents.contains { try missing.contains($0) && !storage.hasContent($0) }
        guard lost, kept.removeVersion(id) else { continue }
        version.acknowledged = true
        try storage.putVersion(version)
      }
      if kept != group { try storage.updateOutbox(kept) }
    }
  }

  /// The cloud refuses items: these stay, visibly, and the rest of their groups goes on.
  mutating func refused(
    _ refusals: [Refusal], of sent: SentExchange, _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws {
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
      single = true
    } else if let group = sent.groups.first {
      try refuse(group.id, refusals, &effects, in: &storage)
    }
  }

  /// Keeps what `refusals` name of a group, with the reasons, and lets the rest go on as a group of its own. Refusals that
  /// name nothing of the group hold for all of it.
  mutating func refuse(
    _ id: Int64, _ refusals: [Refusal], _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws {
    guard var group = try storage.outbox(limit: try storage.outboxCount()).first(where: { $0.id == id }) else { return }
    let items = Set(refusals.map(\.item))
    var rest = OutboxGroup()
    rest.cells = group.cells.filter { !items.contains(ExchangeRules.item($0.key)) }
    rest.versions = group.versions.filter { !items.contains(ExchangeRules.item($0)) }
    if rest.cells.count < group.cells.count || rest.versions.count < group.versions.count {
      group.cells.removeAll { !items.contains(ExchangeRules.item($0.key)) }
      group.versions.removeAll { !items.contains(ExchangeRules.item($0)) }
      if !rest.cells.isEmpty || !rest.versions.isEmpty { try storage.appendToOutbox(rest) }
    }
    group.refusals = refusals
    try storage.updateOutbox(group)
    if planted.contains(.dropRefused) { try storage.removeFromOutbox(group.id) }
    effects.append(.news(.refused(refusals)))
  }

  /// The cloud doesn't take this content.
  mutating func refuse(
    groupsWith hash: ContentHash, _ message: String, _ effects: inout [EngineEffect],
    in storage: inout some DeviceStorage
  ) throws {
    for group in try storage.outbox(limit: try storage.outboxCount()) where group.refusals.isEmpty {
      var refusals: [Refusal] = []
      for id in group.versions {
        guard let version = try storage.version(id), version.record.contents.contains(hash) else { continue }
        refusals.append(Refusal(item: ExchangeRules.item(id), reason: .tooLarge, message: message))
      }
      if !refusals.isEmpty { try refuse(group.id, refusals, &effects, in: &storage) }
    }
  }
}
