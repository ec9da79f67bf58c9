/// The versions that a running game's state in a slot came from when it was captured.
package struct SaveOrigin: Hashable, Sendable {
  /// Counts the loads of the slot: a save made before a load is no parent of one made after it.
  package var load: UInt64
  /// What the load, or the list of slots, showed then.
  package var loaded: [VersionID]
  /// What the save replaces in addition: the heads shown before a delete or a restore, or the sides of a conflict.
  package var alsoReplaced: [VersionID]
  /// What the save doesn't replace in any case: the sides of a conflict that the game can't read.
  package var kept: [VersionID] = []
  /// Set if the save only changes the metadata of a version: that version. The game's next save continues from it only
  /// if the game's state came from that version.
  package var redescribed: VersionID?

  package init(load: UInt64, loaded: [VersionID], alsoReplaced: [VersionID] = [], redescribed: VersionID? = nil) {
    self.load = load
    self.loaded = loaded
    self.alsoReplaced = alsoReplaced
    self.redescribed = redescribed
  }
}

/// What the commits of a running game pass on to the next ones: the newest save in each slot, which the next save there
/// replaces.
///
/// A value: a commit receives the one that the commit before it returned, and returns another one if it succeeds. Both
/// share all but what the commit changed, so that a commit costs the same after ten thousand slots as after one.
package struct SaveLineage: Sendable {
  private struct Newest {
    var load: UInt64
    var id: VersionID
  }
  private var newest = PersistentMap<String, Newest>()
  /// By version that a game may have loaded before its slot left the cloud or came back: the version that is its
  /// substitute since.
  private var substitutes = PersistentMap<VersionID, VersionID>()

  package init() {}

  /// Returns the newest save of the running game in a slot, whatever was loaded since; nil if there is none.
  package func newest(in slot: String) -> VersionID? { newest[slot]?.id }

  /// Returns the versions that the player's state came from when a save was captured: what was loaded, or the game's
  /// own newest save since.
  package func versions(of origin: SaveOrigin, in slot: String) -> [VersionID] {
    if let newest = newest[slot], newest.load == origin.load { return current([newest.id]) }
    return current(origin.loaded)
  }

  /// Returns these versions, or their substitutes.
  ///
  /// A chain of substitutes ends, because its last version has none.
  package func current(_ ids: [VersionID]) -> [VersionID] {
    ids.map { id in
      var id = id
      while let next = substitutes[id] { id = next }
      return id
    }
  }

  /// Makes a save the newest one of its slot.
  package mutating func insert(_ id: VersionID, from origin: SaveOrigin, in slot: String) {
    newest[slot] = Newest(load: origin.load, id: id)
  }

  /// Substitutes versions that a game may have loaded.
  ///
  /// - Parameter new: For each version, its substitute.
  package mutating func substitute(_ new: [VersionID: VersionID]) {
    for (id, substitute) in new { substitutes[id] = substitute }
    // A chain that leads back to where it began would never end, so a new substitute has none itself.
    for id in new.values { substitutes[id] = nil }
  }
}
