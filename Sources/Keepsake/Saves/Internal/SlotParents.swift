import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// Knows, for each slot, which versions the running game's state came from: what its next save replaces.
///
/// That is what the game loaded, or its own newest save since; never what has meanwhile arrived. It belongs to the process, not to the store:
/// a game that starts again loads again. What the game's commits leave behind is the store's to know (`SaveLineage`); this is told when they
/// are durable.
final class SlotParents: Sendable {
  private struct Entry {
    var load: UInt64 = 0
    /// How often the game went on from something that its own newest save hadn't gone into.
    var branch: UInt64 = 0
    /// Nil before the first load.
    var loaded: [VersionID]?
    /// The heads that were here when the game began, or that it was shown since: what a save of a game that never loaded replaces. Never what
    /// arrived meanwhile, which nobody has seen.
    var shown: [VersionID] = []
    var pending: PendingCommit<CommitPipeline.Committed>?
  }
  private struct State {
    var slots: [String: Entry] = [:]
    /// As the newest commit that is durable left it.
    var committed = SaveLineage()
  }
  private let state = Mutex(State())

  /// A commit is durable, and left this behind. To be called in the order of the commits.
  func adopt(_ entry: SaveLineage) { state.withLock { $0.committed = entry } }

  /// The game took what these versions made: its next save replaces them.
  func loaded(_ slot: String, _ parents: [VersionID]) {
    state.withLock { state in
      var entry = state.slots[slot] ?? Entry()
      entry.load += 1
      entry.loaded = parents
      if let newest = state.committed.newest(in: slot), !parents.contains(newest) { entry.branch += 1 }
      state.slots[slot] = entry
    }
  }

  /// Under which number the counters in the slot's saves are counted: the store's own, and another one on each branch.
  ///
  /// Two saves that stand beside each other, as before the player has chosen, may both be of this process. Counted under one number, the greater
  /// count would be taken for both when they are merged.
  func writer(in slot: String, of store: WriterID) -> UInt64 {
    let branch = state.withLock { $0.slots[slot]?.branch ?? 0 }
    return branch == 0 ? store.value : store.alias([branch]).value
  }

  /// What a save that is captured now comes from.
  func origin(in slot: String) -> SaveOrigin {
    state.withLock { state in
      let entry = state.slots[slot] ?? Entry()
      return SaveOrigin(load: entry.load, loaded: entry.loaded ?? entry.shown)
    }
  }

  /// The game was shown these heads of the slot.
  func show(_ slot: String, _ heads: [VersionID]) {
    state.withLock { $0.slots[slot, default: Entry()].shown = heads }
  }

  /// The same for many slots.
  func show(_ heads: [String: [VersionID]]) {
    state.withLock { state in
      for (slot, ids) in heads { state.slots[slot, default: Entry()].shown = ids }
    }
  }

  func shown(_ slot: String) -> [VersionID] { state.withLock { $0.slots[slot]?.shown ?? [] } }

  /// The capture made last, for a load that has to come after it.
  func setPending(_ pending: PendingCommit<CommitPipeline.Committed>, in slot: String) {
    state.withLock { $0.slots[slot, default: Entry()].pending = pending }
  }

  func pending(in slot: String) -> PendingCommit<CommitPipeline.Committed>? { state.withLock { $0.slots[slot]?.pending } }

  /// The captures made last that are not decided yet, of all slots.
  func undecided() -> [PendingCommit<CommitPipeline.Committed>] {
    state.withLock { state in state.slots.values.compactMap(\.pending).filter { $0.result == nil } }
  }
}
