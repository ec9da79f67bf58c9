package import KeepsakeReplication

/// What one commit of a game does: all of it or nothing. Submitted to the store once, as a value.
package struct GameCommit: Sendable {
  package var saves: [SaveDraft]
  package var cells: [CellDraft]
  package var scores: [ScoreDraft]
  package var wallet: [WalletOperation]
  /// The device's clock, in milliseconds since 1970.
  package var now: Int64

  package init(
    saves: [SaveDraft] = [], cells: [CellDraft] = [], scores: [ScoreDraft] = [], wallet: [WalletOperation] = [],
    now: Int64
  ) {
    self.saves = saves
    self.cells = cells
    self.scores = scores
    self.wallet = wallet
    self.now = now
  }

  /// The result of a commit.
  package struct Outcome: Sendable {
    /// One per save, in the same order. For a save that changes nothing, the version that already existed.
    package var versions: [StoredVersion]
    /// Those of `versions` that are pinned.
    package var pinned: Set<VersionID>
    /// The cells that the commit wrote, in their new state.
    package var cells: [CellUpdate]
    /// The versions of other types that saves would have replaced (`SaveDraft.typeCheck`).
    package var otherTypes: [OtherType]
    /// The lineage for the saves after this commit.
    package var lineage: SaveLineage
  }

  /// A version that a save is kept beside.
  package struct OtherType: Sendable {
    package var slot: String
    package var version: VersionID
    /// Why the save doesn't replace it.
    package var objection: String
  }

  /// The bytes to be stored, in the order of the saves.
  var bytes: [SaveBytes] {
    saves.compactMap { save in
      guard case .bytes(let bytes) = save.content else { return nil }
      return (save.slot, bytes)
    }
  }

  /// Applies the commit. Runs within the store's transaction, in the order of the commits.
  ///
  /// - Parameters:
  ///   - prepared: The result of preparing `bytes`.
  ///   - lineage: The lineage that the commits before this one left.
  func apply(
    _ prepared: [PreparedSave], after lineage: SaveLineage, writer: WriterID, in transaction: inout StoreTransaction
  ) throws -> Outcome {
    var random = SystemRandomNumberGenerator()
    var prepared = prepared[...]
    var lineage = lineage
    var draft = CommitDraft(cells: cells, wallet: wallet)
    var ids: [VersionID] = []
    var otherTypes: [OtherType] = []
    for var save in saves {
      let decision: SaveDecision
      if case .bytes = save.content {
        guard let stored = prepared.popFirst() else { throw StoreError(.io, "a commit lost its bytes") }
        save.content = .stored(stored.hashes, length: stored.length)
        decision = try SaveDecision(on: save, mayBeUnchanged: true, after: lineage, in: transaction)
      } else {
        decision = try SaveDecision(on: save, mayBeUnchanged: false, after: lineage, in: transaction)
      }
      otherTypes += decision.otherTypes.map { [slot = save.slot] in OtherType(slot: slot, version: $0, objection: $1) }
      let id = decision.unchanged ?? save.id
      ids.append(id)
      if case .file = save.parents { try transaction.setFileBase(id, of: save.slot) }
      guard decision.unchanged == nil else { continue }
      if case .game(let origin) = save.parents { lineage.insert(save, from: origin) }
      (save.slot, save.parents) = (decision.key.text, decision.parents)
      draft.saves.append(save)
    }
    for score in scores {
      if let best = try ScoreCommit.apply(score, in: &transaction) { draft.cells.append(best) }
    }
    if !draft.saves.isEmpty || !draft.cells.isEmpty || !draft.wallet.isEmpty {
      try DeviceCommit.apply(draft, now: now, writer: writer, in: &transaction, using: &random)
    }
    return Outcome(
      versions: try ids.map { id in
        guard let version = try transaction.version(id) else {
          throw StoreError(.damaged, "the version \(id) is missing")
        }
        return version
      },
      pinned: Set(try ids.filter(transaction.isPinned)),
      cells: try cells.compactMap { draft in
        try transaction.cell(draft.key).map { CellUpdate(key: draft.key, state: $0) }
      },
      otherTypes: otherTypes,
      lineage: lineage)
  }
}

extension SaveLineage {
  /// Makes the save the newest of its slot. If it only changes a version's metadata, does so only when the game's state
  /// came from that version.
  fileprivate mutating func insert(_ save: SaveDraft, from origin: SaveOrigin) {
    if let source = origin.redescribed, versions(of: origin, in: save.slot) != current([source]) { return }
    insert(save.id, from: origin, in: save.slot)
  }
}
