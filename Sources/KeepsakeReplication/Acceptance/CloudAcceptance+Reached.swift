// Which devices have seen what: each says with every exchange how far it has come, and the cloud remembers the last such word.
extension CloudAcceptance {
  /// Takes down how far the device has come that asks. Moves nothing, so that nobody is woken by it, and writes nothing where it
  /// stands as before.
  ///
  /// Only what the device presents counts, never what it was answered: an answer may be lost. A cursor between two pages, or with something staged
  /// beside it, says nothing, because what it has passed isn't all here and shown.
  static func recordReached(
    _ request: ExchangeRequest, by device: DeviceID, in storage: inout some ContainerStorage
  ) throws {
    let isWhole = request.cursor.ahead == nil && !request.hasStaged
    guard isWhole || storage.faults.countsStagedAsReached else { return }
    // The last word, also where it is less: a store that was set back to a backup lacks what it had.
    try storage.setReached(request.cursor.seq, by: device)
  }

  /// By version, the devices that have it, or one that replaced it: those whose last word is a cursor that has passed its newest change.
  ///
  /// None for a version that the cloud doesn't have, and for one that nobody could load because a content of it is damaged or lost here: who was given
  /// it may have gone on without that, and hears of it again when it is mended.
  package static func devices(
    holding versions: [VersionID], in storage: some ContainerStorage
  ) throws -> [VersionID: Set<DeviceID>] {
    let reached = try storage.reached()
    // Once for all versions: much may be damaged.
    let damaged = try storage.suspectContents().reduce(into: Set()) { $0.formUnion(try storage.heads(needing: $1)) }
    return try versions.reduce(into: [:]) { result, id in
      result[id] = []
      guard let version = try storage.version(id) else { return }
      let canBeLoaded = try !damaged.contains(id) && version.record.contents.allSatisfy(storage.hasContent)
      guard try canBeLoaded || storage.isCovered(id) else { return }
      result[id] = Set(reached.filter { $0.value >= version.seq }.keys)
    }
  }

  /// The same of one version.
  package static func devices(holding id: VersionID, in storage: some ContainerStorage) throws -> Set<DeviceID> {
    try devices(holding: [id], in: storage)[id] ?? []
  }
}
