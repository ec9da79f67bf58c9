/// How the cloud handles an exchange, in one transaction: it validates, joins and numbers what it receives, and
/// responds with what is new.
///
/// Nothing here waits, reads a clock or the system's random source, or knows a database: the caller passes in the
/// container, the time and the random numbers, and commits or rolls back.
package enum CloudAcceptance {
  /// Contents up to this size travel inside the response; larger ones are requested separately.
  package static let inlineContentBytes = 64 * 1024
  /// Bytes of the contents inside one response.
  package static let inlineTotalBytes = 1024 * 1024
  /// Bytes of cells and records in one response, unless the first alone is larger: what a device can hold in memory and
  /// a request can wait for. A player's month is less.
  package static let answerBytes = 2 * 1024 * 1024
  /// The same for a device that starts from nothing, and for every page that follows another one: each page costs a
  /// round trip.
  package static let catchUpBytes = 4 * 1024 * 1024
  /// Changes that are read at a time: they are in memory together, and each may have 256 KiB.
  private static let changesRead = 64
  /// What an event of the stream carries: changes, their bytes, and the bytes of their contents.
  package static let eventChanges = 64
  package static let eventBytes = 32 * 1024
  /// The most bases that are followed for one content inside a response.
  private static let inlineChain = 32

  /// Handles a request.
  ///
  /// - Parameters:
  ///   - device: The requesting device; nil in a cloud that knows no devices.
  ///   - quota: Bytes that the player may keep; nil for no limit.
  ///   - rules: Those of the container's bank.
  ///   - setBackPolicy: What happens with a device whose store went back to an older state.
  ///   - access: What the device may do: while it may only read, the response says so, nothing that it sends is taken,
  ///     and its wallet gets no reply.
  /// - Throws: ``ExchangeError`` for a request that no correct device sends, or what the storage throws. The caller has
  ///   to roll back then. What a correct device can send and the cloud still can't accept is an outcome in the
  ///   response, not an error.
  package static func exchange(
    _ request: ExchangeRequest, from device: DeviceID? = nil, now: Int64, quota: Int64? = nil,
    rules: BankRules = BankRules(), setBackPolicy: SetBackPolicy = .flag, access: ContainerAccess = .readWrite,
    in storage: inout some ContainerStorage,
    using random: inout some RandomNumberGenerator
  ) throws -> ExchangeResponse {
    try check(request)
    let before = try storage.position()
    let standing = try standing(of: request.cursor, in: storage)
    let setBack = try device.map {
      try noticeSetBack(in: request, isForeign: standing == .foreign, of: $0, now: now, in: &storage)
    }
    let shownMark = shown(setBack?.mark, under: setBackPolicy)
    guard standing == .known else {
      return ExchangeResponse(
        outcome: nil, restart: true, isBehind: try standing == .forgotten && isBehind(device, request.cursor, storage),
        changes: [], contents: [], wallet: nil, cursor: Cursor(epoch: before.epoch, seq: 0, mark: 0), more: true,
        serverTimeMilliseconds: now, setBack: setBack?.told, setBackMark: shownMark,
        isReadOnly: access == .readOnly)
    }

    if let device { try recordReached(request, by: device, in: &storage) }
    var known = Known()
    let outcome: ExchangeOutcome?
    if let refused = refusal(of: request, with: setBack?.mark, under: setBackPolicy, access) {
      outcome = refused
      try release(request.part, after: outcome, in: &storage)
    } else {
      switch try gather(request, now: now, in: &storage) {
      case .held(let parts):
        outcome = .held(parts: parts)
      case .whole(let whole):
        outcome = try take(whole, &known, now, quota, in: &storage, using: &random)
        try release(request.part, after: outcome, in: &storage)
      }
    }
    for hash in request.damaged { try storage.suspectContent(hash) }

    var wallet: WalletReply?
    if let offer = request.wallet, access == .readWrite {
      wallet = try answer(offer, from: device, now, rules, in: &storage, using: &random)
    }
    var response = try answer(request, outcome, known, wallet, now, in: storage)
    if let device, !response.more, storage.faults.countsAnsweredAsReached {
      try storage.setReached(response.cursor.seq, by: device)
    }
    response.wanted = try wanted(of: storage, using: &random)
    (response.setBack, response.setBackMark) = (setBack?.told, shownMark)
    response.isReadOnly = access == .readOnly
    response.quota = try quota.map { QuotaUse(limit: $0, used: try storage.usedBytes()) }
    return response
  }

  // MARK: Taking

  /// What the device knows already: items that it sent and that were stored exactly as it has them.
  private struct Known {
    var cells: Set<CellKey> = []
    var versions: Set<VersionID> = []

    func contains(_ change: CloudChange) -> Bool {
      switch change.item {
      case .cell(let update): cells.contains(update.key)
      case .version(let record): versions.contains(record.id)
      }
    }
  }

  private static func take(
    _ request: ExchangeRequest, _ known: inout Known, _ now: Int64, _ quota: Int64?,
    in storage: inout some ContainerStorage,
    using random: inout some RandomNumberGenerator
  ) throws -> ExchangeOutcome? {
    guard !request.cells.isEmpty || !request.versions.isEmpty else { return nil }
    var plan: Plan
    switch try Plan.make(for: request, in: storage) {
    case .failure(let refused): return refused.outcome
    case .success(let made): plan = made
    }
    if let quota, let refused = try refusal(of: &plan, quota, now, in: &storage) { return refused }
    for content in plan.contents { try put(content, in: &storage, using: &random) }
    for update in plan.cells {
      let stored = try storage.cell(update.key)
      // A device that had this cell's stored state has joined it with what it sent, just as the cloud does, and needs
      // no echo.
      if (stored?.seq ?? 0) <= request.cursor.seq || storage.faults.swallowsEchoes { known.cells.insert(update.key) }
      guard stored?.update != update else { continue }
      let seq = try advance(&storage, using: &random)
      try storage.setCell(SequencedCell(update: update, seq: seq))
    }
    for record in plan.versions {
      var record = record
      let stored = try storage.version(record.id)
      if let stored { record = record.joined(with: stored.record) }
      if record.provisional, try storage.faults.liftsProvisional || !hasOtherHead(record, in: storage) {
        record.provisional = false
      }
      if stored == nil, plan.sent[record.id] == record { known.versions.insert(record.id) }
      for id in record.covers { try storage.markCovered(id) }
      guard stored?.record != record else { continue }
      let seq = try advance(&storage, using: &random)
      try storage.putVersion(SequencedVersion(record: record, seq: seq, accepted: stored?.accepted))
    }
    try freeDeleted(Set(plan.versions.map(\.slot)), in: &storage)
    return .accepted(seq: try storage.position().seq)
  }

  /// Returns whether the slot has a head that this version doesn't replace.
  private static func hasOtherHead(_ record: VersionRecord, in storage: some ContainerStorage) throws -> Bool {
    let covers = Set(record.covers)
    return try storage.heads(of: record.slot).contains { $0 != record.id && !covers.contains($0) }
  }

  /// Advances the container by one change, under a new random mark.
  @discardableResult
  static func advance(
    _ storage: inout some ContainerStorage, using random: inout some RandomNumberGenerator
  ) throws -> UInt64 {
    var position = try storage.position()
    guard position.seq < Cursor.maximumSeq else { throw ExchangeError.tooMany("changes") }
    position.seq += 1
    position.mark = random.next()
    try storage.advance(to: position)
    return position.seq
  }

  // MARK: Answering

  private static func answer(
    _ request: ExchangeRequest, _ outcome: ExchangeOutcome?, _ known: Known, _ wallet: WalletReply?, _ now: Int64,
    in storage: some ContainerStorage
  ) throws -> ExchangeResponse {
    let position = try storage.position()
    let page = try page(after: request, known, in: storage)
    var cursor = position
    if page.more {
      cursor.seq = page.last
      cursor.mark = try storage.mark(of: page.last) ?? 0
      cursor.ahead = Cursor.Mark(seq: position.seq, mark: position.mark)
    }
    return ExchangeResponse(
      outcome: outcome, changes: page.changes,
      contents: try contents(for: page.changes, fromStart: request.cursor.seq == 0, in: storage), wallet: wallet,
      cursor: cursor, more: page.more, serverTimeMilliseconds: now)
  }

  /// The changes that go into one response.
  private struct Page {
    var changes: [CloudChange] = []
    /// The seq that the device reaches with it.
    var last: UInt64
    var more = false
  }

  /// Returns the changes that the device doesn't know yet, as many as it takes. What it sent itself takes no room: a
  /// device that sends five thousand values is done when they are accepted, and needn't page over them.
  private static func page(after request: ExchangeRequest, _ known: Known, in storage: some ContainerStorage) throws
    -> Page
  {
    let limit = min(request.limit, ExchangeRules.maximumChanges)
    let room = room(after: request.cursor)
    var page = Page(last: request.cursor.seq)
    var bytes = 0
    var replaced: [String: Set<VersionID>] = [:]
    while true {
      let changes = try storage.changes(after: page.last, limit: changesRead)
      if changes.isEmpty { return page }
      for var change in changes {
        if !known.contains(change) {
          if case .version(let record) = change.item, try isHistory(record, &replaced, in: storage) {
            change.item = .version(record.withoutLabels)
          }
          bytes += change.size
          if page.changes.count == limit || (!page.changes.isEmpty && bytes > room) {
            page.more = true
            return page
          }
          page.changes.append(change)
        }
        page.last = change.seq
      }
    }
  }

  /// Returns whether a version was replaced, but not by a head: one that a head replaced may still be looked at, or
  /// restored.
  private static func isHistory(
    _ record: VersionRecord, _ replaced: inout [String: Set<VersionID>], in storage: some ContainerStorage
  ) throws -> Bool {
    guard record.withoutLabels != record, try storage.isCovered(record.id) else { return false }
    if replaced[record.slot] == nil {
      replaced[record.slot] = try storage.heads(of: record.slot).reduce(into: []) {
        $0.formUnion(try storage.version($1)?.record.covers ?? [])
      }
    }
    return replaced[record.slot]?.contains(record.id) == false
  }

  /// Returns what changed since `before`, for devices that listen; nil if it is more than an event carries, or if other
  /// things than cells and versions changed.
  package static func step(since before: Cursor, in storage: some ContainerStorage) throws -> CloudEvent.Step? {
    let position = try storage.position()
    guard position.epoch == before.epoch, position.seq > before.seq, position.seq - before.seq <= UInt64(eventChanges)
    else { return nil }
    let changes = try storage.changes(after: before.seq, limit: eventChanges)
    // A change of the bank has a seq and no item.
    guard changes.count == Int(position.seq - before.seq), changes.reduce(0, { $0 + $1.size }) <= eventBytes else {
      return nil
    }
    let contents = try contents(for: changes, fromStart: false, in: storage)
    let fits = contents.reduce(0) { $0 + $1.bytes.count } <= eventBytes
    return CloudEvent.Step(after: before, cursor: position, changes: changes, contents: fits ? contents : [])
  }

  /// Returns small contents of the heads among `changes`, with those of their bases that the device can't have: all of
  /// them if it starts from nothing, else the contents of saves that were replaced since it last fetched. It would have
  /// to request them one after the other.
  private static func contents(
    for changes: [CloudChange], fromStart: Bool, in storage: some ContainerStorage
  ) throws -> [EncodedContent] {
    var heads: [VersionRecord] = []
    var replaced: Set<ContentHash> = []
    for case .version(let record) in changes.map(\.item) {
      if try storage.isCovered(record.id) { replaced.formUnion(record.contents) } else { heads.append(record) }
    }
    var result: [EncodedContent] = []
    var taken: Set<ContentHash> = []
    // Each is looked at once, however many versions name it.
    var seen: Set<ContentHash> = []
    var left = inlineTotalBytes
    for record in heads {
      for hash in record.contents where seen.insert(hash).inserted {
        var chain: [EncodedContent] = []
        var next: ContentHash? = hash
        while let hash = next, !taken.contains(hash), chain.count < inlineChain,
          let content = try storage.content(hash), content.bytes.count <= inlineContentBytes
        {
          chain.append(content)
          next = content.base.flatMap { fromStart || replaced.contains($0) ? $0 : nil }
        }
        let size = chain.reduce(0) { $0 + $1.bytes.count }
        guard size <= left else { continue }
        left -= size
        // Bases first, so that each can be decoded when it is read.
        for content in chain.reversed() where taken.insert(content.hash).inserted { result.append(content) }
      }
    }
    return result
  }

  // MARK: Checking

  /// What a container knows of a cursor.
  private enum Standing {
    /// It was received from this container as it is.
    case known
    /// It was received from a state that a backup has replaced.
    case foreign
    /// It is so old that its mark was forgotten.
    case forgotten
  }

  /// Returns false if it is certain that `cursor` was received from a state of this container that a backup has
  /// replaced.
  package static func isOfThisHistory(_ cursor: Cursor, in storage: some ContainerStorage) throws -> Bool {
    try standing(of: cursor, in: storage) != .foreign
  }

  private static func standing(of cursor: Cursor, in storage: some ContainerStorage) throws -> Standing {
    let position = try storage.position()
    func standing(_ seq: UInt64, _ mark: UInt64) throws -> Standing {
      guard seq <= position.seq else { return .foreign }
      guard let known = try storage.mark(of: seq) else { return .forgotten }
      return known == mark ? .known : .foreign
    }
    if storage.faults.ignoresMarks { return .known }
    if let ahead = cursor.ahead, try standing(ahead.seq, ahead.mark) != .known { return .foreign }
    if cursor.seq == 0 { return .known }
    guard cursor.epoch == position.epoch else { return .foreign }
    return try standing(cursor.seq, cursor.mark)
  }

  /// Returns whether a cursor without a mark is certain to be an old one of this history: the device has been as far
  /// here, and may have been set back to a backup since. What it had there is in the cloud or was replaced.
  private static func isBehind(
    _ device: DeviceID?, _ cursor: Cursor, _ storage: some ContainerStorage
  ) throws -> Bool {
    guard let device, let reached = try storage.reached()[device] else { return false }
    return cursor.seq <= reached
  }

  /// Checks what can be checked of a request by itself, before anything is read for it.
  ///
  /// - Throws: ``ExchangeError`` for what no correct device sends, whatever its game does.
  package static func check(_ request: ExchangeRequest) throws {
    guard request.protocolVersion == ExchangeRequest.currentProtocol else {
      throw ExchangeError.unsupportedProtocol(request.protocolVersion)
    }
    guard request.cursor.seq <= Cursor.maximumSeq, request.cursor.epoch <= Cursor.maximumSeq,
      request.cursor.ahead.map({ $0.seq <= Cursor.maximumSeq }) ?? true
    else {
      throw ExchangeError.malformed("the cursor is out of range")
    }
    if let setBack = request.setBack {
      guard setBack.to > 0, setBack.to < setBack.from, setBack.from <= Cursor.maximumSeq else {
        throw ExchangeError.malformed("the numbers of a set-back store are out of range")
      }
    }
    guard request.part.map({ (0..<ExchangeRules.maximumOfferParts).contains($0.number) }) ?? true else {
      throw ExchangeError.malformed("the number of a part is out of range")
    }
    guard request.limit > 0 else { throw ExchangeError.malformed("the limit has to be at least 1") }
    for (what, count, limit) in request.counts where count > limit {
      throw ExchangeError.exceeds(what, count: count, limit: limit)
    }
    for content in request.contents {
      guard content.length >= 0, content.length <= ExchangeRules.maximumContentBytes else {
        throw ExchangeError.malformed("the length of the content \(content.hash) is out of range")
      }
      guard content.bytes.count <= ExchangeRules.maximumInlineBytes else {
        throw ExchangeError.malformed("the content \(content.hash) is too large to be sent inside an exchange")
      }
      guard content.base != content.hash else {
        throw ExchangeError.malformed("the content \(content.hash) is its own base")
      }
    }
  }
}

extension CloudChange {
  /// About how many bytes it takes in a message, without contents.
  package var size: Int {
    switch item {
    case .cell(let update): update.size
    case .version(let record): record.size
    }
  }
}
