// Which devices have seen what: each reports with every exchange how far it has come, and the cloud remembers the
// latest report.
extension CloudAcceptance {
  /// Records how far the requesting device has come. This isn't a change of the container, so that no device is
  /// notified, and nothing is written if nothing is different.
  ///
  /// Only the cursor that the device sends counts, never the one that it was sent: a response may be lost. A cursor
  /// between two pages, or beside staged changes, doesn't count, because not all that it has passed is on the device
  /// and shown.
  static func recordReached(
    _ request: ExchangeRequest, by device: DeviceID, in storage: inout some ContainerStorage
  ) throws {
    let isWhole = request.cursor.ahead == nil && !request.hasStaged
    guard isWhole || storage.faults.countsStagedAsReached else { return }
    // The latest report counts, even if it is lower: a store that was restored from a backup lacks what it had.
    try storage.setReached(request.cursor.seq, by: device)
  }

  /// Returns by version the devices that have it, or one that replaced it: those whose latest report is a cursor that
  /// has passed its newest change.
  ///
  /// None for a version that the cloud doesn't have, and for a head that nobody can load because one of its contents is
  /// damaged or lost here: a device that got it may have gone on without that, and receives the version again when it
  /// is repaired.
  package static func devices(
    holding versions: [VersionID], in storage: some ContainerStorage
  ) throws -> [VersionID: Set<DeviceID>] {
    let reached = try storage.reached()
    var reads = ReadSet()
    (reads.versions, reads.needing) = (Set(versions), Set(try storage.suspectContents()))
    try storage.need(reads)
    reads.contents = Set(try versions.flatMap { try storage.version($0)?.record.contents ?? [] })
    try storage.need(reads)
    // Worked out once for all versions: many contents may be damaged.
    let damaged = try storage.suspectContents().reduce(into: Set()) { $0.formUnion(try storage.heads(needing: $1)) }
    return try versions.reduce(into: [:]) { result, id in
      result[id] = []
      guard let version = try storage.version(id) else { return }
      let canBeLoaded = try !damaged.contains(id) && version.record.contents.allSatisfy(storage.hasContent)
      guard try canBeLoaded || storage.isCovered(id) else { return }
      result[id] = Set(reached.filter { $0.value >= version.seq }.keys)
    }
  }

  /// Returns the devices that have one version, or one that replaced it.
  package static func devices(holding id: VersionID, in storage: some ContainerStorage) throws -> Set<DeviceID> {
    try devices(holding: [id], in: storage)[id] ?? []
  }
}
