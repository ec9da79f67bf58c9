import Foundation
import KeepsakeReplication

/// Decides which of an older game's saves are imported. Pure: what the slots have is passed in.
struct OlderSavePlan {
  /// An older save and the slot that it is to go to.
  struct Candidate: Hashable {
    /// Its position in the list that the game passed.
    var index: Int
    var slot: String
    var origin: VersionID
    var savedAtMilliseconds: Int64
    var device: String

    init(_ save: OlderSave, index: Int, slot: String) {
      self.index = index
      self.slot = slot
      origin = OlderSaveIdentity.origin(of: save.bytes, in: slot)
      savedAtMilliseconds = OlderSaveIdentity.milliseconds(save.modified)
      device = save.device ?? ""
    }
  }

  /// What a slot has.
  struct SlotState: Hashable {
    enum Head: Hashable {
      /// An imported save that nothing has replaced.
      case imported
      /// Any other save.
      case saved
      case deleted
    }
    var isLocal = false
    var heads: [Head] = []
    /// The older saves that were imported before, by their origins, whatever has become of them.
    var known: Set<VersionID> = []

    /// How many more saves may be imported.
    var room: Int { max(0, SaveSlots.maximumOlderSaves - heads.count) }
  }

  enum Verdict: Hashable {
    case take
    case known
    case skip(OlderSavesReport.Skipped.Reason)
  }

  /// Every candidate once, by slot. Within a slot the newest first, so that each order of the list gives the same
  /// result.
  private(set) var verdicts: [(candidate: Candidate, verdict: Verdict)] = []

  /// - Parameter states: What each candidate's slot has. A slot that isn't in it is empty.
  init(_ candidates: [Candidate], states: [String: SlotState]) {
    var taken: [String: Set<VersionID>] = [:]
    for candidate in candidates.sorted(by: Self.precedes) {
      var state = states[candidate.slot] ?? SlotState()
      state.known.formUnion(taken[candidate.slot] ?? [])
      let verdict = Self.verdict(on: candidate.origin, state)
      if verdict == .take { taken[candidate.slot, default: []].insert(candidate.origin) }
      verdicts.append((candidate, verdict))
    }
  }

  /// Decides about one save. What was imported before never comes back, not even after a delete, and never beside what
  /// the player has saved with Keepsake.
  static func verdict(on origin: VersionID, _ state: SlotState) -> Verdict {
    if state.known.contains(origin) { return .known }
    if state.isLocal { return .skip(.localSlot) }
    if state.heads.contains(.saved) { return .skip(.slotInUse) }
    if state.heads.contains(.deleted), !state.heads.contains(.imported) { return .skip(.deleted) }
    return .take
  }

  private static func precedes(_ left: Candidate, _ right: Candidate) -> Bool {
    if left.slot != right.slot { return left.slot < right.slot }
    if left.savedAtMilliseconds != right.savedAtMilliseconds {
      return left.savedAtMilliseconds > right.savedAtMilliseconds
    }
    if left.device != right.device { return left.device < right.device }
    return left.origin != right.origin ? left.origin < right.origin : left.index < right.index
  }
}
