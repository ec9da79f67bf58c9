// All that a store holds, offered to a cloud that isn't the one it knew.
extension DeviceEngine {
  /// The cloud is not the one that this device knew: all that is held here goes out again, and joins do the rest.
  mutating func beginEpoch(
    _ epoch: UInt64, _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws {
    // What is kept back whole may be nowhere else by now. Only what shows is offered.
    try showArrivals(&effects, in: &storage)
    var facts = try storage.facts()
    facts.cursor = Cursor(epoch: epoch, seq: 0, mark: 0)
    try storage.setFacts(facts)
    try offerEverything(in: &storage)
    (paging, complete) = (false, false)
    (announced, needs, offering) = (0, nil, nil)
    exchangeDue = true
    // One exchange brings all and hears all, once what it needs is put. That isn't waited for longer than until the next poll.
    awaitsPuts = true
    (pollIsSet, continues) = (true, false)
    effects.append(.wake(afterMilliseconds: options.pollMilliseconds))
  }

  /// The event stream says that the cursor which the device named isn't of the cloud's history. Whatever came meanwhile, the cursor tells
  /// whether that is still so; an exchange that is under way will say it itself.
  ///
  /// - Returns: Whether a new epoch has begun.
  mutating func heardUnknown(
    _ cursor: Cursor, now: Int64, _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws -> Bool {
    guard case .running = standing, exchange == nil, cursor.seq > 0 else { return false }
    var facts = try storage.facts()
    guard facts.cursor == cursor else { return false }
    facts.lastFetchedMilliseconds = now
    try storage.setFacts(facts)
    // The cloud is there: what failed before need not wait any longer.
    (paused, transfersPaused) = (nil, nil)
    (attempts, failing, isReached) = (0, [], true)
    try beginEpoch(cursor.epoch, &effects, in: &storage)
    return true
  }

  /// Fills the outbox with all that the store holds. What waited is part of that: alone it would be seen without what it belongs to, or with
  /// what was committed since.
  private mutating func offerEverything(in storage: inout some DeviceStorage) throws {
    // Of what is left some is still on its way: it is its writer's to offer again.
    try storage.clearStaged()
    try storage.clearCloudDepths()
    (held, large) = ([], [:])
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
    var pieces = Pieces(options, isPiece: !storage.faults.offersInPieces)
    var offered = refused
    for slot in try storage.slots() {
      // Whoever replaces comes before what is replaced, so that the cloud never takes history for a head.
      for id in try ancestry(from: headsToOffer(of: slot, in: storage), in: storage) where !offered.contains(id) {
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

  /// Of a slot that stays here only that it left its cloud, with what that replaces.
  private func headsToOffer(of slot: String, in storage: some DeviceStorage) throws -> [VersionID] {
    let heads = try storage.heads(of: slot)
    return try storage.staysHere(slot) ? heads.filter { try storage.version($0)?.record.tombstone == true } : heads
  }

  /// What is known here of that which these versions come from, newest first, with themselves.
  func ancestry(from versions: [VersionID], in storage: some DeviceStorage) throws -> [VersionID] {
    var order = versions
    var seen = Set(order)
    var index = 0
    while index < order.count, index < Resolution.maximumWalk {
      for older in try storage.version(order[index])?.record.covers ?? [] where seen.insert(older).inserted {
        if try storage.version(older) != nil { order.append(older) }
      }
      index += 1
    }
    return order
  }

  // MARK: In several requests

  /// What of all that waits goes together: everything, as far as one offer may hold it.
  func offered(_ groups: [OutboxGroup], _ known: [VersionID: VersionRecord]) -> [OutboxGroup] {
    if let offering { return offering.groups }
    var parts: [[OutboxGroup]] = []
    var left = groups[...]
    var bytes = 0
    while !left.isEmpty, parts.count < ExchangeRules.maximumOfferParts {
      let part = fitting(Array(left), known)
      bytes += part.reduce(0) { $0 + $1.size(known) }
      guard parts.isEmpty || bytes <= ExchangeRules.maximumOfferBytes else { break }
      parts.append(part)
      left = left.dropFirst(part.count)
    }
    return parts.flatMap { $0 }
  }

  /// Which part of the offer goes now; nil if one request takes all of it.
  mutating func nextPart(
    of groups: [OutboxGroup], _ known: [VersionID: VersionRecord], using random: inout some RandomNumberGenerator
  ) -> PlannedPart? {
    if offering == nil {
      var ends: [Int] = []
      var end = 0
      while end < groups.count {
        end += fitting(Array(groups[end...]), known).count
        ends.append(end)
      }
      guard ends.count > 1 else { return nil }
      offering = Offering(id: OfferID(using: &random), groups: groups, ends: ends)
    }
    guard let offering else { return nil }
    let range = (offering.held == 0 ? 0 : offering.ends[offering.held - 1])..<offering.ends[offering.held]
    let part = OfferPart(offer: offering.id, number: offering.held, isLast: offering.held == offering.ends.count - 1)
    return PlannedPart(part: part, groups: Array(offering.groups[range]))
  }

  /// Whether the parts that went are still parts of what waits. A value that was changed since goes once more afterwards; what the cloud has by
  /// now may go all the same.
  func isCurrent(_ offering: Offering, among groups: [OutboxGroup], in storage: some DeviceStorage) throws -> Bool {
    var waiting: [Int64: OutboxGroup] = [:]
    for group in try storage.outbox(limit: storage.outboxCount()) { waiting[group.id] = group }
    return offering.groups.allSatisfy { group in
      waiting[group.id].map { $0.versions.starts(with: group.versions) && isSendable($0) } ?? true
    }
  }

  /// The cloud keeps so many parts.
  mutating func heldParts(
    _ count: Int, of part: OfferPart?, _ effects: inout [EngineEffect], using random: inout some RandomNumberGenerator
  ) {
    guard let part, let known = offering, part.offer == known.id else { return }
    offering?.held = min(max(count, 0), known.ends.count - 1)
    guard count <= part.number else { return }
    offering?.setbacks += 1
    // One that was kept and is gone goes again at once; what there is no room for, later.
    guard count == part.number || known.setbacks >= Self.maximumMissingRounds else { return }
    offering?.setbacks = 0
    let failure = TransportFailure(.server(retryAfterMilliseconds: nil), "the cloud has no room for a part of what is offered now")
    pause(failure, of: .exchange, atLeast: options.offerPauseMilliseconds, &effects, using: &random)
  }
}

/// An offer that takes several requests, as it stood when the first one went.
struct Offering: Sendable {
  let id: OfferID
  let groups: [OutboxGroup]
  /// How many groups go with the parts up to each one.
  let ends: [Int]
  /// Parts that the cloud keeps.
  var held = 0
  /// Times that it kept fewer than it had.
  var setbacks = 0
}

/// The part that goes now, and what is in it.
struct PlannedPart: Sendable {
  var part: OfferPart
  var groups: [OutboxGroup]
}

/// Groups in the making.
private struct Pieces {
  private let options: DeviceEngine.Options
  private let isPiece: Bool
  private var group: OutboxGroup
  private var bytes = 0

  init(_ options: DeviceEngine.Options, isPiece: Bool) {
    self.options = options
    self.isPiece = isPiece
    group = OutboxGroup(isPiece: isPiece)
  }

  mutating func add(_ record: VersionRecord, to storage: inout some DeviceStorage) throws {
    if group.versions.count >= options.pieceVersions || bytes + record.size > options.pieceBytes { try end(in: &storage) }
    group.versions.append(record.id)
    bytes += record.size
  }

  mutating func add(_ update: CellUpdate, to storage: inout some DeviceStorage) throws {
    if group.cells.count >= options.pieceCells || bytes + update.size > options.pieceBytes { try end(in: &storage) }
    group.cells.append(update)
    bytes += update.size
  }

  mutating func end(in storage: inout some DeviceStorage) throws {
    guard !group.cells.isEmpty || !group.versions.isEmpty else { return }
    try storage.appendToOutbox(group)
    (group, bytes) = (OutboxGroup(isPiece: isPiece), 0)
  }
}

extension OutboxGroup {
  /// Bytes that the group takes in a message, roughly.
  func size(_ known: [VersionID: VersionRecord]) -> Int {
    cells.reduce(0) { $0 + $1.size } + versions.reduce(0) { $0 + (known[$1]?.size ?? 0) }
  }
}
