import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// Tracks, for each slot, which versions the running game's state came from: what its next save replaces.
///
/// These are the versions that the game loaded, or its own newest save since then; never what has arrived in the
/// meantime. They belong to the process, not to the store: a game that restarts loads again. The store tracks what the
/// game's commits leave behind (`SaveLineage`), and passes it on to this object when they are durable.
final class SlotParents: Sendable {
  private struct Entry {
    var load: UInt64 = 0
    /// How often the game continued from a state that doesn't include its own newest save.
    var branch: UInt64 = 0
    /// The versions that were loaded last; nil before the first load.
    var loaded: [VersionID]?
    /// The heads that existed when the game started, or that it was shown since: what a save replaces if the game never
    /// loaded the slot. Never what arrived in the meantime, which nobody has seen.
    var shown: [VersionID] = []
    var pending: PendingCommit<CommitPipeline.Committed>?
  }
  private struct State {
    var slots: [String: Entry] = [:]
    /// The `SaveLineage` after the newest durable commit.
    var committed = SaveLineage()
  }
  private let state = Mutex(State())

  /// Adopts the `SaveLineage` that a durable commit left. Must be called in the order of the commits.
  func adopt(_ entry: SaveLineage) { state.withLock { $0.committed = entry } }

  /// Records that the game loaded a value made from these versions: its next save replaces them.
  func loaded(_ slot: String, _ parents: [VersionID]) {
    state.withLock { state in
      var entry = state.slots[slot] ?? Entry()
      entry.load += 1
      entry.loaded = parents
      if let newest = state.committed.newest(in: slot), !parents.contains(newest) { entry.branch += 1 }
      state.slots[slot] = entry
    }
  }

  /// Returns the writer under which the counters in the slot's saves count: the store's own, and a different one on
  /// each branch.
  ///
  /// Two saves that are in conflict, as before the player has chosen, may both be from this process. If they counted
  /// under one writer, merging them would use the greater count for both.
  func writer(in slot: String, of store: WriterID) -> UInt64 {
    let branch = state.withLock { $0.slots[slot]?.branch ?? 0 }
    return branch == 0 ? store.value : store.alias([branch]).value
  }

  /// Returns the origin of a save that is captured now.
  func origin(in slot: String) -> SaveOrigin {
    state.withLock { state in
      let entry = state.slots[slot] ?? Entry()
      return SaveOrigin(load: entry.load, loaded: entry.loaded ?? entry.shown)
    }
  }

  /// Whether a save would replace something that the game has neither loaded nor saved.
  func isUnseen(_ slot: String) -> Bool {
    state.withLock { state in
      guard let entry = state.slots[slot], entry.loaded == nil, !entry.shown.isEmpty else { return false }
      return state.committed.newest(in: slot) == nil
    }
  }

  /// Records that the game was shown these heads of the slot.
  func show(_ slot: String, _ heads: [VersionID]) {
    state.withLock { $0.slots[slot, default: Entry()].shown = heads }
  }

  /// Records the heads that the game was shown, for many slots.
  func show(_ heads: [String: [VersionID]]) {
    state.withLock { state in
      for (slot, ids) in heads { state.slots[slot, default: Entry()].shown = ids }
    }
  }

  func shown(_ slot: String) -> [VersionID] { state.withLock { $0.slots[slot]?.shown ?? [] } }

  /// Records the newest capture in a slot, which a later load has to wait for.
  func setPending(_ pending: PendingCommit<CommitPipeline.Committed>, in slot: String) {
    state.withLock { $0.slots[slot, default: Entry()].pending = pending }
  }

  func pending(in slot: String) -> PendingCommit<CommitPipeline.Committed>? {
    state.withLock { $0.slots[slot]?.pending }
  }

  /// Waits for earlier captures of a slot, so that the store includes them. A capture that failed has already reported
  /// its error.
  func waitForCaptures(in slot: String) {
    if let pending = pending(in: slot) { _ = try? pending.wait() }
  }

  /// As `waitForCaptures`, without blocking a thread.
  nonisolated(nonsending) func awaitCaptures(in slot: String) async {
    if let pending = pending(in: slot) { _ = try? await pending.value }
  }

  /// Returns the newest captures of all slots that aren't decided yet.
  func undecided() -> [PendingCommit<CommitPipeline.Committed>] {
    state.withLock { state in state.slots.values.compactMap(\.pending).filter { $0.result == nil } }
  }
}
