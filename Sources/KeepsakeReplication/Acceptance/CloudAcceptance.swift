/// What the cloud makes of an exchange, in one transaction: validates, joins, numbers, and answers with what is new.
///
/// Nothing here waits, draws from the system or knows a database: the caller hands in the container, the time and the
/// random numbers, and commits or rolls back.
package enum CloudAcceptance {
  /// Contents up to this size travel inside the answer; larger ones are asked for.
  package static let inlineContentBytes = 64 * 1024
  /// Inlined contents in one answer.
  package static let inlineTotalBytes = 1024 * 1024
  /// Cells and records in one answer, unless the first alone is more: what a device can hold and a request can wait for.
  package static let answerBytes = 2 * 1024 * 1024
  /// Bases that are followed for one inlined content when a device starts from nothing.
  private static let inlineChain = 32

  /// Answers `request`.
  ///
  /// - Throws: ``ExchangeError`` for a request that no correct device sends, or what the storage throws. The caller rolls
  ///   back then. What a correct device can send and the cloud still can't take is an outcome of the answer, not an error.
  package static func exchange(
    _ request: ExchangeRequest, now: Int64, in storage: inout some ContainerStorage,
    using random: inout some RandomNumberGenerator
  ) throws -> ExchangeResponse {
    try exchange(request, now: now, planted: [], in: &storage, using: &random)
  }

  /// For tests of the tests: an acceptance with faults.
  package static func exchange(
    _ request: ExchangeRequest, now: Int64, planted: Set<PlantedBug>, in storage: inout some ContainerStorage,
    using random: inout some RandomNumberGenerator
  ) throws -> ExchangeResponse {
    try check(request)
    let before = try storage.position()
    guard try isOfThisHistory(request.cursor, before, in: storage) else {
      return ExchangeResponse(
        outcome: .nothing, restart: true, changes: [], contents: [], wallet: nil,
        cursor: Cursor(epoch: before.epoch, seq: 0, mark: 0), more: true, serverTimeMilliseconds: now)
    }

    var known = Known()
    let outcome = try take(request, planted, &known, in: &storage, using: &random)

    var wallet: WalletReply?
    if let offer = request.wallet {
      let state = try storage.bank()
      var bank = Bank(state)
      wallet = try bank.answer(offer, in: &storage)
      if bank.state != state {
        try storage.setBank(bank.state)
        // Nothing to page through, but the others should come and look.
        try advance(&storage, using: &random)
      }
    }
    return try answer(request, outcome, known, wallet, now, in: storage)
  }

  // MARK: Taking

  /// What the device knows without being told: items that it sent and that were stored as it has them.
  private struct Known {
    var cells: Set<CellKey> = []
    var versions: Set<VersionID> = []
  }

  private static func take(
    _ request: ExchangeRequest, _ planted: Set<PlantedBug>, _ known: inout Known, in storage: inout some ContainerStorage,
    using random: inout some RandomNumberGenerator
  ) throws -> ExchangeOutcome {
    guard !request.cells.isEmpty || !request.versions.isEmpty else { return .nothing }
    let plan: Plan
    switch try Plan.make(for: request, in: storage) {
    case .failure(let refused): return refused.outcome
    case .success(let made): plan = made
    }
    for content in plan.contents { try storage.putContent(content) }
    for update in plan.cells {
      let stored = try storage.cell(update.key)
      // A device that held this cell as it was has joined what it sent, just as we do, and needs no echo.
      if (stored?.seq ?? 0) <= request.cursor.seq || planted.contains(.swallowEcho) { known.cells.insert(update.key) }
      guard stored?.update != update else { continue }
      let seq = try advance(&storage, using: &random)
      try storage.setCell(SequencedCell(update: update, seq: seq))
    }
    for record in plan.versions {
      var record = record
      let stored = try storage.version(record.id)
      if let stored {
        record.covers = Set(record.covers).union(stored.record.covers).sorted()
        record.provisional = record.provisional && stored.record.provisional
      }
      if record.provisional, try !hasOtherHead(record, in: storage) { record.provisional = false }
      if stored == nil, plan.sent[record.id] == record { known.versions.insert(record.id) }
      for id in record.covers { try storage.markCovered(id) }
      guard stored?.record != record else { continue }
      let seq = try advance(&storage, using: &random)
      try storage.putVersion(SequencedVersion(record: record, seq: seq))
    }
    return .accepted(seq: try storage.position().seq)
  }

  /// Whether the slot has a head that this version doesn't replace.
  private static func hasOtherHead(_ record: VersionRecord, in storage: some ContainerStorage) throws -> Bool {
    let covers = Set(record.covers)
    return try storage.heads(of: record.slot).contains { $0 != record.id && !covers.contains($0) }
  }

  /// Moves the container one change on, under a new random mark.
  @discardableResult
  private static func advance(
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
    _ request: ExchangeRequest, _ outcome: ExchangeOutcome, _ known: Known, _ wallet: WalletReply?, _ now: Int64,
    in storage: some ContainerStorage
  ) throws -> ExchangeResponse {
    let position = try storage.position()
    let limit = min(request.limit, ExchangeRules.maximumChanges)
    var page = try storage.changes(after: request.cursor.seq, limit: limit + 1)
    var kept = 0
    var bytes = 0
    for change in page {
      bytes += change.size
      if kept == limit || (kept > 0 && bytes > answerBytes) { break }
      kept += 1
    }
    let more = page.count > kept
    page.removeLast(page.count - kept)
    var cursor = position
    if more, let last = page.last?.seq {
      cursor.seq = last
      cursor.mark = try storage.mark(of: last) ?? 0
    }
    let changes = page.filter { change in
      switch change.item {
      case .cell(let update): !known.cells.contains(update.key)
      case .version(let record): !known.versions.contains(record.id)
      }
    }
    return ExchangeResponse(
      outcome: outcome, changes: changes,
      contents: try contents(for: changes, fromStart: request.cursor.seq == 0, in: storage), wallet: wallet,
      cursor: cursor, more: more, serverTimeMilliseconds: now)
  }

  /// Small contents of the heads among `changes`; with their bases where the device starts from nothing.
  private static func contents(
    for changes: [CloudChange], fromStart: Bool, in storage: some ContainerStorage
  ) throws -> [EncodedContent] {
    var result: [EncodedContent] = []
    var taken: Set<ContentHash> = []
    var left = inlineTotalBytes
    for change in changes {
      guard case .version(let record) = change.item, try !storage.isCovered(record.id) else { continue }
      for hash in record.contents {
        var chain: [EncodedContent] = []
        var next: ContentHash? = hash
        while let hash = next, !taken.contains(hash), chain.count < inlineChain,
          let content = try storage.content(hash), content.bytes.count <= inlineContentBytes
        {
          chain.append(content)
          next = fromStart ? content.base : nil
        }
        let size = chain.reduce(0) { $0 + $1.bytes.count }
        guard size <= left else { continue }
        left -= size
        // Bases first, so that each can be decoded as it comes.
        for content in chain.reversed() where taken.insert(content.hash).inserted { result.append(content) }
      }
    }
    return result
  }

  // MARK: Checking

  private static func isOfThisHistory(
    _ cursor: Cursor, _ position: Cursor, in storage: some ContainerStorage
  ) throws -> Bool {
    if cursor.seq == 0 { return true }
    guard cursor.epoch == position.epoch, cursor.seq <= position.seq else { return false }
    return try storage.mark(of: cursor.seq) == cursor.mark
  }

  /// What no correct device sends, whatever its game does.
  private static func check(_ request: ExchangeRequest) throws {
    guard request.protocolVersion == ExchangeRequest.currentProtocol else {
      throw ExchangeError.unsupportedProtocol(request.protocolVersion)
    }
    guard request.cursor.seq <= Cursor.maximumSeq, request.cursor.epoch <= Cursor.maximumSeq else {
      throw ExchangeError.malformed("the cursor is out of range")
    }
    guard request.limit > 0 else { throw ExchangeError.malformed("the limit has to be at least 1") }
    guard request.cells.count <= ExchangeRules.maximumCells else { throw ExchangeError.tooMany("cells") }
    guard request.versions.count <= ExchangeRules.maximumVersions else { throw ExchangeError.tooMany("versions") }
    guard request.contents.count <= ExchangeRules.maximumInlineContents else { throw ExchangeError.tooMany("contents") }
    for content in request.contents {
      guard content.length >= 0, content.length <= ExchangeRules.maximumContentBytes else {
        throw ExchangeError.malformed("the length of the content \(content.hash) is out of range")
      }
      guard content.bytes.count <= ExchangeRules.maximumInlineBytes else {
        throw ExchangeError.malformed("the content \(content.hash) is too large to travel inside an exchange")
      }
      guard content.base != content.hash else {
        throw ExchangeError.malformed("the content \(content.hash) is its own base")
      }
    }
  }
}

extension CloudChange {
  fileprivate var size: Int {
    switch item {
    case .cell(let update): update.size
    case .version(let record): record.size
    }
  }
}
