/// What is known of a container after a decision about it was committed: enough for the same device's next save, which
/// then needs nothing loaded.
///
/// Whatever changes a container counts its revision up. So a decision over what is remembered is as good as one over
/// what was loaded, if it is committed: the container was still at that revision. One that would change nothing, or
/// fail, has to be made again over what is loaded. That a save's own items are new is assumed, and shown by the commit
/// (``Snapshot/Assumption``).
package struct RememberedContainer: Sendable {
  /// Of a container with more heads and cells than this that the device works on, nothing is remembered.
  package static let mostItems = 64
  /// The same for the bytes of their records and states.
  package static let mostBytes = 8_192

  package let revision: UInt64
  private let position: Cursor
  private let deviceID: DeviceID
  private var device: Snapshot.Device
  private let used: Int64?
  private let reached: [DeviceID: UInt64]?
  /// The heads of slots that the device works on, with their records and contents.
  private var heads: [ExactText: [VersionID]] = [:]
  private var versions: [VersionID: SequencedVersion] = [:]
  private var contents: [ContentHash: Snapshot.Content] = [:]
  /// Cells that the device works on; nil for those that don't exist.
  private var cells: [CellKey: SequencedCell?] = [:]

  /// Remembers a container after a decision about it was committed.
  ///
  /// - Parameter earlier: What was remembered of it before. It counts if nobody else has changed the container since.
  /// - Returns: Nil if the decision was no ordinary save of a device, or there is too much to remember.
  package init?(after decided: SnapshotContainer, and earlier: RememberedContainer?) {
    let (before, writes) = (decided.base, decided.writes)
    guard writes.isOrdinary, let deviceID = before.known.device, var device = before.device, !device.isRetired,
      before.known.suspects, before.suspects.isEmpty
    else { return nil }
    if let change = writes.device {
      guard change.id == deviceID else { return nil }
      device.seenMilliseconds = change.visit?.milliseconds ?? device.seenMilliseconds
      device.reached = change.reached ?? device.reached
    }
    // Those that weren't asked for would be missing.
    device.chains = []
    (revision, position) = (before.revision + 1, decided.position())
    (self.deviceID, self.device) = (deviceID, device)
    do {
      used = before.known.used ? try decided.usedBytes() : nil
      reached = before.known.reached ? try decided.reached() : nil
      for slot in before.known.slots { try remember(decided.heads(of: slot.text), of: slot, in: decided) }
      for key in before.known.cells { cells[key] = .some(try decided.cell(key)) }
    } catch {
      // It asks for what wasn't loaded.
      return nil
    }
    if let earlier, earlier.revision == before.revision, earlier.deviceID == deviceID { add(earlier, butNot: writes) }
    let bytes =
      versions.values.reduce(0) { $0 + $1.record.size } + cells.values.reduce(0) { $0 + ($1?.update.size ?? 0) }
    guard heads.count + versions.count + cells.count <= Self.mostItems, bytes <= Self.mostBytes else { return nil }
  }

  private mutating func remember(_ ids: [VersionID], of slot: ExactText, in decided: SnapshotContainer) throws {
    heads[slot] = ids
    for id in ids {
      guard let version = try decided.version(id) else { continue }
      versions[id] = version
      // A content of which nothing was asked isn't known.
      for hash in version.record.contents {
        if let known = try? decided.facts(hash), !known.isSuspect, !known.isLost { contents[hash] = known }
      }
    }
  }

  /// Adds what was known before of slots and cells that the decision didn't ask for.
  private mutating func add(_ earlier: RememberedContainer, butNot writes: WriteSet) {
    let written = Set(writes.versions.values.map { ExactText($0.version.record.slot) })
    for (slot, ids) in earlier.heads where heads[slot] == nil && !written.contains(slot) {
      heads[slot] = ids.filter { !writes.covered.contains($0) }
      for id in heads[slot] ?? [] {
        versions[id] = earlier.versions[id]
        for hash in earlier.versions[id]?.record.contents ?? [] {
          contents[hash] = contents[hash] ?? earlier.contents[hash]
        }
      }
    }
    cells.merge(earlier.cells.filter { writes.cells[$0.key] == nil }) { new, _ in new }
  }

  /// Returns the container as a decision sees it; nil if this isn't enough for what it reads, or if it reads no item
  /// that it could change.
  package func snapshot(for reads: ReadSet) -> Snapshot? {
    guard !reads.versions.isEmpty || !reads.cells.isEmpty, hasAll(reads) else { return nil }
    var known = reads
    known.reached = reached != nil
    known.used = used != nil
    known.versions.formUnion(versions.keys)
    known.slots.formUnion(heads.keys)
    known.contents.formUnion(contents.keys)
    known.cells.formUnion(cells.keys)
    var snapshot = Snapshot(revision: revision, position: position, known: known)
    snapshot.assumption = Snapshot.Assumption(
      position: position, newVersions: reads.versions.subtracting(versions.keys),
      newContents: reads.contents.subtracting(contents.keys))
    (snapshot.device, snapshot.reached, snapshot.used) = (device, reached ?? [:], used ?? 0)
    snapshot.changes = Snapshot.Changes(through: position.seq)
    (snapshot.heads, snapshot.versions, snapshot.contents) = (heads, versions, contents)
    snapshot.coverage = versions.mapValues { _ in false }
    snapshot.cells = cells.compactMapValues(\.self)
    return snapshot
  }

  private func hasAll(_ reads: ReadSet) -> Bool {
    var rest = reads
    if rest.device == deviceID { rest.device = nil }
    if rest.changes?.after == position.seq { rest.changes = nil }
    rest.marks.subtract([0, position.seq])
    rest.reached = rest.reached && reached == nil
    rest.used = rest.used && used == nil
    rest.suspects = false
    rest.slots.subtract(heads.keys)
    rest.cells.subtract(cells.keys)
    rest.slotsOfVersions.subtract(versions.keys)
    // Others of these are assumed to be new.
    (rest.versions, rest.contents) = ([], [])
    return rest.isEmpty
  }
}
