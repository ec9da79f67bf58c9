import KeepsakeReplication

/// The container that a folder's segments form together, and which of them are in it.
///
/// Segments arrive in any order. One is applied when what its store wrote before is applied (or a snapshot that
/// replaces that), and when no version becomes visible without its contents. A segment is never applied in part.
struct FolderReplica {
  private(set) var memory: MemoryContainer
  /// For each applied segment, the container's seq after it was applied.
  private(set) var applied: [SegmentHash: UInt64] = [:]
  /// What applied snapshots name as replaced.
  private(set) var replaced: Set<SegmentHash> = []
  /// The last segment of this store's own chain; nil before the first.
  private(set) var tip: SegmentHash?
  /// Segments applied since this store last wrote, in order: what its next segment may record as seen.
  private var unmentioned: [SegmentHash] = []

  /// The seq after which its changes begin.
  let start: UInt64
  private let container: ContainerID

  /// Creates a replica whose changes are numbered from the device's cursor on.
  init(_ container: ContainerID, startingAt cursor: Cursor, tip: SegmentHash?) {
    self.container = container
    self.tip = tip
    start = cursor.seq
    memory = MemoryContainer(epoch: cursor.epoch)
    if cursor.seq > 0 { memory.advance(to: cursor) }
  }

  /// The mark of every change from here on: it is valid as long as this store's own chain is in the folder.
  var mark: UInt64 { tip.map(StateSegment.mark) ?? StateSegment.mark(ofReaderIn: container) }

  func isIn(_ hash: SegmentHash) -> Bool { applied[hash] != nil || replaced.contains(hash) }

  // MARK: Applying

  /// Joins segments whose items the device has already, without new changes for it.
  mutating func applyQuietly(_ segments: [StateSegment]) {
    let seq = memory.position().seq
    for segment in segments where !contradicts(segment) {
      join(segment) { _ in seq }
      note(segment, at: seq)
    }
  }

  /// Joins every one of `waiting` that can be joined, and returns which were; those that contradict what is here are in
  /// `refused`.
  mutating func apply(
    _ waiting: [SegmentHash: StateSegment], isComplete: (ContentHash) throws(TransportFailure) -> Bool
  ) throws(TransportFailure) -> (applied: [SegmentHash], refused: [SegmentHash]) {
    var choice = SegmentChoice(waiting, after: self)
    try choice.dropIncomplete(in: memory, isComplete: isComplete)
    var (done, refused): ([SegmentHash], [SegmentHash]) = ([], [])
    for segment in choice.inOrder() {
      // The one before it may have been refused just now.
      guard segment.links.isSnapshot || segment.links.previous.map(isIn) ?? true else { continue }
      guard !contradicts(segment) else {
        refused.append(segment.hash)
        continue
      }
      join(segment) { replica in replica.advance() }
      note(segment, at: memory.position().seq)
      unmentioned.append(segment.hash)
      done.append(segment.hash)
    }
    return (done, refused)
  }

  private mutating func note(_ segment: StateSegment, at seq: UInt64) {
    applied[segment.hash] = seq
    replaced.formUnion(segment.links.replaces)
  }

  private mutating func advance() -> UInt64 {
    let seq = memory.position().seq + 1
    memory.advance(to: Cursor(epoch: memory.position().epoch, seq: seq, mark: mark))
    return seq
  }

  /// Returns whether a version differs from one of the same id that is here, or replaces one of another slot. No
  /// correct device writes such a segment.
  private func contradicts(_ segment: StateSegment) -> Bool {
    segment.versions.contains { version in
      if let known = memory.version(version.id)?.record, !known.isSame(as: version) { return true }
      return version.covers.contains { memory.version($0).map { $0.record.slot != version.slot } ?? false }
    }
  }

  private mutating func join(_ segment: StateSegment, seq: (inout Self) -> UInt64) {
    for var update in segment.cells {
      let stored = memory.cell(update.key)?.update
      if let stored { update.state = stored.state.joined(with: update.state) }
      // A value that exceeds its limit when it is joined stays as it is here; everything else continues.
      guard update != stored, ExchangeRules.objection(to: update) == nil else { continue }
      let seq = seq(&self)
      memory.setCell(SequencedCell(update: update, seq: seq))
    }
    for var record in segment.versions {
      let stored = memory.version(record.id)?.record
      if let stored {
        record = stored.joined(with: record)
        if record.covers.count > ExchangeRules.maximumCovers { record.covers = stored.covers }
      }
      for id in record.covers { memory.markCovered(id) }
      guard stored != record else { continue }
      let seq = seq(&self)
      memory.putVersion(SequencedVersion(record: record, seq: seq))
    }
  }

  // MARK: Writing

  /// Returns the versions as they were accepted: that one is no longer provisional is recorded once, by the device that
  /// found no other head.
  static func taken(_ versions: [VersionRecord], in memory: MemoryContainer) -> [VersionRecord] {
    var names: Set<VersionID> = []
    return versions.compactMap { version in
      guard names.insert(version.id).inserted else { return nil }
      var version = version
      version.covers = Set(version.covers).sorted()
      version.provisional = memory.version(version.id)?.record.provisional ?? version.provisional
      return version
    }
  }

  /// Returns what this store's next segment records as seen: everything that is applied and wasn't recorded before.
  ///
  /// The device certainly has it if that segment is the last of its chain: the response with the mark also contains
  /// everything that is here.
  func seen(_ links: (SegmentHash) -> StateSegment.Links?) -> [SegmentHash] {
    // A segment that others of these continue needn't be named.
    var inner: Set<SegmentHash> = []
    for hash in unmentioned {
      guard let links = links(hash) else { continue }
      if let previous = links.previous { inner.insert(previous) }
      inner.formUnion(links.replaces)
    }
    return Array(unmentioned.filter { !inner.contains($0) }.prefix(FolderLimits.seen))
  }

  /// Takes over the container after an exchange, and the segment that contains it, which is in the folder now.
  mutating func wrote(_ segment: StateSegment, _ next: MemoryContainer) {
    memory = next
    tip = segment.hash
    let mentioned = Set(segment.links.seen)
    // A full list leaves the rest for the next segment.
    if mentioned.count < FolderLimits.seen {
      unmentioned = []
    } else {
      unmentioned.removeAll(where: mentioned.contains)
    }
    // One more change without an item, whose mark shows that this segment is there.
    note(segment, at: advance())
  }

  /// Takes over the parts of offers that an exchange left there, and nothing else.
  mutating func keepsOffers(of next: MemoryContainer) { memory.holdOffers(of: next) }

  /// Returns every cell and version, for a snapshot.
  func everything() -> (cells: [CellUpdate], versions: [VersionRecord]) {
    var (cells, versions): ([CellUpdate], [VersionRecord]) = ([], [])
    for change in memory.changes(after: 0, limit: .max) {
      switch change.item {
      case .cell(let update): cells.append(update)
      case .version(let record): versions.append(record)
      }
    }
    return (cells, versions)
  }

  /// Returns the contents that heads need, and those of the versions that they directly replaced or come from, which
  /// merging them may need.
  func neededContents() throws -> (heads: Set<ContentHash>, ancestors: Set<ContentHash>) {
    var (heads, ancestors): (Set<ContentHash>, Set<ContentHash>) = ([], [])
    for slot in memory.slots() {
      let shown = memory.heads(of: slot)
      for id in shown { heads.formUnion(memory.version(id)?.record.contents ?? []) }
      let needed = try Resolution.needed(
        by: shown, record: { memory.version($0)?.record }, isShared: { memory.version($0) != nil })
      for id in needed { ancestors.formUnion(memory.version(id)?.record.contents ?? []) }
    }
    return (heads, ancestors)
  }
}

/// Marks of changes aren't random here: each identifies the store's own last segment.
struct ConstantMarks: RandomNumberGenerator {
  let mark: UInt64

  func next() -> UInt64 { mark }
}
