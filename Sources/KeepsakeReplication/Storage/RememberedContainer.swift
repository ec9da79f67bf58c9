/// What is known of a container after a decision about it was committed: enough for the same device's next save, which
/// then needs nothing loaded.
///
/// Whatever changes a container counts its revision up. So a decision over what is remembered is as good as one over
/// what was loaded, if it is committed: the container was still at that revision. One that would change nothing, or
/// fail, has to be made again over what is loaded. That a save's own items are new is assumed, and shown by the commit
/// (``Snapshot/Assumption``).
package struct RememberedContainer: Sendable {
  /// Of a container with more slots, heads and cells than this that the device works on, or more devices, nothing is
  /// remembered; nor is a request decided over it that has more items than this.
  package static let mostItems = 64
  /// The same for what they take in memory, roughly.
  package static let mostBytes = 8_192
  /// Of a head with more contents or custom values than this.
  package static let mostParts = 16

  /// The container at its revision, with nothing that only one request asks for.
  private var snapshot: Snapshot
  /// Those of slots, heads and cells.
  private var bytes = 0

  package var revision: UInt64 { snapshot.revision }

  /// Remembers a container after a decision about it was committed.
  ///
  /// - Parameter earlier: What was remembered of it before. It counts if nobody else has changed the container since.
  /// - Returns: Nil if the decision was no ordinary save of a device, or there is too much to remember.
  package init?(after decided: SnapshotContainer, and earlier: RememberedContainer?) {
    let (before, writes) = (decided.base, decided.writes)
    guard writes.isOrdinary, let device = before.known.device, before.device?.isRetired == false,
      writes.device.map({ $0.id == device }) ?? true, before.known.suspects, before.suspects.isEmpty
    else { return nil }
    let isSame = earlier?.revision == before.revision && earlier?.snapshot.known.device == device
    if let earlier, isSame {
      self = earlier
    } else {
      snapshot = Snapshot(revision: before.revision, position: before.position, known: ReadSet())
    }
    // What was loaded is the same, or more.
    if before.assumption == nil { add(before) } else if !isSame { return nil }
    follow(writes, by: device)
    let names = snapshot.known.slots.reduce(0) { $0 + $1.text.utf8.count }
    guard snapshot.heads.count + snapshot.versions.count + snapshot.known.cells.count <= Self.mostItems,
      snapshot.reached.count <= Self.mostItems,
      bytes + names <= Self.mostBytes,
      snapshot.versions.values.allSatisfy({
        max($0.record.contents.count, $0.record.metadata.custom.count) <= Self.mostParts
      })
    else { return nil }
  }

  // MARK: What was loaded

  private mutating func add(_ loaded: Snapshot) {
    snapshot.known.device = loaded.known.device
    snapshot.device = loaded.device
    // Those that weren't asked for would be missing.
    snapshot.device?.chains = []
    snapshot.known.suspects = true
    (snapshot.known.used, snapshot.used) = (loaded.known.used, loaded.used)
    (snapshot.known.reached, snapshot.reached) = (loaded.known.reached, loaded.reached)
    for slot in loaded.known.slots {
      for id in snapshot.heads[slot] ?? [] { remove(id) }
      snapshot.known.slots.insert(slot)
      snapshot.heads[slot] = []
      for version in (loaded.heads[slot] ?? []).compactMap({ loaded.versions[$0] }) {
        add(version, of: slot) { loaded.contents[$0] }
      }
    }
    for key in loaded.known.cells { set(key, loaded.cells[key]) }
  }

  // MARK: What was committed

  private mutating func follow(_ writes: WriteSet, by device: DeviceID) {
    snapshot.revision += 1
    snapshot.position = writes.position ?? snapshot.position
    snapshot.used += writes.used
    if let change = writes.device {
      if let visit = change.visit { snapshot.device?.seenMilliseconds = visit.milliseconds }
      if let reached = change.reached {
        snapshot.device?.reached = reached
        snapshot.reached[device] = reached == 0 ? nil : reached
      }
    }
    for (key, cell) in writes.cells { set(key, cell) }
    let contents = Dictionary(
      writes.contents.map { ($0.hash, Snapshot.Content(base: $0.base, size: Int64($0.bytes.count))) }
    ) { $1 }
    // A save may build on a content of the one that it replaces.
    let earlier = snapshot.contents
    for id in writes.covered.union(writes.versions.keys) { remove(id) }
    for (id, written) in writes.versions where written.isHead && !writes.covered.contains(id) {
      add(written.version, of: ExactText(written.version.record.slot)) { contents[$0] ?? earlier[$0] }
    }
  }

  private mutating func set(_ key: CellKey, _ cell: SequencedCell?) {
    bytes += (cell?.update.size ?? 0) - (snapshot.cells[key]?.update.size ?? 0)
    if snapshot.known.cells.insert(key).inserted { bytes += key.collection.utf8.count + key.key.utf8.count }
    snapshot.cells[key] = cell
  }

  /// Adds a head of a slot, unless that slot's heads aren't known.
  private mutating func add(
    _ version: SequencedVersion, of slot: ExactText, _ content: (ContentHash) -> Snapshot.Content?
  ) {
    guard snapshot.known.slots.contains(slot) else { return }
    snapshot.heads[slot, default: []].append(version.record.id)
    snapshot.add(version, isCovered: false)
    bytes += version.record.size
    for hash in version.record.contents {
      // Of one that is damaged, what is loaded will tell.
      guard let known = content(hash), !known.isSuspect, !known.isLost else { continue }
      snapshot.contents[hash] = known
      snapshot.known.contents.insert(hash)
    }
  }

  /// Forgets a version, which is no head any more, and its contents.
  private mutating func remove(_ id: VersionID) {
    guard let version = snapshot.versions.removeValue(forKey: id) else { return }
    bytes -= version.record.size
    snapshot.known.versions.remove(id)
    snapshot.coverage[id] = nil
    snapshot.heads[ExactText(version.record.slot)]?.removeAll { $0 == id }
    for hash in version.record.contents {
      snapshot.contents[hash] = nil
      snapshot.known.contents.remove(hash)
    }
  }

  // MARK: What a decision sees

  /// Returns the container as a decision sees it; nil if this isn't enough for what it reads, or if it reads no item
  /// that it could change.
  package func snapshot(for reads: ReadSet) -> Snapshot? {
    let items = reads.versions.count + reads.cells.count
    guard items > 0, items + reads.contents.count <= Self.mostItems, hasAll(reads) else { return nil }
    var snapshot = snapshot
    let assumption = Snapshot.Assumption(
      position: snapshot.position, newVersions: reads.versions.subtracting(snapshot.known.versions),
      newContents: reads.contents.subtracting(snapshot.known.contents))
    snapshot.assumption = assumption
    snapshot.known.versions.formUnion(assumption.newVersions)
    snapshot.known.contents.formUnion(assumption.newContents)
    (snapshot.known.marks, snapshot.known.changes) = (reads.marks, reads.changes)
    snapshot.changes = Snapshot.Changes(through: snapshot.position.seq)
    return snapshot
  }

  private func hasAll(_ reads: ReadSet) -> Bool {
    let known = snapshot.known
    var rest = reads
    if rest.device == known.device { rest.device = nil }
    if rest.changes?.after == snapshot.position.seq { rest.changes = nil }
    rest.marks.subtract([0, snapshot.position.seq])
    rest.reached = rest.reached && !known.reached
    rest.used = rest.used && !known.used
    rest.suspects = false
    rest.slots.subtract(known.slots)
    rest.cells.subtract(known.cells)
    rest.slotsOfVersions.subtract(known.versions)
    // Others of these are assumed to be new.
    (rest.versions, rest.contents) = ([], [])
    return rest.isEmpty
  }
}
