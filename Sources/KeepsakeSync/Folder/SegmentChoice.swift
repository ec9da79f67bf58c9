import KeepsakeReplication

/// The largest set of segments that can be applied together.
///
/// It starts with all segments whose chain is complete. Those that would make a version visible whose contents aren't
/// there are removed, with all that follow them, until nothing more is removed. So a later segment may supply what
/// replaces the version that an earlier one can't show. Costs time in proportion to what the segments contain.
struct SegmentChoice {
  private let waiting: [SegmentHash: StateSegment]
  private var chosen: Set<SegmentHash> = []
  /// The segments that follow each one. A segment whose predecessor a waiting snapshot replaces follows the snapshot.
  private var followers: [SegmentHash: [SegmentHash]] = [:]
  /// How many chosen segments replace a version.
  private var coverings: [VersionID: Int] = [:]
  /// Which chosen segments contain a version, and at which index.
  private var segmentsByVersion: [VersionID: [(hash: SegmentHash, index: Int)]] = [:]

  init(_ waiting: [SegmentHash: StateSegment], after replica: FolderReplica) {
    self.waiting = waiting
    var snapshots: [SegmentHash: [SegmentHash]] = [:]
    var next: [SegmentHash] = []
    for (hash, segment) in waiting {
      for old in segment.links.replaces where waiting[old] == nil { snapshots[old, default: []].append(hash) }
      if let previous = segment.links.previous, !segment.links.isSnapshot {
        followers[previous, default: []].append(hash)
        if replica.isIn(previous) { next.append(hash) }
      } else {
        next.append(hash)
      }
    }
    // A segment whose predecessor is gone, and named only by snapshots that wait themselves, follows those.
    for (old, named) in snapshots {
      for follower in followers[old] ?? [] where !replica.isIn(old) {
        for snapshot in named { followers[snapshot, default: []].append(follower) }
      }
    }
    while let hash = next.popLast() {
      guard chosen.insert(hash).inserted, let segment = waiting[hash] else { continue }
      for (index, version) in segment.versions.enumerated() {
        segmentsByVersion[version.id, default: []].append((hash, index))
        for id in version.covers { coverings[id, default: 0] += 1 }
      }
      next += followers[hash] ?? []
    }
  }

  /// Removes what can't be shown yet.
  mutating func dropIncomplete(
    in memory: MemoryContainer, isComplete: (ContentHash) throws(TransportFailure) -> Bool
  ) throws(TransportFailure) {
    var known: [ContentHash: Bool] = [:]
    var suspects = Array(segmentsByVersion.keys)
    while let id = suspects.popLast() {
      // One that is visible already needs nothing to stay so: its contents may have been taken away since.
      guard coverings[id, default: 0] == 0, !memory.isCovered(id), memory.version(id) == nil else { continue }
      for (hash, index) in segmentsByVersion[id] ?? [] where chosen.contains(hash) {
        guard let version = waiting[hash]?.versions[index] else { continue }
        var isWhole = true
        for content in version.contents where isWhole {
          if let answer = known[content] {
            isWhole = answer
          } else {
            isWhole = try isComplete(content)
            known[content] = isWhole
          }
        }
        if !isWhole { suspects += drop(hash) }
      }
    }
  }

  /// Removes a segment and its followers; returns the versions that nothing replaces any more.
  private mutating func drop(_ hash: SegmentHash) -> [VersionID] {
    var uncovered: [VersionID] = []
    var next = [hash]
    while let hash = next.popLast() {
      guard chosen.remove(hash) != nil, let segment = waiting[hash] else { continue }
      for version in segment.versions {
        for id in version.covers {
          coverings[id, default: 1] -= 1
          if coverings[id] == 0 { uncovered.append(id) }
        }
      }
      next += followers[hash] ?? []
    }
    return uncovered
  }

  /// Returns the chosen segments, each after the one that it follows, and always in the same order for the same choice.
  func inOrder() -> [StateSegment] {
    var order: [StateSegment] = []
    var done: Set<SegmentHash> = []
    var next = chosen.filter { hash in
      guard let segment = waiting[hash], !segment.links.isSnapshot, let previous = segment.links.previous else {
        return true
      }
      return !chosen.contains(previous)
    }.sorted(by: >)
    // Snapshots first: others may follow on from what they replace.
    next = next.filter { waiting[$0]?.links.isSnapshot != true } + next.filter { waiting[$0]?.links.isSnapshot == true }
    while let hash = next.popLast() {
      guard done.insert(hash).inserted, let segment = waiting[hash] else { continue }
      order.append(segment)
      next += (followers[hash] ?? []).filter(chosen.contains).sorted(by: >)
    }
    return order
  }
}
