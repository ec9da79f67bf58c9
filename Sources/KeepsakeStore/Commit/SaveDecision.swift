import KeepsakeReplication

/// What a save replaces and which slot key it goes under, given the state that the commits before it left.
struct SaveDecision {
  /// The slot key whose versions the game sees: the synced one, or the local one.
  let key: SlotKey
  /// Never `game` or `file`.
  let parents: SaveParents
  /// The existing version that is identical to the save, if any. Then no new one is needed.
  let unchanged: VersionID?
  /// The versions that the save would replace and doesn't, because they are of another type, and why.
  var otherTypes: [(version: VersionID, objection: String)] = []

  /// - Parameters:
  ///   - save: Its contents, if it has any, are already in the store.
  ///   - mayBeUnchanged: Whether a save that only repeats the current version makes no new one.
  init(on save: SaveDraft, mayBeUnchanged: Bool, after lineage: SaveLineage, in transaction: StoreTransaction) throws {
    key = try transaction.key(of: save.slot)
    switch save.parents {
    case .versions, .everyHead:
      (parents, unchanged) = (save.parents, nil)
    case .game(let origin):
      let replaced = Set(lineage.versions(of: origin, in: save.slot)).union(lineage.current(origin.alsoReplaced))
        .subtracting(lineage.current(origin.kept))
        .sorted()
      var versions = try transaction.onOneSide(replaced, of: key)
      if let check = save.typeCheck, lineage.newest(in: save.slot) == nil {
        let others = try Self.ofOtherTypes(versions, check, in: transaction)
        versions.removeAll { id in others.contains { $0.version == id } }
        otherTypes = others
      }
      parents = .versions(versions)
      unchanged = mayBeUnchanged ? try Self.same(as: save, replacing: versions, at: key, in: transaction) : nil
    case .file(let others):
      let file = try FileParents(of: save, at: key, additionalParents: lineage.current(others), in: transaction)
      (parents, unchanged) = (.versions(file.versions), file.same)
    }
  }

  /// Costs reading the versions.
  private static func ofOtherTypes(
    _ versions: [VersionID], _ check: SaveTypeCheck, in transaction: StoreTransaction
  ) throws -> [(version: VersionID, objection: String)] {
    try versions.compactMap { id in
      guard let record = try transaction.version(id)?.record, !record.tombstone else { return nil }
      do {
        return try check.objection(transaction.plainBytes(of: record)).map { (id, $0) }
      } catch let error as StoreError where [.damaged, .missing, .tooLarge].contains(error.code) {
        // Its type can't be known any more. `load` reports the damage.
        return nil
      }
    }
  }

  /// Returns the version that the slot already shows, if the save would only repeat it.
  private static func same(
    as save: SaveDraft, replacing versions: [VersionID], at key: SlotKey, in transaction: StoreTransaction
  ) throws -> VersionID? {
    guard versions.count == 1, case .stored(let contents, _) = save.content,
      let version = try transaction.version(versions[0]),
      !version.record.tombstone, version.record.contents == contents, version.record.metadata == save.metadata,
      try transaction.heads(of: key).contains(versions[0])
    else { return nil }
    return versions[0]
  }
}

extension StoreTransaction {
  /// Drops the versions that are on the other side of the border between this device and the cloud: nothing on this
  /// side replaces them.
  func onOneSide(_ ids: [VersionID], of key: SlotKey) throws -> [VersionID] {
    try ids.filter { id in
      guard let other = try version(id)?.record.key else { return true }
      return other == key || other.synced != key.synced
    }
  }
}
