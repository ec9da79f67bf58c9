package import KeepsakeReplication

/// A score on its way into a commit.
package struct ScoreDraft: Sendable {
  package var entry: ScoreEntry
  /// How many scores of its board stay; nil if this commit clears nothing away.
  package var trimmedTo: Int?

  package init(entry: ScoreEntry, trimmedTo: Int?) {
    self.entry = entry
    self.trimmedTo = trimmedTo
  }
}

/// How scores enter and leave the store's tables.
package enum ScoreCommit {
  /// Scores that one commit clears away at most. A board that kept everything and no longer does shrinks by as many each time.
  package static let maximumTrimmed = 10_000
  /// The most players of a board: each has a value that every device holds.
  package static let maximumPlayers = 1_000
  /// Values that are taken back together: an exchange carries no more.
  private static let withdrawnTogether = 1_000

  /// Writes the score; gives what has to become of the player's best, nil if nothing has to.
  static func apply(_ draft: ScoreDraft, in transaction: inout StoreTransaction) throws -> CellDraft? {
    let entry = draft.entry
    let best = try transaction.cell(entry.key)
    // Values whose best was taken back stay, and make nobody a player.
    if !hasEntry(best), try !transaction.hasScores(of: entry.player, on: entry.board),
      try transaction.playerCount(on: entry.board, atMost: maximumPlayers) >= maximumPlayers
    {
      throw CommitError.tooManyPlayers(board: entry.board, maximum: maximumPlayers)
    }
    try transaction.putScore(entry)
    if let count = draft.trimmedTo {
      try transaction.trimScores(on: entry.board, entry.order, to: count, atMost: maximumTrimmed)
    }
    // Most scores are no player's best: the outbox needn't be looked at.
    if case .best(let held)? = best?.value, held.order == entry.order, !entry.best.precedes(held) { return nil }
    return CellDraft(entry.key, .best(entry.best))
  }

  private static func hasEntry(_ state: CellState?) -> Bool {
    guard case .best(let best)? = state?.value else { return false }
    return best.entry != nil
  }

  /// Removes the score; where it is the player's best, the next that is known here takes its place on every device.
  package static func remove(_ entry: ScoreEntry, in transaction: inout StoreTransaction) throws -> [CellDraft] {
    try transaction.removeScore(entry)
    guard let best = try transaction.cell(entry.key), ScoreEntry(CellUpdate(key: entry.key, state: best))?.id == entry.id else { return [] }
    let next = try transaction.scores(1, of: entry.player, on: entry.board, entry.order).entries.first
    return [CellDraft(entry.key, .withdraw(next?.best ?? BestScore(order: entry.order, entry: nil)))]
  }

  /// Removes all scores of a board, here, and its players' bests everywhere.
  package static func removeAll(on board: String, in transaction: inout StoreTransaction) throws -> [CellDraft] {
    try transaction.removeScores(on: board)
    return try transaction.cells(in: ScoreEntry.collection).compactMap { cell in
      guard ScoreEntry.names(in: cell.key)?.board == board, case .best(let best) = cell.state.value, best.entry != nil else { return nil }
      return CellDraft(cell.key, .withdraw(BestScore(order: best.order, entry: nil, isCleared: true)))
    }
  }

  package static func withdraw(_ drafts: [CellDraft], now: Int64, writer: WriterID, in transaction: inout StoreTransaction) throws {
    var random = SystemRandomNumberGenerator()
    for start in stride(from: 0, to: drafts.count, by: withdrawnTogether) {
      let together = Array(drafts[start..<min(start + withdrawnTogether, drafts.count)])
      try DeviceCommit.apply(CommitDraft(cells: together), now: now, writer: writer, in: &transaction, using: &random)
    }
  }
}
