/// How a device's own writes enter its storage, and the outbox with them.
package enum DeviceCommit {
  /// What a group may hold before the next commit starts a new one. Commits that wait together travel together, so a
  /// hundred autosaves made offline are one upload; but each commit rewrites the group that it joins.
  package static let maximumGroupCells = 200
  package static let maximumGroupVersions = 50
  package static let maximumGroupBytes = 128 * 1024

  /// Sessions of a store that was never connected whose first saves a later one still names. A copy of the store from before
  /// that shows as a conflict that need not be, once both are connected; without a bound each save would name every session.
  package static let maximumUnconnectedCovers = 64

  /// Applies `draft`, and appends what the cloud has to know to the outbox.
  ///
  /// - Parameters:
  ///   - now: The device's clock, in milliseconds since 1970.
  /// - Returns: The versions as they are kept, in the order of the drafts.
  /// - Throws: ``CommitError``, ``CellError``, ``WalletError``, or what the storage throws. The caller rolls back then: some
  ///   of the draft may have been written.
  @discardableResult
  package static func apply(
    _ draft: CommitDraft, now: Int64, writer: WriterID, in storage: inout some DeviceStorage,
    using random: inout some RandomNumberGenerator
  ) throws -> [VersionRecord] {
    let facts = try storage.facts()
    var group = OutboxGroup()
    var pending = try pendingGroup(facts, in: storage)

    var deltas: [CellKey: CellState] = [:]
    let context = CellDraft.Context(
      writer: writer, caughtUp: facts.caughtUp,
      nowMilliseconds: now.addingClamped(facts.serverOffsetMilliseconds), neverConnected: facts.container == nil,
      followsStamps: !storage.faults.stampsByClockAlone, moves: facts.moves ?? 0)
    for cell in draft.cells {
      let known = try storage.cell(cell.key)
      guard let change = try cell.applied(to: known, cell.context(context, storage.cell)) else { continue }
      let update = CellUpdate(key: cell.key, state: change.state)
      if let why = ExchangeRules.objection(to: update, over: known) { throw CommitError.invalidCell(cell.key, why.message) }
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
      var wallet = Wallet(try storage.wallet() ?? WalletState(chain: ChainID(using: &random)))
      for operation in draft.wallet { try wallet.perform(operation) }
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

  /// To be run in a transaction of its own each time a store is opened, before anything else is written.
  ///
  /// From here on a copy of the store may exist that holds the same unacknowledged saves and sends them: later saves have to
  /// name them as replaced. Also mints the wallet's chain where there is none.
  package static func opened(
    in storage: inout some DeviceStorage, using random: inout some RandomNumberGenerator
  ) throws {
    if storage.faults.dropsStagedAtOpening { try storage.clearStaged() }
    for id in try storage.unofferedVersions() {
      guard var stored = try storage.version(id) else { continue }
      stored.offered = true
      try storage.putVersion(stored)
    }
    if try storage.wallet() == nil {
      try storage.setWallet(WalletState(chain: ChainID(using: &random)))
    }
  }

  private static func checkSize(_ group: OutboxGroup, _ records: [VersionRecord]) throws(CommitError) {
    guard group.cells.count <= ExchangeRules.maximumCells, group.versions.count <= ExchangeRules.maximumVersions else {
      throw .tooMuch(
        "\(group.cells.count) values and \(group.versions.count) saves, where \(ExchangeRules.maximumCells) and "
          + "\(ExchangeRules.maximumVersions) may go together")
    }
    let bytes = group.cells.reduce(0) { $0 + $1.size } + records.reduce(0) { $0 + $1.size }
    guard bytes <= ExchangeRules.maximumCommitBytes else {
      throw .tooMuch("\(bytes) bytes of values and metadata, where \(ExchangeRules.maximumCommitBytes) may go together")
    }
  }

  /// To be run when a store that was never connected gets its first container, which may hold another device's values already.
  ///
  /// Bests that were taken back here take nothing back there: their generations begin with the container. Nor may what was taken back come
  /// again from what still waits to be sent.
  package static func connected(in storage: inout some DeviceStorage) throws {
    var lowered: [CellKey: CellState] = [:]
    for var cell in try storage.cells(in: nil) where cell.state.generation > 0 {
      cell.state = cell.state.begunAnew
      try storage.setCell(cell)
      lowered[cell.key] = cell.state
    }
    for var group in try storage.outbox(limit: storage.outboxCount()) where group.cells.contains(where: { lowered[$0.key] != nil }) {
      group.cells = group.cells.map { CellUpdate(key: $0.key, state: lowered[$0.key] ?? $0.state) }
      try storage.updateOutbox(group)
    }
  }

  /// To be run when what a store holds joins another player's container: to that container it is what a fresh install wrote
  /// before it first heard from its cloud, whatever it was to the one before.
  ///
  /// So `latest` values rank below those there, resets made here take nothing back there, and saves are provisional. What is counted from here on
  /// is counted under another name.
  package static func moved(in storage: inout some DeviceStorage) throws {
    func demoted(_ update: CellUpdate) -> CellUpdate { CellUpdate(key: update.key, state: update.state.beforeCatchUp) }
    // What was taken back must not come again from what still waits to be sent.
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
    guard try storage.version(save.id) == nil, try !storage.isCovered(save.id) else { throw CommitError.idTaken(save.id) }
    let (contents, length): ([ContentHash], Int)
    switch save.content {
    case .stored(let hashes, let bytes): (contents, length) = (hashes, bytes)
    case .tombstone: (contents, length) = ([], 0)
    case .bytes: throw CommitError.invalid(save.id, "its bytes were not stored before")
    }
    for hash in contents where try !storage.hasContent(hash) { throw CommitError.missingContent(save.id, hash) }
    let parents: [VersionID]
    switch save.parents {
    case .versions(let ids): parents = ids
    case .everyHead: parents = try storage.heads(of: save.slot)
    case .game, .file: throw CommitError.invalid(save.id, "what it replaces was not decided before")
    }

    // A store that was never connected has sent nothing: what it replaces needs no place in the outbox.
    let isConnected = facts.container != nil
    var covers = Set(parents)
    var provisional = true
    var known = false
    for id in Set(parents).sorted() {
      guard var replaced = try storage.version(id) else { continue }
      known = true
      provisional = provisional && replaced.record.provisional
      // What the cloud has is enough to name. What it may never get has to be seen through.
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
    // Of a local slot nothing is owed to any cloud.
    let isLocal = record.key.isLocal
    try storage.putVersion(StoredVersion(record: record, acknowledged: isLocal, offered: false))
    for id in record.covers { try storage.markCovered(id) }
    if !isLocal { group.versions.append(record.id) }
    return record
  }

  /// What a save of a store that was never connected names: its basis, and what the last sessions began with.
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

  /// The newest group, if what is committed now may join it.
  private static func pendingGroup(_ facts: DeviceFacts, in storage: some DeviceStorage) throws -> OutboxGroup? {
    guard let newest = try storage.newestOutboxGroup(), newest.refusals.isEmpty, !newest.isPiece else { return nil }
    guard facts.container != nil else { return newest }
    for id in newest.versions {
      // Sent, perhaps: the engine may be waiting for the answer about just this group.
      if let version = try storage.version(id), version.offered { return nil }
    }
    return newest
  }
}

extension OutboxGroup {
  /// Whether it has nothing but these versions. What a checkpoint wrote beside them waits for them, or for what replaces them: without their
  /// ids nobody could tell, and other devices would see half of it.
  package func isOnly(of ids: Set<VersionID>) -> Bool { cells.isEmpty && !versions.isEmpty && versions.allSatisfy(ids.contains) }

  /// Takes a version out that nobody will ask for; false if it isn't here.
  mutating func removeVersion(_ id: VersionID) -> Bool {
    guard let index = versions.firstIndex(of: id) else { return false }
    versions.remove(at: index)
    return true
  }

  /// Both as one group, under this one's id; nil if that would be too much. A group that is large already takes what doesn't
  /// make it larger: the same values again.
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
  /// Both lists as one, sorted by key, states of the same key joined.
  package static func joined(_ left: [CellUpdate], _ right: [CellUpdate]) -> [CellUpdate] {
    var states: [CellKey: CellState] = [:]
    for update in left + right { states[update.key] = states[update.key]?.joined(with: update.state) ?? update.state }
    return states.map { CellUpdate(key: $0.key, state: $0.value) }.sorted { $0.key < $1.key }
  }
}
