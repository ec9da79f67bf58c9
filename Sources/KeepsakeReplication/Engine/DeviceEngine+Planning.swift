// What of the outbox goes next.
extension DeviceEngine {
  /// Works out what can go now. Groups whose contents have to be put first wait, and later ones that have nothing to do with them don't.
  ///
  /// A store that offers all that it holds does so in one piece: all that waits goes together, and waits together for contents.
  mutating func planSending(
    _ effects: inout [EngineEffect], in storage: inout some DeviceStorage, using random: inout some RandomNumberGenerator
  ) throws -> SendingPlan {
    // Each round but the last takes a group out of the way.
    for _ in 0...Self.outboxRead {
      let groups = try sendableGroups(in: &storage)
      if groups.isEmpty { (single, large) = (false, [:]) }
      let isOffer = !single && groups.contains(where: \.isPiece)
      if let begun = offering, try !isOffer || !isCurrent(begun, among: groups, in: storage) { offering = nil }
      switch try plan(groups, isOffer: isOffer, in: storage, using: &random) {
      case .plan(let plan):
        return plan
      case .lost(let version, let hash):
        let refusal = Refusal(
          item: ExchangeRules.item(version), reason: .invalid,
          message: "its content \(hash) is damaged or gone on this device")
        for group in groups where group.versions.contains(version) {
          try refuse(group.id, [refusal], &effects, in: &storage)
        }
      }
    }
    return SendingPlan()
  }

  /// The groups at the front of the outbox; all of them where refused ones fill it.
  private func oldestGroups(in storage: some DeviceStorage) throws -> [OutboxGroup] {
    let groups = try storage.outbox(limit: Self.outboxRead)
    let isPart = groups.contains(where: isSendable) && !groups.contains(where: \.isPiece)
    guard groups.count == Self.outboxRead, !isPart else { return groups }
    return try storage.outbox(limit: try storage.outboxCount())
  }

  /// The oldest groups that the cloud hasn't refused, after groups that nobody waits for any more are gone.
  private mutating func sendableGroups(in storage: inout some DeviceStorage) throws -> [OutboxGroup] {
    var groups: [OutboxGroup] = []
    var refused: [EngineRefusal] = []
    let isDue = isSecondTryDue
    for group in try oldestGroups(in: storage) {
      if try isSettled(group, in: storage) {
        try storage.removeFromOutbox(group.id)
        continue
      }
      refused += try described(group, in: storage)
      if isDue, lacksRoom(group) { retry(group) }
      if isSendable(group) { groups.append(group) }
    }
    self.refused = refused
    return groups
  }

  private func isSettled(_ group: OutboxGroup, in storage: some DeviceStorage) throws -> Bool {
    guard group.cells.isEmpty else { return false }
    for id in group.versions {
      guard let version = try storage.version(id) else { continue }
      if version.acknowledged { continue }
      // A refused save that a later one replaces is of no more interest, if that says what it said.
      if try !group.refusals.isEmpty && isNamed(version.record, in: storage) { continue }
      return false
    }
    return true
  }

  /// Whether a head says all that a replaced save said. Saves made since they were refused do; those of a store that offers everything again
  /// name no more than the ones right before them, and the cloud may hear of what those replaced from nobody else.
  private func isNamed(_ record: VersionRecord, in storage: some DeviceStorage) throws -> Bool {
    let said = Set(record.covers + [record.id])
    return try storage.heads(of: record.slot).contains { id in
      try storage.version(id).map { said.isSubset(of: $0.record.covers) } ?? false
    }
  }

  /// The oldest of these that go together.
  func fitting(_ groups: [OutboxGroup], _ known: [VersionID: VersionRecord]) -> [OutboxGroup] {
    var selected: [OutboxGroup] = []
    var (cells, versions, bytes) = (0, 0, 0)
    for group in groups {
      cells += group.cells.count
      versions += group.versions.count
      bytes += group.size(known)
      let fits = cells <= options.maximumCells && versions <= options.maximumVersions && bytes <= options.maximumBytes
      guard selected.isEmpty || (fits && !single) else { break }
      selected.append(group)
    }
    return selected
  }

  // MARK: Contents

  private enum Planning {
    case plan(SendingPlan)
    case lost(VersionID, ContentHash)
  }

  /// Where a content goes.
  private enum Place {
    case inside(EncodedContent)
    case upload(PlannedUpload)
    /// It is on its way already, or is better begun when something else has arrived.
    case waits
  }

  private mutating func plan(
    _ groups: [OutboxGroup], isOffer: Bool, in storage: some DeviceStorage, using random: inout some RandomNumberGenerator
  ) throws -> Planning {
    var known: [VersionID: VersionRecord] = [:]
    for id in (groups + (offering?.groups ?? [])).flatMap(\.versions) where known[id] == nil { known[id] = try storage.version(id)?.record }
    let whole = isOffer ? offered(groups, known) : []
    var waiting = WaitingGroups()
    var uploads: [PlannedUpload] = []
    var encoded: [ContentHash: EncodedContent] = [:]
    var alignments: Alignments = [:]
    var notDownloaded: Set<VersionID>?
    // Each round but the last finds one more group that waits.
    while true {
      let fitting = isOffer ? (waiting.ids.isEmpty ? whole : []) : fitting(waiting.left(of: groups, known), known)
      var plan = SendingPlan(storage.faults.splitsGroups ? Array(fitting.prefix(1)) : fitting, known)
      var left = options.inlineBytes
      var placed: Set<ContentHash> = []
      var unplaced: Set<ContentHash> = []
      var newlyWaiting: [OutboxGroup] = []
      for group in plan.groups {
        var inside: [EncodedContent] = []
        var waits = false
        for record in group.versions.compactMap({ known[$0] }) where plan.visible.contains(record.id) {
          var own: [PlannedUpload] = []
          var length = 0
          for (index, hash) in record.contents.enumerated() where !placed.contains(hash) {
            if unplaced.contains(hash) {
              waits = true
              continue
            }
            guard try storage.cloudDepth(of: hash) == nil else { continue }
            guard try storage.hasContent(hash) else {
              // History needs no contents where the cloud knows what replaced it; if it doesn't, it will say so.
              // Neither does a save of which only the record is here: its contents are there, or were.
              let left = try notDownloaded ?? Set(storage.notDownloadedVersions())
              notDownloaded = left
              if left.contains(record.id) { continue }
              guard try storage.isCovered(record.id) else { return .lost(record.id, hash) }
              if waiting.covers.contains(record.id) { waits = true }
              continue
            }
            let room = left - inside.reduce(0) { $0 + $1.bytes.count }
            switch try place(hash, index, of: record, room: room, uploads + own, &encoded, &alignments, in: storage) {
            case .inside(let content):
              inside.append(content)
              placed.insert(hash)
              continue
            case .upload(let upload):
              own.append(upload)
            case .waits:
              break
            }
            unplaced.insert(hash)
            length += try storage.contentLength(hash) ?? 0
            waits = true
          }
          // What replaces it is put already, and says all that is to be seen.
          if waiting.covers.contains(record.id) { continue }
          uploads += own.map { upload in
            var upload = upload
            upload.lengthInAll = length
            return upload
          }
        }
        if waits {
          newlyWaiting.append(group)
          placed.subtract(inside.map(\.hash))
        } else {
          left -= inside.reduce(0) { $0 + $1.bytes.count }
          plan.contents += inside
        }
      }
      guard !newlyWaiting.isEmpty else {
        plan.uploads = uploads
        plan.isOfferWaiting = isOffer && plan.groups.isEmpty
        if isOffer, !plan.groups.isEmpty { plan.part = nextPart(of: plan.groups, known, using: &random) }
        return .plan(plan)
      }
      for group in newlyWaiting { waiting.insert(group, known) }
    }
  }

  private mutating func place(
    _ hash: ContentHash, _ index: Int, of record: VersionRecord, room: Int, _ planned: [PlannedUpload],
    _ encoded: inout [ContentHash: EncodedContent], _ alignments: inout Alignments, in storage: some DeviceStorage
  ) throws -> Place {
    if transfers.contains(where: { $0.isUpload && $0.hash == hash }) || planned.contains(where: { $0.hash == hash }) { return .waits }
    let underWay = Set(transfers.filter(\.isUpload).map(\.hash)).union(planned.map(\.hash))
    let length = try storage.contentLength(hash) ?? 0
    var upload = PlannedUpload(hash: hash, version: record, index: index, bytes: 0, depth: 0, length: length)
    if let known = large[hash] {
      if let other = known.waitsFor {
        if underWay.contains(other) { return .waits }
      } else if known.bytes > room {
        upload.bytes = known.bytes
        return .upload(upload)
      }
    }
    guard canEncode(length) else { return .waits }
    let base = sendFull.contains(hash) ? Base() : try base(for: hash, at: index, of: record, underWay, &alignments, in: storage)
    let content = try encoded[hash] ?? storage.encoded(hash, against: base.known?.hash)
    large[hash] = nil
    if content.bytes.count <= room {
      encoded[hash] = content
      return .inside(content)
    }
    hasEncodedLarge = hasEncodedLarge || length > Self.largeContentBytes
    // Once the one that is under way is in the cloud this is a delta, most likely a small one.
    let waitsFor = content.bytes.count > options.inlineBytes ? base.underWay : nil
    large[hash] = LargeContent(bytes: content.bytes.count, waitsFor: waitsFor)
    if waitsFor != nil { return .waits }
    (upload.bytes, upload.depth) = (content.bytes.count, content.base == nil ? 0 : (base.known?.depth ?? 0) + 1)
    upload.content = content
    return .upload(upload)
  }

  /// Whether there is time in this step for a content of this length. Each step that says no has learned the size of another one, or begun it.
  private mutating func canEncode(_ length: Int) -> Bool {
    guard hasEncodedLarge, length > Self.largeContentBytes else { return true }
    continues = true
    return false
  }

  // MARK: Bases

  /// By the version that is to be encoded, and by the older one.
  private typealias Alignments = [VersionID: [VersionID: [ContentHash?]]]

  private struct Base {
    /// The nearest content that the cloud has.
    var known: (hash: ContentHash, depth: Int)?
    /// A nearer one that is on its way there.
    var underWay: ContentHash?
  }

  /// The nearest contents of the version's lineage that the cloud has, or will have, and can decode quickly.
  private func base(
    for hash: ContentHash, at index: Int, of record: VersionRecord, _ underWay: Set<ContentHash>, _ alignments: inout Alignments,
    in storage: some DeviceStorage
  ) throws -> Base {
    var base = Base()
    var seen: Set<VersionID> = [record.id]
    var next = record.covers
    var looked = 0
    while !next.isEmpty {
      var further: [VersionID] = []
      for id in next where seen.insert(id).inserted {
        looked += 1
        guard looked <= Self.maximumLookBack else { return base }
        guard let older = try storage.version(id)?.record else { continue }
        let bases = try alignments[record.id]?[id] ?? ContentAlignment(of: storage.parts(of: record), in: storage.parts(of: older)).bases
        alignments[record.id, default: [:]][id] = bases
        let candidate = bases[index]
        further += older.covers
        guard let candidate, candidate != hash else { continue }
        if let depth = try storage.cloudDepth(of: candidate), depth < options.maximumDepth, try storage.hasContent(candidate) {
          base.known = (candidate, depth)
          return base
        }
        if base.underWay == nil, underWay.contains(candidate) { base.underWay = candidate }
      }
      next = further
    }
    return base
  }

  // MARK: Transfers

  /// Begins what may go side by side: as many up as down, as long as there are both.
  mutating func startTransfers(
    _ uploads: [PlannedUpload], _ effects: inout [EngineEffect], in storage: inout some DeviceStorage,
    using random: inout some RandomNumberGenerator
  ) throws {
    var uploads = uploads[...]
    var downloads = complete ? try wantedDownloads(in: storage)[...] : []
    while transfers.count < options.parallelTransfers {
      let (up, down) = (uploads.first { hasRoom($0.bytes) }, downloads.first { hasRoom($0.length) })
      let isUpload = up != nil && (down == nil || transfers.count(where: \.isUpload) < transfers.count { !$0.isUpload })
      if isUpload, let up {
        uploads.removeAll { $0.hash == up.hash }
        if let ready = try encode(up, in: storage) { try begin(ready.upload, ready.content, &effects, in: &storage, using: &random) }
      } else if let down {
        downloads.removeAll { $0.hash == down.hash }
        begin(down, &effects, using: &random)
      } else {
        return
      }
    }
  }

  private func hasRoom(_ bytes: Int) -> Bool {
    let inFlight = transfers.reduce(0) { $0 + $1.bytes }
    return transfers.isEmpty || bytes <= options.smallTransferBytes || inFlight + bytes <= options.maximumTransferBytes
  }

  /// Of one whose size was known before, what is to be sent; nil if this step has done enough.
  private mutating func encode(
    _ upload: PlannedUpload, in storage: some DeviceStorage
  ) throws -> (upload: PlannedUpload, content: EncodedContent)? {
    if let content = upload.content { return (upload, content) }
    // The game let go of what the cloud asked for.
    guard try storage.hasContent(upload.hash) else {
      wanted.removeAll { $0.hash == upload.hash }
      return nil
    }
    guard canEncode(upload.length) else { return nil }
    hasEncodedLarge = hasEncodedLarge || upload.length > Self.largeContentBytes
    var alignments: Alignments = [:]
    let isFull = sendFull.contains(upload.hash)
    let base = isFull ? Base() : try base(for: upload.hash, at: upload.index, of: upload.version, [], &alignments, in: storage)
    let content = try storage.encoded(upload.hash, against: base.known?.hash)
    var upload = upload
    upload.depth = content.base == nil ? 0 : (base.known?.depth ?? 0) + 1
    return (upload, content)
  }

  private mutating func begin(
    _ upload: PlannedUpload, _ content: EncodedContent, _ effects: inout [EngineEffect], in storage: inout some DeviceStorage,
    using random: inout some RandomNumberGenerator
  ) throws {
    let request = nextRequest(using: &random)
    var marked = false
    if var version = try storage.version(upload.version.id), !version.offered {
      version.offered = true
      try storage.putVersion(version)
      marked = true
    }
    let status = EngineTransfer(
      request: request, isUpload: true, content: upload.hash, slot: upload.version.slot, version: upload.version.id,
      length: upload.length, lengthInAll: upload.lengthInAll)
    transfers.append(
      Transfer(
        request: request, isUpload: true, hash: upload.hash, bytes: content.bytes.count, base: content.base, depth: upload.depth,
        marked: marked, status: status))
    effects.append(.upload(request: request, content))
  }

  private mutating func begin(_ need: Need, _ effects: inout [EngineEffect], using random: inout some RandomNumberGenerator) {
    let request = nextRequest(using: &random)
    let lengths = (needs ?? []).filter { $0.version == need.version }.map(\.length)
    let status = EngineTransfer(
      request: request, isUpload: false, content: need.hash, slot: need.slot, version: need.version, length: need.length,
      lengthInAll: lengths.reduce(0, +))
    transfers.append(Transfer(request: request, isUpload: false, hash: need.hash, bytes: need.length, status: status))
    effects.append(.download(request: request, need.hash))
  }
}
