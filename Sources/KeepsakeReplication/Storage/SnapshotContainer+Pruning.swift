// What pruning reads and writes.
extension SnapshotContainer {
  package func slots(after slot: String?, limit: Int) throws -> [String] {
    let wanted = ReadSet.SlotNames(after: slot.map(ExactText.init), limit: limit)
    guard base.known.slotNames == wanted else { throw NotLoaded { $0.slotNames = wanted } }
    return base.slotNames.map(\.text)
  }

  package func history(of slot: String) throws -> SlotHistory {
    let name = ExactText(slot)
    guard base.known.histories.contains(name), base.known.wholeRoom || base.known.rooms.contains(name) else {
      throw NotLoaded {
        $0.histories = [name]
        $0.rooms = [name]
      }
    }
    var history = SlotHistory()
    _ = try pastPositions()
    history.pruned = base.pruned.union(writes.removed.keys).subtracting(writes.forgotten)
    for id in Set(base.versions.keys).union(writes.versions.keys) {
      guard let version = try version(id), ExactText(version.record.slot) == name else { continue }
      history.versions[id] = version
      if try isCovered(id) { history.covered.insert(id) }
      let isHolding = newHolders[id] != nil || base.room.holders[id] != nil
      if isHolding, writes.released[id] == nil { history.holding.insert(id) }
    }
    return history
  }

  package func visits() throws -> [DeviceID: DeviceVisits] {
    guard base.known.visits else { throw NotLoaded { $0.visits = true } }
    var visits = base.visits
    if let device = writes.device {
      var known = visits[device.id] ?? DeviceVisits(reached: 0)
      if let visit = device.visit?.milliseconds {
        known.firstMilliseconds = known.firstMilliseconds ?? visit
        known.lastMilliseconds = visit
      }
      known.reached = device.reached ?? known.reached
      visits[device.id] = known
    }
    return visits
  }

  package func pastPositions() throws -> [PastPosition] {
    guard base.known.pastPositions else { throw NotLoaded { $0.pastPositions = true } }
    let past = base.pastPositions.filter { !writes.forgottenPositions.contains($0.milliseconds) }
    return past + (writes.recordedPosition.map { [$0] } ?? [])
  }

  package mutating func removeVersion(_ id: VersionID) throws {
    guard let version = try version(id) else { return }
    try releaseContents(of: id)
    writes.used -= Int64(version.record.size)
    writes.versions[id] = nil
    writes.rewritten[id] = nil
    if base.versions[id] != nil { writes.removed[id] = version.record.slot }
  }

  package mutating func setCovers(_ covers: [VersionID], of id: VersionID) throws {
    guard var version = try version(id) else { return }
    writes.used += Int64((covers.count - version.record.covers.count) * VersionRecord.coverSize)
    version.record.covers = covers
    if writes.versions[id] != nil { writes.versions[id]?.version = version } else { writes.rewritten[id] = version }
  }

  package mutating func forgetCovered(_ ids: Set<VersionID>) {
    writes.forgotten.formUnion(ids)
    writes.covered.subtract(ids)
    writes.coveredApart.subtract(ids)
  }

  package mutating func recordPosition(_ position: PastPosition) { writes.recordedPosition = position }
  package mutating func forgetPositions(_ milliseconds: Set<Int64>) { writes.forgottenPositions = milliseconds }
  package mutating func forgetMarks(through seq: UInt64, butNot kept: [ClosedRange<UInt64>]) {
    writes.forgottenMarks = WriteSet.ForgottenMarks(through: seq, kept: kept)
  }
}
