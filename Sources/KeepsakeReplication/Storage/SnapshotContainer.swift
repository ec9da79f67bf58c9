/// A container as a decision sees it: what was loaded, with what the decision has changed on top. Collects the changes.
///
/// A read of what wasn't loaded throws ``NotLoaded``.
package struct SnapshotContainer: ContainerStorage, Sendable {
  /// Behind a reference, since a copy of all its parts takes longer than many a decision.
  private final class Loaded: Sendable {
    let snapshot: Snapshot

    init(_ snapshot: Snapshot) { self.snapshot = snapshot }
  }
  private let loaded: Loaded
  package var base: Snapshot { _read { yield loaded.snapshot } }
  package internal(set) var writes = WriteSet()
  package var faults: Faults { base.faults }

  // What a decision has changed beside what it writes.
  /// How many more holders and dependents a content has.
  var holders: [ContentHash: Int] = [:]
  var leaning: [ContentHash: Int] = [:]
  /// Contents by hash, with the new ones; nil for those that aren't here any more.
  var contents: [ContentHash: Snapshot.Content?] = [:]
  var newContents: [ContentHash: EncodedContent] = [:]
  var newHolders: [VersionID: Snapshot.Room.Holder] = [:]
  var newDecisions: [OperationID: WriteSet.Decision] = [:]
  var newClaims: Set<ExactText> = []
  var newClosedChains: [ChainID: BankState.ClosedChain] = [:]

  package init(_ base: Snapshot) {
    loaded = Loaded(base)
    writes.assumption = base.assumption
  }

  package func need(_ reads: ReadSet) throws {
    let missing = reads.missing(from: base.known)
    if !missing.isEmpty { throw NotLoaded(missing) }
  }

  // MARK: Position

  package func position() -> Cursor { writes.position ?? base.position }

  package mutating func advance(to position: Cursor) {
    writes.position = position
    writes.marks.append(Cursor.Mark(seq: position.seq, mark: position.mark))
  }

  package func mark(of seq: UInt64) throws -> UInt64? {
    if seq == 0 { return 0 }
    if seq > base.position.seq { return writes.marks.last { $0.seq == seq }?.mark }
    if seq == base.position.seq { return base.position.mark }
    if let mark = base.changes?.marks[seq] ?? base.marks[seq] { return mark }
    guard base.known.marks.contains(seq) else { throw NotLoaded { $0.marks = [seq] } }
    return nil
  }

  // MARK: Cells

  package func cell(_ key: CellKey) throws -> SequencedCell? {
    if let written = writes.cells[key] { return written }
    guard base.known.cells.contains(key) else { throw NotLoaded { $0.cells = [key] } }
    return base.cells[key]
  }

  package mutating func setCell(_ cell: SequencedCell) throws {
    writes.used += Int64(cell.update.size - (try self.cell(cell.update.key)?.update.size ?? 0))
    writes.cells[cell.update.key] = cell
  }

  // MARK: Versions

  package func version(_ id: VersionID) throws -> SequencedVersion? {
    if let written = writes.versions[id] { return written.version }
    if let rewritten = writes.rewritten[id] { return rewritten }
    if writes.removed[id] != nil { return nil }
    guard base.known.versions.contains(id) else { throw NotLoaded { $0.versions = [id] } }
    return base.versions[id]
  }

  package func slot(of id: VersionID) throws -> String? {
    if let written = writes.versions[id] { return written.version.record.slot }
    if writes.removed[id] != nil { return nil }
    if base.known.versions.contains(id) { return base.versions[id]?.record.slot }
    guard base.known.slotsOfVersions.contains(id) else { throw NotLoaded { $0.slotsOfVersions = [id] } }
    return base.slotsOfVersions[id]
  }

  package mutating func putVersion(_ version: SequencedVersion) throws {
    let record = version.record
    let stored = try self.version(record.id)
    let isHead = try !isCovered(record.id)
    writes.used += Int64(record.size - (stored?.record.size ?? 0))
    // One that was replaced before it came may have come without them.
    let holds = try stored == nil && isHead && !record.contents.isEmpty && record.contents.allSatisfy(isHere)
    if holds {
      let held = Set(record.contents)
      newHolders[record.id] = Snapshot.Room.Holder(slot: record.slot, contents: held)
      for hash in held { holders[hash, default: 0] += 1 }
    }
    let isUnknown = !base.known.versions.contains(record.id)
    writes.rewritten[record.id] = nil
    writes.removed[record.id] = nil
    writes.versions[record.id] = WriteSet.Version(
      version: version, isHead: isHead, holds: holds || writes.versions[record.id]?.holds == true,
      isStored: isUnknown || base.versions[record.id] != nil,
      wasCovered: isUnknown || base.coverage[record.id] == true)
  }

  package func heads(of slot: String) throws -> [VersionID] {
    let name = ExactText(slot)
    guard base.known.slots.contains(name) else { throw NotLoaded { $0.slots = [name] } }
    var heads = Set(base.heads[name] ?? []).subtracting(writes.covered)
    for (id, written) in writes.versions
    where written.isHead && ExactText(written.version.record.slot) == name && !writes.covered.contains(id) {
      heads.insert(id)
    }
    return heads.sorted()
  }

  package func isCovered(_ id: VersionID) throws -> Bool {
    if writes.covered.contains(id) { return true }
    if let isCovered = base.coverage[id] { return isCovered }
    guard base.known.versions.contains(id) else { throw NotLoaded { $0.versions = [id] } }
    return false
  }

  package mutating func markCovered(_ id: VersionID) {
    guard base.coverage[id] != true else { return }
    writes.covered.insert(id)
    if base.versions[id] == nil { writes.coveredApart.insert(id) }
  }

  // MARK: Changes

  package func changes(after seq: UInt64, limit: Int) throws -> [CloudChange] {
    guard limit > 0 else { return [] }
    var result: [CloudChange] = []
    if seq < base.position.seq {
      guard let loaded = base.changes else { throw NotLoaded { $0.changes = Self.changes(after: seq) } }
      guard base.known.changes.map({ $0.after <= seq }) == true else {
        throw NotLoaded { $0.changes = Self.changes(after: seq) }
      }
      let first = loaded.list.partitioningIndex { $0.seq > seq }
      for change in loaded.list[first...] where !isReplaced(change) {
        if result.count == limit { return result }
        result.append(rewritten(change))
      }
      if loaded.through < base.position.seq {
        if !result.isEmpty { return result }
        throw NotLoaded { reads in
          reads.changes = base.known.changes.map {
            ReadSet.Changes(after: $0.after, count: 2 * $0.count + limit, bytes: 2 * $0.bytes)
          }
        }
      }
    }
    var own = writes.cells.values.map { CloudChange(seq: $0.seq, item: .cell($0.update)) }
    own += writes.versions.values.map { CloudChange(seq: $0.version.seq, item: .version($0.version.record)) }
    own = own.filter { $0.seq > seq }.sorted { $0.seq < $1.seq }
    return result + own.prefix(limit - result.count)
  }

  private static func changes(after seq: UInt64) -> ReadSet.Changes {
    ReadSet.Changes(after: seq, count: CloudAcceptance.eventChanges, bytes: CloudAcceptance.answerBytes)
  }

  private func rewritten(_ change: CloudChange) -> CloudChange {
    guard case .version(let record) = change.item, let rewritten = writes.rewritten[record.id] else { return change }
    return CloudChange(seq: change.seq, item: .version(rewritten.record))
  }

  private func isReplaced(_ change: CloudChange) -> Bool {
    switch change.item {
    case .cell(let update): writes.cells[update.key] != nil
    case .version(let record): writes.versions[record.id] != nil || writes.removed[record.id] != nil
    }
  }

  // MARK: Offers in parts

  package func heldOffers() throws -> [HeldOffer] {
    guard base.known.offers else { throw NotLoaded { $0.offers = true } }
    var held = base.offers.filter { !writes.droppedOffers.contains($0.id) }
    for part in writes.parts {
      let index = held.firstIndex { $0.id == part.part.offer }
      var offer =
        index.map { held.remove(at: $0) }
        ?? HeldOffer(id: part.part.offer, parts: 0, bytes: 0, touchedMilliseconds: part.now)
      offer.parts += 1
      offer.bytes += part.items.size
      offer.touchedMilliseconds = max(offer.touchedMilliseconds, part.now)
      held.append(offer)
    }
    return held
  }

  package func items(of offer: OfferID) throws -> [OfferItems] {
    guard base.known.parts.contains(offer) else { throw NotLoaded { $0.parts = [offer] } }
    let kept = writes.droppedOffers.contains(offer) ? [] : base.parts[offer] ?? []
    return kept + writes.parts.filter { $0.part.offer == offer }.map(\.items)
  }

  package mutating func hold(_ items: OfferItems, as part: OfferPart, now: Int64) {
    writes.parts.append(WriteSet.Part(part: part, items: items, now: now))
  }

  package mutating func dropOffer(_ offer: OfferID) throws {
    writes.parts.removeAll { $0.part.offer == offer }
    if try heldOffers().contains(where: { $0.id == offer }) { writes.droppedOffers.insert(offer) }
  }

  // MARK: Devices

  package func reached() throws -> [DeviceID: UInt64] {
    guard base.known.reached else { throw NotLoaded { $0.reached = true } }
    var reached = base.reached
    if let device = writes.device, let seq = device.reached { reached[device.id] = seq == 0 ? nil : seq }
    return reached
  }

  package mutating func setReached(_ seq: UInt64, by device: DeviceID) throws {
    if try (writes.device?.reached ?? self.device(device).reached) != seq { change(device) { $0.reached = seq } }
  }

  package func reached(by device: DeviceID) throws -> UInt64 {
    try writes.device?.reached ?? self.device(device).reached
  }

  package func setBacks(of device: DeviceID) throws -> DeviceSetBacks {
    try writes.device?.setBacks ?? self.device(device).setBacks
  }

  package mutating func setSetBacks(_ setBacks: DeviceSetBacks, of device: DeviceID) throws {
    let count = try self.device(device).setBacks.mark?.count ?? 0
    change(device) {
      $0.setBacks = setBacks
      $0.isSetBack = setBacks.mark.map { $0.count > count } ?? false
    }
  }

  /// Returns the requesting device as it was loaded.
  package func device(_ device: DeviceID) throws -> Snapshot.Device {
    guard base.known.device == device, let loaded = base.device else { throw NotLoaded { $0.device = device } }
    return loaded
  }

  /// Records that a device was here; writes nothing if it was within so many milliseconds.
  package mutating func recordVisit(_ visit: WriteSet.Visit, of device: DeviceID, every step: Int64) throws {
    let seen = try self.device(device).seenMilliseconds
    if let seen, seen > visit.milliseconds.addingClamped(-step) { return }
    change(device) { $0.visit = visit }
  }

  /// Records which chain of the wallet belongs to a device.
  package mutating func recordChain(_ chain: ChainID, of device: DeviceID) throws {
    guard base.known.chain == chain || base.known.allChains else { throw NotLoaded { $0.chain = chain } }
    if try !self.device(device).chains.contains(chain) { change(device) { $0.chain = chain } }
  }

  /// Removes a device, and which chains belong to it.
  package mutating func retire(_ device: DeviceID, isLeaving: Bool, now: Int64) {
    writes.retired = (device, isLeaving, now)
  }

  private mutating func change(_ device: DeviceID, _ change: (inout WriteSet.Device) -> Void) {
    var changed = writes.device ?? WriteSet.Device(id: device)
    change(&changed)
    writes.device = changed
  }
}

extension Array {
  /// Returns the index of the first element for which the condition holds, where it holds for all after that.
  fileprivate func partitioningIndex(where condition: (Element) -> Bool) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if condition(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
