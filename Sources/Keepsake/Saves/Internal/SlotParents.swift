import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// Knows, for each slot, which versions the running game's state came from: what its next save replaces.
///
/// That is what the game loaded, or its own newest save since; never what has meanwhile arrived. It belongs to the process,
/// not to the store: a game that starts again loads again.
final class SlotParents: Sendable {
  /// Where a capture stands, fixed when it is made.
  struct Snapshot: Sendable {
    var slot: String
    /// Counts the loads: a save made before a load is no basis for one made after it.
    var load: UInt64
    var loaded: SaveParents
  }
  /// The newest save that a load was followed by.
  struct Saved: Sendable {
    var load: UInt64
    var id: VersionID
  }

  private struct Entry {
    var load: UInt64 = 0
    /// How often the game went on from something that its own newest save hadn't gone into.
    var branch: UInt64 = 0
    /// Nil before the first load.
    var loaded: SaveParents?
    /// The heads that stood here when the game began, or that it was shown since: what a save of a game that never loaded
    /// replaces. Never what arrived meanwhile, which nobody has seen.
    var shown: [VersionID] = []
    var saved: Saved?
    var pending: PendingCommit<GameCore.Committed>?
  }
  private let slotParents = Mutex<[String: Entry]>([:])
  /// By versions that a game may have loaded before their slot left the cloud, or came back: what stands for them since.
  private let substitutes = Mutex<[VersionID: VersionID]>([:])

  /// Notes what stands for what. Returns what was noted before, for `restoreSubstitutes`.
  func substitute(_ replacements: [VersionID: VersionID]) -> [VersionID: VersionID] {
    substitutes.withLock { substitutes in
      let before = substitutes
      substitutes.merge(replacements) { _, new in new }
      // Back to where it began: going on would never end.
      for id in replacements.values { substitutes[id] = nil }
      return before
    }
  }

  func restoreSubstitutes(_ before: [VersionID: VersionID]) { substitutes.withLock { $0 = before } }

  /// These, or what stands for them by now. A chain ends: what something stands for last stands for itself.
  func current(_ ids: [VersionID]) -> [VersionID] {
    substitutes.withLock { substitutes in
      ids.map { id in
        var id = id
        while let next = substitutes[id] { id = next }
        return id
      }
    }
  }

  /// The game took what these versions made: its next save replaces them.
  func loaded(_ slot: String, _ parents: SaveParents) {
    slotParents.withLock { slotParents in
      var entry = slotParents[slot] ?? Entry()
      entry.load += 1
      entry.loaded = parents
      if let saved = entry.saved, case .versions(let ids) = parents, !ids.contains(saved.id) { entry.branch += 1 }
      slotParents[slot] = entry
    }
  }

  /// Under which number the counters in the slot's saves are counted: the store's own, and another one on each branch.
  ///
  /// Two saves that stand beside each other, as before the player has chosen, may both be of this process. Counted under one number, the greater
  /// count would be taken for both when they are merged.
  func writer(in slot: String, of store: WriterID) -> UInt64 {
    let branch = slotParents.withLock { $0[slot]?.branch ?? 0 }
    return branch == 0 ? store.value : store.alias([branch]).value
  }

  func snapshot(_ slot: String) -> Snapshot {
    slotParents.withLock { slotParents in
      let entry = slotParents[slot] ?? Entry()
      return Snapshot(slot: slot, load: entry.load, loaded: entry.loaded ?? .versions(entry.shown))
    }
  }

  /// The game was shown these heads of the slot.
  func show(_ slot: String, _ heads: [VersionID]) {
    slotParents.withLock { $0[slot, default: Entry()].shown = heads }
  }

  /// The same for many slots.
  func show(_ heads: [String: [VersionID]]) {
    slotParents.withLock { slotParents in
      for (slot, ids) in heads { slotParents[slot, default: Entry()].shown = ids }
    }
  }

  func shown(_ slot: String) -> [VersionID] { slotParents.withLock { $0[slot]?.shown ?? [] } }

  /// What the capture replaces. Called in the order of the commits, when those before it are decided: a capture that failed
  /// is no basis.
  func parents(of snapshot: Snapshot) -> SaveParents {
    let parents = slotParents.withLock { slotParents -> SaveParents in
      if let saved = slotParents[snapshot.slot]?.saved, saved.load == snapshot.load { return .versions([saved.id]) }
      return snapshot.loaded
    }
    guard case .versions(let ids) = parents else { return parents }
    return .versions(current(ids))
  }

  /// Remembers a save; gives what was remembered before, for `restore`.
  func saved(_ snapshot: Snapshot, as id: VersionID) -> Saved? {
    slotParents.withLock { slotParents in
      let before = slotParents[snapshot.slot]?.saved
      slotParents[snapshot.slot, default: Entry()].saved = Saved(load: snapshot.load, id: id)
      return before
    }
  }

  func restore(_ slot: String, to before: Saved?) {
    slotParents.withLock { $0[slot, default: Entry()].saved = before }
  }

  /// The capture made last, for a load that has to come after it.
  func setPending(_ pending: PendingCommit<GameCore.Committed>, in slot: String) {
    slotParents.withLock { $0[slot, default: Entry()].pending = pending }
  }

  func pending(in slot: String) -> PendingCommit<GameCore.Committed>? { slotParents.withLock { $0[slot]?.pending } }

  /// The captures made last that are not decided yet, of all slots.
  func undecided() -> [PendingCommit<GameCore.Committed>] {
    slotParents.withLock { slotParents in slotParents.values.compactMap(\.pending).filter { $0.result == nil } }
  }
}
