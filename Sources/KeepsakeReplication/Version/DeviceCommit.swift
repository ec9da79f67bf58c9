/// How a device's own writes are stored and added to the outbox.
package enum DeviceCommit {
  /// What a group may hold before the next commit starts a new one. Commits that wait together are sent together, so a
  /// hundred autosaves made offline are one upload; but each commit rewrites the group that it joins.
  package static let maximumGroupCells = 200
  package static let maximumGroupVersions = 50
  package static let maximumGroupBytes = 128 * 1024

  /// For a store that was never connected: the number of sessions whose first saves a later save still covers. An older
  /// copy of the store shows a needless conflict once both are connected; without a limit each save would name every
  /// session.
  package static let maximumUnconnectedCovers = 64

  /// Applies `draft`, and appends what has to be sent to the outbox.
  ///
  /// - Parameters:
  ///   - now: The device's clock, in milliseconds since 1970.
  /// - Returns: The versions as they are stored, in the order of the drafts.
  /// - Throws: ``CommitError``, ``CellError``, ``WalletError``, or what the storage throws. The caller has to roll back
  ///   then, because some of the draft may have been written.
  @discardableResult
  package static func apply(
    _ draft: CommitDraft, now: Int64, writer: WriterID, in storage: inout some DeviceStorage,
    using random: inout some RandomNumberGenerator
  ) throws -> [VersionRecord] {
    let facts = try storage.facts()
    var group = OutboxGroup()
    var pending = try pendingGroup(facts, for: draft, in: storage)

    var deltas: [CellKey: CellState] = [:]
    let context = CellDraft.Context(
      writer: writer, caughtUp: facts.caughtUp,
      nowMilliseconds: now.addingClamped(facts.serverOffsetMilliseconds), neverConnected: facts.container == nil,
      followsStamps: !storage.faults.stampsByClockAlone, moves: facts.moves ?? 0)
    for cell in draft.cells {
      let known = try storage.cell(cell.key)
      guard let change = try cell.applied(to: known, cell.context(context, storage.cell)) else { continue }
      let update = CellUpdate(key: cell.key, state: change.state)
      if let why = ExchangeRules.objection(to: update, over: known) {
        throw CommitError.invalidCell(cell.key, why.message)
      }
      try storage.setCell(update)
      deltas[cell.key] = deltas[cell.key]?.joined(with: change.delta) ?? change.delta
    }
    group.cells = deltas.map { CellUpdate(key: $0.key, state: $0.value) }.sorted { $0.key < $1.key }

    var records: [VersionRecord] = []
    for save in draft.saves {
      let record = try add(save, facts, writer, &group, &pending, in: &storage)
      records.append(record)
    }
    try checkSize(group, records)

    if !draft.wallet.isEmpty {
      var wallet = Wallet(try storage.wallet() ?? WalletState(chain: ChainID(using: &random)), faults: storage.faults)
      let performed = try wallet.perform(draft.wallet.filter { try !isRepeat($0, in: storage) })
      // What was needed for them.
      for movement in performed.flatMap(\.movements) where movement.spent > 0 {
        wallet.need(nil, of: movement.currency)
      }
      try storage.setWallet(wallet.state)
    }

    guard !group.cells.isEmpty || !group.versions.isEmpty else { return records }
    if storage.faults.splitsGroups, !group.cells.isEmpty, !group.versions.isEmpty {
      if let pending { try storage.updateOutbox(pending) }
      try storage.appendToOutbox(OutboxGroup(cells: group.cells))
      try storage.appendToOutbox(OutboxGroup(versions: group.versions))
      return records
    }
    if let pending, let merged = pending.merged(with: group) {
      try storage.updateOutbox(merged)
    } else {
      if let pending { try storage.updateOutbox(pending) }
      try storage.appendToOutbox(group)
    }
    return records
  }

  /// Prepares a store that was opened. Run it in a transaction of its own each time, before anything else is written.
  ///
  /// From then on a copy of the store may exist that holds the same unacknowledged saves and sends them, so later saves
  /// have to cover them. Also creates the wallet's chain if there is none.
  package static func opened(
    in storage: inout some DeviceStorage, using random: inout some RandomNumberGenerator
  ) throws {
    if storage.faults.dropsStagedAtOpening { try storage.clearStaged() }
    for id in try storage.unofferedVersions() {
      guard var stored = try storage.version(id) else { continue }
      stored.offered = true
      try storage.putVersion(stored)
    }
    guard var wallet = try storage.wallet() else {
      return try storage.setWallet(WalletState(chain: ChainID(using: &random)))
    }
    // Nobody is making those purchases any more.
    guard !wallet.needs.isEmpty else { return }
    (wallet.needs, wallet.held) = ([:], [:])
    try storage.setWallet(wallet)
  }

  /// Returns whether performing the operation changes nothing, because it was performed before, or its payment was
  /// claimed.
  ///
  /// - Throws: ``WalletError`` for another operation under the same id.
  package static func isRepeat(_ operation: WalletOperation, in storage: some DeviceStorage) throws -> Bool {
    if let known = try storage.performedOperation(operation.id) {
      guard known == operation.fingerprint || storage.faults.acceptsReusedIDs else {
        throw WalletError.idReused(operation.id)
      }
      return true
    }
    return try operation.kind.key.map(storage.hasClaimed) ?? false
  }

  private static func checkSize(_ group: OutboxGroup, _ records: [VersionRecord]) throws(CommitError) {
    guard group.cells.count <= ExchangeRules.maximumCells, group.versions.count <= ExchangeRules.maximumVersions else {
      throw .tooMuch(
        "\(CountText.of(group.cells.count, "value")) and \(CountText.of(group.versions.count, "save")); at most "
          + "\(ExchangeRules.maximumCells) and "
          + "\(ExchangeRules.maximumVersions) are allowed")
    }
    let bytes = group.cells.reduce(0) { $0 + $1.size } + records.reduce(0) { $0 + $1.size }
    guard bytes <= ExchangeRules.maximumCommitBytes else {
      throw .tooMuch("\(bytes) bytes of values and metadata; at most \(ExchangeRules.maximumCommitBytes) are allowed")
    }
  }

  /// Prepares a store that was never connected for its first container, which may hold another device's values already.
  /// Run it when the store gets that container.
  ///
  /// Best scores that were taken back here take nothing back there, because generations start anew with the container.
  /// Nor may a score that was taken back return with something that still waits to be sent.
  package static func connected(in storage: inout some DeviceStorage) throws {
    var lowered: [CellKey: CellState] = [:]
    for var cell in try storage.cells(in: nil) where cell.state.generation > 0 {
      cell.state = cell.state.begunAnew
      try storage.setCell(cell)
      lowered[cell.key] = cell.state
    }
    for var group in try storage.outbox(limit: storage.outboxCount())
    where group.cells.contains(where: { lowered[$0.key] != nil }) {
      group.cells = group.cells.map { CellUpdate(key: $0.key, state: lowered[$0.key] ?? $0.state) }
      try storage.updateOutbox(group)
    }
  }

  /// Prepares a store whose data joins another player's container. Run it at that moment: to that container everything
  /// is like what a fresh install wrote before it first fetched, whatever it was to the container before.
  ///
  /// So `latest` values rank below those there, resets made here take nothing back there, and saves are provisional.
  /// Whatever is counted from then on is counted under another writer's name.
  package static func moved(
    in storage: inout some DeviceStorage, using random: inout some RandomNumberGenerator
  ) throws {
    try leaveBank(in: &storage, using: &random)
    // They are the other player's: a bank that has no goods yet wouldn't say so.
    if try storage.goods() != PlayerGoods() { try storage.setGoods(PlayerGoods()) }
    func demoted(_ update: CellUpdate) -> CellUpdate { CellUpdate(key: update.key, state: update.state.beforeCatchUp) }
    // A value that was taken back must not return with something that still waits to be sent.
    var lowered: [CellKey: CellState] = [:]
    for cell in try storage.cells(in: nil) {
      let demoted = demoted(cell)
      try storage.setCell(demoted)
      if cell.state.generation > 0 { lowered[cell.key] = demoted.state }
      if case .best = demoted.state.value { lowered[cell.key] = demoted.state }
    }
    for var group in try storage.outbox(limit: storage.outboxCount()) {
      group.cells = group.cells.map { CellUpdate(key: $0.key, state: lowered[$0.key] ?? demoted($0).state) }
      try storage.updateOutbox(group)
    }
    var facts = try storage.facts()
    facts.moves = (facts.moves ?? 0).addingReportingOverflow(1).partialValue
    try storage.setFacts(facts)
    for slot in try storage.slots() {
      for id in try storage.heads(of: slot) {
        guard var version = try storage.version(id), !version.record.provisional else { continue }
        version.record.provisional = true
        try storage.putVersion(version)
      }
    }
  }

  // MARK: Saves

  private static func add(
    _ save: SaveDraft, _ facts: DeviceFacts, _ writer: WriterID, _ group: inout OutboxGroup,
    _ pending: inout OutboxGroup?, in storage: inout some DeviceStorage
  ) throws -> VersionRecord {
    guard try storage.version(save.id) == nil, try !storage.isCovered(save.id) else {
      throw CommitError.idTaken(save.id)
    }
    let (contents, length): ([ContentHash], Int)
    switch save.content {
    case .stored(let hashes, let bytes): (contents, length) = (hashes, bytes)
    case .tombstone: (contents, length) = ([], 0)
    case .bytes: throw CommitError.invalid(save.id, "its bytes were not stored first")
    }
    for hash in contents where try !storage.hasContent(hash) { throw CommitError.missingContent(save.id, hash) }
    let parents: [VersionID]
    switch save.parents {
    case .versions(let ids): parents = ids
    case .everyHead: parents = try storage.heads(of: save.slot)
    case .game, .file: throw CommitError.invalid(save.id, "which versions it replaces was not decided first")
    }

    // A store that was never connected has sent nothing: what it replaces needn't stay in the outbox.
    let isConnected = facts.container != nil
    var covers = Set(parents)
    var provisional = true
    var known = false
    for id in Set(parents).sorted() {
      guard var replaced = try storage.version(id) else { continue }
      known = true
      provisional = provisional && replaced.record.provisional
      // For a replaced version that the cloud has, its id is enough. For one that the cloud may never get, what that
      // one covers has to be covered too.
      if !replaced.acknowledged || replaced.neverLeft {
        for older in replaced.record.covers {
          if let version = try storage.version(older), version.neverLeft { continue }
          covers.insert(older)
        }
      }
      if !replaced.acknowledged, !replaced.offered || !isConnected,
        group.removeVersion(id) || pending?.removeVersion(id) == true, !replaced.offered
      {
        replaced.acknowledged = true
        try storage.putVersion(replaced)
      }
    }
    if !known { provisional = parents.isEmpty && !facts.caughtUp }
    if storage.faults.ranksAllSavesAlike { provisional = false }
    if !isConnected { covers = try newest(of: covers, keeping: parents, in: storage) }

    let record = VersionRecord(
      id: save.id, slot: save.slot, covers: covers.sorted(), contents: contents, length: length,
      metadata: save.metadata, savedAtMilliseconds: save.savedAtMilliseconds, writer: writer, provisional: provisional,
      tombstone: save.isTombstone)
    if let why = ExchangeRules.objection(toOwn: record) { throw CommitError.invalid(save.id, why.message) }
    // Nothing of a local slot has to be sent.
    let isLocal = record.key.isLocal
    try storage.putVersion(StoredVersion(record: record, acknowledged: isLocal, offered: false))
    for id in record.covers { try storage.markCovered(id) }
    if !isLocal { group.versions.append(record.id) }
    return record
  }

  /// Returns what a save of a store that was never connected covers: its parents, and the first saves of the last
  /// sessions.
  private static func newest(
    of covers: Set<VersionID>, keeping parents: [VersionID], in storage: some DeviceStorage
  ) throws -> Set<VersionID> {
    let inherited = covers.subtracting(parents)
    guard inherited.count > maximumUnconnectedCovers else { return covers }
    let dated = try inherited.map { ($0, try storage.version($0)?.record.savedAtMilliseconds ?? .min) }
    let newest = dated.sorted { $0.1 != $1.1 ? $0.1 > $1.1 : $0.0 < $1.0 }.prefix(maximumUnconnectedCovers)
    return Set(parents).union(newest.map(\.0))
  }

  // MARK: Outbox

  /// Returns the newest group, if what is being committed may join it.
  private static func pendingGroup(
    _ facts: DeviceFacts, for draft: CommitDraft, in storage: some DeviceStorage
  ) throws -> OutboxGroup? {
    guard let newest = try storage.newestOutboxGroup(), newest.refusals.isEmpty, !newest.isPiece else { return nil }
    // To a full group nothing is added, and saves that replace nothing take nothing out of it.
    let isFull = newest.versions.count >= maximumGroupVersions && !draft.saves.isEmpty
    if isFull, draft.saves.allSatisfy({ $0.parents == .versions([]) }) { return nil }
    guard facts.container != nil else { return newest }
    for id in newest.versions {
      // It may have been sent: the engine may be waiting for the response about this very group.
      if let version = try storage.version(id), version.offered { return nil }
    }
    return newest
  }
}

extension OutboxGroup {
  /// Returns whether the group contains nothing but these versions. What a checkpoint wrote beside them waits for them,
  /// or for what replaces them: without their ids that couldn't be known, and other devices would see half of the
  /// checkpoint.
  package func isOnly(of ids: Set<VersionID>) -> Bool {
    cells.isEmpty && !versions.isEmpty && versions.allSatisfy(ids.contains)
  }

  /// Removes a version that won't be needed; returns false if it isn't in this group.
  mutating func removeVersion(_ id: VersionID) -> Bool {
    guard let index = versions.firstIndex(of: id) else { return false }
    versions.remove(at: index)
    return true
  }

  /// Returns both groups as one, under this one's id; nil if that would be too much. A group that is already too large
  /// still takes what doesn't make it larger, such as new states of the same values.
  func merged(with later: OutboxGroup) -> OutboxGroup? {
    let joined = CellUpdate.joined(cells, later.cells)
    let size = joined.reduce(0) { $0 + $1.size }
    let before = max(cells.reduce(0) { $0 + $1.size }, later.cells.reduce(0) { $0 + $1.size })
    guard joined.count <= max(DeviceCommit.maximumGroupCells, cells.count, later.cells.count),
      versions.count + later.versions.count <= DeviceCommit.maximumGroupVersions,
      size <= max(DeviceCommit.maximumGroupBytes, before)
    else { return nil }
    var merged = self
    merged.cells = joined
    merged.versions += later.versions
    return merged
  }
}

extension CellUpdate {
  /// Returns both lists as one, sorted by key, with states of the same key joined.
  package static func joined(_ left: [CellUpdate], _ right: [CellUpdate]) -> [CellUpdate] {
    var states: [CellKey: CellState] = [:]
    for update in left + right { states[update.key] = states[update.key]?.joined(with: update.state) ?? update.state }
    return states.map { CellUpdate(key: $0.key, state: $0.value) }.sorted { $0.key < $1.key }
  }
}
