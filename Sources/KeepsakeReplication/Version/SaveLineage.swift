/// From which versions a running game's state in a slot came when it was captured.
package struct SaveOrigin: Hashable, Sendable {
  /// Counts the loads of the slot: a save made before a load is no basis for one made after it.
  package var load: UInt64
  /// What the load, or the list of slots, showed then.
  package var loaded: [VersionID]
  /// What the save replaces besides: the heads shown before a delete or a restore, the sides of a conflict.
  package var alsoReplaced: [VersionID]
  /// Where the save only changes what is said about a version: that one. The game's next save goes on from it only if the game's state came
  /// from that version.
  package var redescribed: VersionID?

  package init(load: UInt64, loaded: [VersionID], alsoReplaced: [VersionID] = [], redescribed: VersionID? = nil) {
    self.load = load
    self.loaded = loaded
    self.alsoReplaced = alsoReplaced
    self.redescribed = redescribed
  }
}

/// What the commits of a running game leave behind for the next ones: the newest save in each slot, which the next save there replaces.
///
/// A value: a commit is handed the one that the commit before it left, and hands on another one if it succeeds.
package struct SaveLineage: Hashable, Sendable {
  private struct Newest: Hashable, Sendable {
    var load: UInt64
    var id: VersionID
  }
  private var newest: [String: Newest] = [:]
  /// By versions that a game may have loaded before their slot left the cloud, or came back: the version that is the same one since.
  private var substitutes: [VersionID: VersionID] = [:]

  package init() {}

  /// The newest save of the running game in a slot, whatever was loaded since; nil if there is none.
  package func newest(in slot: String) -> VersionID? { newest[slot]?.id }

  /// The versions that went into what the player saw when a save was captured: what was loaded, or the game's own newest save since.
  package func versions(of origin: SaveOrigin, in slot: String) -> [VersionID] {
    if let newest = newest[slot], newest.load == origin.load { return current([newest.id]) }
    return current(origin.loaded)
  }

  /// These versions, or what they were substituted by.
  ///
  /// A chain ends: the last one of it has no substitute.
  package func current(_ ids: [VersionID]) -> [VersionID] {
    ids.map { id in
      var id = id
      while let next = substitutes[id] { id = next }
      return id
    }
  }

  /// Makes a save the newest of its slot.
  package mutating func insert(_ id: VersionID, from origin: SaveOrigin, in slot: String) {
    newest[slot] = Newest(load: origin.load, id: id)
  }

  /// Substitutes versions that a game may have loaded.
  ///
  /// - Parameter new: By a version, the one that is the same since.
  package mutating func substitute(_ new: [VersionID: VersionID]) {
    substitutes.merge(new) { _, new in new }
    // Back to where it began: going on would never end.
    for id in new.values { substitutes[id] = nil }
  }
}
