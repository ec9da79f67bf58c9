import Foundation
import KeepsakeReplication
import KeepsakeStore

/// The single path through which all parts of a game's data commit. Checks the input, submits it to the store as one
/// value, and reports the outcome.
final class CommitPipeline: Sendable {
  /// The result of a commit.
  struct Committed: Sendable {
    /// The versions, in the order of the saves.
    var versions: [Version] = []
    /// The cells that the commit wrote to, in their new state.
    var cells: [CellUpdate] = []
  }

  let slotParents = SlotParents()
  private let store: GameStore
  private let environment: GameEnvironment
  private let events: GameEvents
  private let cloud: CloudReference

  init(store: GameStore, environment: GameEnvironment, events: GameEvents, cloud: CloudReference) {
    self.store = store
    self.environment = environment
    self.events = events
    self.cloud = cloud
  }

  /// Makes a draft that saves the running game's current state in a slot.
  ///
  /// - Parameters:
  ///   - others: Versions that the save replaces besides those that the game's state came from.
  ///   - kept: Versions that the save doesn't replace in any case.
  ///   - redescribed: The version of which the save changes only the metadata; nil for any other save.
  func draft(
    _ content: SaveContent, to slot: String, _ metadata: SaveMetadata = SaveMetadata(),
    additionalParents others: [VersionID] = [], keeping kept: [VersionID] = [],
    redescribing redescribed: VersionID? = nil
  ) -> SaveDraft {
    var origin = slotParents.origin(in: slot)
    (origin.alsoReplaced, origin.kept, origin.redescribed) = (others, kept, redescribed)
    return draft(content, to: slot, metadata, .game(origin))
  }

  /// Makes a draft of a version of the tracked file that has the slot.
  func draft(ofFile bytes: Data, to slot: String, additionalParents others: [VersionID]) -> SaveDraft {
    draft(.bytes(bytes), to: slot, SaveMetadata(), .file(alsoReplaced: others))
  }

  private func draft(_ content: SaveContent, to slot: String, _ metadata: SaveMetadata, _ parents: SaveParents)
    -> SaveDraft
  {
    var random = SystemRandomNumberGenerator()
    return SaveDraft(
      id: VersionID(using: &random), slot: slot, parents: parents, content: content, metadata: metadata,
      savedAtMilliseconds: environment.nowMilliseconds())
  }

  /// Submits everything to the store as one commit, all of it or nothing. Returns before it is durable.
  ///
  /// - Parameter limit: How long the call may block while the disk is behind; nil for no limit.
  /// - Returns: The versions, in the order of `saves`, and the cells, once the commit is durable. A save that changes
  ///   nothing yields the existing version.
  /// - Throws: Errors that can be detected immediately, and `timedOut` if the store accepts nothing within the limit.
  func submit(
    saves: [SaveDraft] = [], cells: [CellDraft] = [], scores: [ScoreDraft] = [], wallet: [WalletOperation] = [],
    within limit: Duration? = nil
  ) throws -> PendingCommit<Committed> {
    var commit = GameCommit(
      saves: saves, cells: cells, scores: scores, wallet: wallet, now: environment.nowMilliseconds())
    for index in commit.saves.indices {
      commit.saves[index].savedAtMilliseconds = commit.now
      try check(commit.saves[index])
    }
    let slots = saves.map(\.slot)
    let submitted = try GameDataError.translating {
      try store.submit(
        commit,
        finished: { [slotParents, events, cloud] result in
          if case .success(let outcome) = result { slotParents.adopt(outcome.lineage) }
          Self.finished(slots, result.mapError(GameDataError.translated), events, cloud)
        }, within: limit)
    }
    let pending = submitted.mapResult { result in
      result.map { outcome in
        Committed(
          versions: outcome.versions.map { Version($0, isPinned: outcome.pinned.contains($0.record.id)) },
          cells: outcome.cells)
      }.mapError(GameDataError.translated)
    }
    for slot in slots { slotParents.setPending(pending, in: slot) }
    return pending
  }

  /// Makes a slot local, or synced again. Durable on return.
  func submit(_ move: SlotMove) throws {
    try GameDataError.translating {
      _ = try store.submit(move) { [slotParents] result in
        if case .success(let parents) = result { slotParents.adopt(parents) }
      }.wait()
    }
    events.slotsDidChange()
    cloud.cloud.didCommit()
  }

  private func check(_ save: SaveDraft) throws {
    var record = VersionRecord(
      id: save.id, slot: save.slot, covers: [], contents: [], length: 0, metadata: save.metadata,
      savedAtMilliseconds: save.savedAtMilliseconds, writer: store.writer, provisional: false)
    if case .bytes(let bytes) = save.content {
      record.length = bytes.count
      guard bytes.count <= EncodedContent.maximumContentBytes else {
        throw GameDataError(
          .tooLarge,
          """
          the save for "\(save.slot)" has \(bytes.count) bytes; at most \(EncodedContent.maximumContentBytes) are \
          allowed
          """)
      }
    }
    let refusal: Refusal?
    if case .file = save.parents {
      // The file's name was checked when it was tracked. The name of a local file may be slightly longer than that of a
      // synced one.
      record.slot = record.key.local.text
      refusal = ExchangeRules.objection(toOwn: record)
    } else {
      try SaveSlots.check(save.slot)
      refusal = ExchangeRules.objection(to: record)
    }
    if let refusal {
      throw GameDataError(
        refusal.reason == .tooLarge ? .tooLarge : .misuse,
        "\"\(save.slot.prefix(80))\" can't be saved: \(refusal.message)")
    }
  }

  /// Also called for data that the game has released.
  private static func finished(
    _ slots: [String], _ result: Result<GameCommit.Outcome, any Error>, _ events: GameEvents, _ cloud: CloudReference
  ) {
    switch result {
    case .success(let outcome):
      for other in outcome.otherTypes {
        events.report(
          Incident(
            kind: .unreadable, slot: other.slot, version: other.version,
            message: "a save was kept beside one of another type, instead of replacing it: \(other.objection)",
            date: events.now))
      }
      if !slots.isEmpty { events.slotsDidChange() }
      cloud.cloud.didCommit()
    case .failure(let error):
      let what =
        switch slots.count {
        case 0: "a commit"
        case 1: "a save"
        default: "a commit of the slots \(slots.map { "\"\($0)\"" }.joined(separator: ", "))"
        }
      events.report(
        Incident(
          kind: .failedCommit, slot: slots.first, message: "\(what) could not be stored: \(error)", date: events.now))
    }
  }
}
