// What pruning reads and writes.
extension MemoryContainer {
  package func slots(after slot: String?, limit: Int) -> [String] {
    let names = headsBySlot.keys.map(ExactText.init).sorted()
    return names.lazy.filter { name in slot.map { ExactText($0) < name } ?? true }.prefix(limit).map(\.text)
  }

  package func history(of slot: String) -> SlotHistory {
    var history = SlotHistory()
    history.pruned = pruned
    for (id, version) in versions where ExactText(version.record.slot) == ExactText(slot) {
      history.versions[id] = version
      if covered.contains(id) { history.covered.insert(id) }
      if holding.contains(id) { history.holding.insert(id) }
    }
    return history
  }

  package func visits() -> [DeviceID: DeviceVisits] {
    var visits = reachedSeqs.mapValues { DeviceVisits(reached: $0) }
    for (device, times) in visitTimes {
      visits[device] = DeviceVisits(
        reached: reachedSeqs[device] ?? 0, firstMilliseconds: times.first, lastMilliseconds: times.last)
    }
    return visits
  }

  package func pastPositions() -> [PastPosition] { past }

  package mutating func removeVersion(_ id: VersionID) {
    releaseContents(of: id)
    guard let removed = versions.removeValue(forKey: id) else { return }
    pruned.insert(id)
    used -= Int64(removed.record.size)
  }

  package mutating func setCovers(_ covers: [VersionID], of id: VersionID) {
    guard var version = versions[id] else { return }
    used -= Int64(version.record.size)
    version.record.covers = covers
    used += Int64(version.record.size)
    versions[id] = version
  }

  package mutating func forgetCovered(_ ids: Set<VersionID>) {
    covered.subtract(ids)
    pruned.subtract(ids)
  }
  package mutating func recordPosition(_ position: PastPosition) { past.append(position) }
  package mutating func forgetPositions(_ milliseconds: Set<Int64>) {
    past.removeAll { milliseconds.contains($0.milliseconds) }
  }

  package mutating func forgetMarks(through seq: UInt64, butNot kept: [ClosedRange<UInt64>]) {
    let standing = Set(cells.values.map(\.seq)).union(versions.values.map(\.seq))
    let forgotten = marks.keys.filter { mark in
      mark <= seq && !standing.contains(mark) && !kept.contains { $0.contains(mark) }
    }
    for seq in forgotten { marks[seq] = nil }
  }

  /// Records that a device was here.
  package mutating func recordVisit(of device: DeviceID, now: Int64) {
    visitTimes[device] = (visitTimes[device]?.first ?? now, now)
  }

  /// Records that another device is where a device was reported to be.
  package mutating func copyVisits(of device: DeviceID, to copy: DeviceID) {
    (reachedSeqs[copy], visitTimes[copy]) = (reachedSeqs[device], visitTimes[device])
  }

  /// Whether a version was here and was pruned, and its id is remembered.
  package func isPruned(_ id: VersionID) -> Bool { pruned.contains(id) }

  /// The ids, marks and times that are kept: for tests of what grows.
  package var remembered: (covered: Int, marks: Int, times: Int) { (covered.count, marks.count, past.count) }

  mutating func commitPruning(_ writes: WriteSet) {
    for id in writes.removed.keys { versions[id] = nil }
    pruned.formUnion(writes.removed.keys)
    for (id, version) in writes.rewritten { versions[id] = version }
    forgetCovered(writes.forgotten)
    if let marks = writes.forgottenMarks { forgetMarks(through: marks.through, butNot: marks.kept) }
    if let position = writes.recordedPosition { past.append(position) }
    forgetPositions(writes.forgottenPositions)
  }
}
