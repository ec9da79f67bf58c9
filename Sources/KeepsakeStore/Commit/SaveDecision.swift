import KeepsakeReplication

/// What a save replaces, and where it will be, as the commits before it left the store.
struct SaveDecision {
  /// The slot's key that the game sees, in the cloud's reach or out of it.
  let key: SlotKey
  /// Never `game` or `file`.
  let parents: SaveParents
  /// The version that says the same already; no new one is needed then.
  let unchanged: VersionID?

  /// - Parameters:
  ///   - save: With its contents in the store, if it has any.
  ///   - mayBeUnchanged: Whether a save that only repeats what is there makes no version.
  init(on save: SaveDraft, mayBeUnchanged: Bool, after lineage: SaveLineage, in transaction: StoreTransaction) throws {
    key = try transaction.key(of: save.slot)
    switch save.parents {
    case .versions, .everyHead:
      (parents, unchanged) = (save.parents, nil)
    case .game(let origin):
      let replaced = Set(lineage.versions(of: origin, in: save.slot)).union(lineage.current(origin.alsoReplaced)).sorted()
      let versions = try transaction.onOneSide(replaced, of: key)
      parents = .versions(versions)
      unchanged = mayBeUnchanged ? try Self.same(as: save, replacing: versions, at: key, in: transaction) : nil
    case .file(let others):
      let file = try FileParents(of: save, at: key, additionalParents: lineage.current(others), in: transaction)
      (parents, unchanged) = (.versions(file.versions), file.same)
    }
  }

  /// The version that the slot shows already, if the save would only repeat it.
  private static func same(
    as save: SaveDraft, replacing versions: [VersionID], at key: SlotKey, in transaction: StoreTransaction
  ) throws -> VersionID? {
    guard versions.count == 1, case .stored(let contents, _) = save.content, let version = try transaction.version(versions[0]),
      !version.record.tombstone, version.record.contents == contents, version.record.metadata == save.metadata,
      try transaction.heads(of: key).contains(versions[0])
    else { return nil }
    return versions[0]
  }
}

extension StoreTransaction {
  /// Without what is on the other side of the border between this device and the cloud, where nothing of this side replaces it.
  func onOneSide(_ ids: [VersionID], of key: SlotKey) throws -> [VersionID] {
    try ids.filter { id in
      guard let other = try version(id)?.record.key else { return true }
      return other == key || other.synced != key.synced
    }
  }
}
