import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// Knows, for each slot, which versions the running game's state came from: what its next save replaces.
///
/// That is what the game loaded, or its own newest save since; never what has meanwhile arrived. It belongs to the process,
/// not to the store: a game that starts again loads again.
final class SlotLineages: Sendable {
  /// Where a capture stands, fixed when it is made.
  struct Snapshot: Sendable {
    var slot: String
    /// Counts the loads: a save made before a load is no basis for one made after it.
    var load: UInt64
    var loaded: SaveBasis
  }
  /// The newest save that a load was followed by.
  struct Saved: Sendable {
    var load: UInt64
    var id: VersionID
  }

  private struct Lineage {
    var load: UInt64 = 0
    /// How often the game went on from something that its own newest save hadn't gone into.
    var branch: UInt64 = 0
    /// Nil before the first load.
    var loaded: SaveBasis?
    /// The heads that stood here when the game began, or that it was shown since: what a save of a game that never loaded
    /// replaces. Never what arrived meanwhile, which nobody has seen.
    var shown: [VersionID] = []
    var saved: Saved?
    var pending: PendingCommit<GameCore.Committed>?
  }
  private let lineages = Mutex<[String: Lineage]>([:])
  /// By versions that a game may have loaded before their slot left the cloud, or came back: what stands for them since.
  private let standing = Mutex<[VersionID: VersionID]>([:])

  /// Notes what stands for what. Returns what was noted before, for `standAgain`.
  func stand(_ stands: [VersionID: VersionID]) -> [VersionID: VersionID] {
    standing.withLock { standing in
      let before = standing
      standing.merge(stands) { _, new in new }
      // Back to where it began: going on would never end.
      for id in stands.values { standing[id] = nil }
      return before
    }
  }

  func standAgain(_ before: [VersionID: VersionID]) { standing.withLock { $0 = before } }

  /// These, or what stands for them by now. A chain ends: what something stands for last stands for itself.
  func current(_ ids: [VersionID]) -> [VersionID] {
    standing.withLock { standing in
      ids.map { id in
        var id = id
        while let next = standing[id] { id = next }
        return id
      }
    }
  }

  /// The game took what these versions made: its next save replaces them.
  func loaded(_ slot: String, _ basis: SaveBasis) {
    lineages.withLock { lineages in
      var lineage = lineages[slot] ?? Lineage()
      lineage.load += 1
      lineage.loaded = basis
      if let saved = lineage.saved, case .versions(let ids) = basis, !ids.contains(saved.id) { lineage.branch += 1 }
      lineages[slot] = lineage
    }
  }

  /// Under which number the counters in the slot's saves are counted: the store's own, and another one on each branch.
  ///
  /// Two saves that stand beside each other, as before the player has chosen, may both be of this process. Counted under one number, the greater
  /// count would be taken for both when they are merged.
  func writer(in slot: String, of store: WriterID) -> UInt64 {
    let branch = lineages.withLock { $0[slot]?.branch ?? 0 }
    return branch == 0 ? store.value : store.alias([branch]).value
  }

  func snapshot(_ slot: String) -> Snapshot {
    lineages.withLock { lineages in
      let lineage = lineages[slot] ?? Lineage()
      return Snapshot(slot: slot, load: lineage.load, loaded: lineage.loaded ?? .versions(lineage.shown))
    }
  }

  /// The game was shown these heads of the slot.
  func show(_ slot: String, _ heads: [VersionID]) {
    lineages.withLock { $0[slot, default: Lineage()].shown = heads }
  }

  /// The same for many slots.
  func show(_ heads: [String: [VersionID]]) {
    lineages.withLock { lineages in
      for (slot, ids) in heads { lineages[slot, default: Lineage()].shown = ids }
    }
  }

  func shown(_ slot: String) -> [VersionID] { lineages.withLock { $0[slot]?.shown ?? [] } }

  /// What the capture replaces. Called in the order of the commits, when those before it are decided: a capture that failed
  /// is no basis.
  func basis(of snapshot: Snapshot) -> SaveBasis {
    let basis = lineages.withLock { lineages -> SaveBasis in
      if let saved = lineages[snapshot.slot]?.saved, saved.load == snapshot.load { return .versions([saved.id]) }
      return snapshot.loaded
    }
    guard case .versions(let ids) = basis else { return basis }
    return .versions(current(ids))
  }

  /// Remembers a save; gives what was remembered before, for `restore`.
  func saved(_ snapshot: Snapshot, as id: VersionID) -> Saved? {
    lineages.withLock { lineages in
      let before = lineages[snapshot.slot]?.saved
      lineages[snapshot.slot, default: Lineage()].saved = Saved(load: snapshot.load, id: id)
      return before
    }
  }

  func restore(_ slot: String, to before: Saved?) {
    lineages.withLock { $0[slot, default: Lineage()].saved = before }
  }

  /// The capture made last, for a load that has to come after it.
  func setPending(_ pending: PendingCommit<GameCore.Committed>, in slot: String) {
    lineages.withLock { $0[slot, default: Lineage()].pending = pending }
  }

  func pending(in slot: String) -> PendingCommit<GameCore.Committed>? { lineages.withLock { $0[slot]?.pending } }

  /// The captures made last that are not decided yet, of all slots.
  func undecided() -> [PendingCommit<GameCore.Committed>] {
    lineages.withLock { lineages in lineages.values.compactMap(\.pending).filter { $0.result == nil } }
  }
}
