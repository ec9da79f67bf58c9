package import KeepsakeReplication

/// A score to be committed.
package struct ScoreDraft: Sendable {
  package var entry: ScoreEntry
  /// How many scores of its board are kept; nil if this commit removes none.
  package var trimmedTo: Int?

  package init(entry: ScoreEntry, trimmedTo: Int?) {
    self.entry = entry
    self.trimmedTo = trimmedTo
  }
}

/// How scores are added to and removed from the store's tables.
package enum ScoreCommit {
  /// The maximum number of scores that one commit removes. A board that kept everything, and is then limited, shrinks
  /// by that many each time.
  package static let maximumTrimmed = 10_000
  /// The maximum number of players of a board: each has a value that every device holds.
  package static let maximumPlayers = 1_000
  /// How many values are withdrawn in one commit: an exchange carries no more.
  private static let withdrawnTogether = 1_000

  /// Writes the score. Returns the change of the player's best, nil if it doesn't change.
  static func apply(_ draft: ScoreDraft, in transaction: inout StoreTransaction) throws -> CellDraft? {
    let entry = draft.entry
    let best = try transaction.cell(entry.key)
    // Values whose best was withdrawn stay, and don't count as players.
    if !hasEntry(best), try !transaction.hasScores(of: entry.player, on: entry.board),
      try transaction.playerCount(on: entry.board, atMost: maximumPlayers) >= maximumPlayers
    {
      throw CommitError.tooManyPlayers(board: entry.board, maximum: maximumPlayers)
    }
    try transaction.putScore(entry)
    if let count = draft.trimmedTo {
      try transaction.trimScores(on: entry.board, entry.order, to: count, atMost: maximumTrimmed)
    }
    // Most scores are no player's best, and for those the outbox needn't be read.
    if case .best(let held)? = best?.value, held.order == entry.order, !entry.best.precedes(held) { return nil }
    return CellDraft(entry.key, .best(entry.best))
  }

  private static func hasEntry(_ state: CellState?) -> Bool {
    guard case .best(let best)? = state?.value else { return false }
    return best.entry != nil
  }

  /// Removes the score. If it is the player's best, returns the change that replaces it on every device with the next
  /// one known here.
  package static func remove(_ entry: ScoreEntry, in transaction: inout StoreTransaction) throws -> [CellDraft] {
    try transaction.removeScore(entry)
    guard let best = try transaction.cell(entry.key),
      ScoreEntry(CellUpdate(key: entry.key, state: best))?.id == entry.id
    else { return [] }
    let next = try transaction.scores(1, of: entry.player, on: entry.board, entry.order).entries.first
    return [CellDraft(entry.key, .withdraw(next?.best ?? BestScore(order: entry.order, entry: nil)))]
  }

  /// Removes all scores of a board here. Returns the changes that withdraw its players' bests everywhere.
  package static func removeAll(on board: String, in transaction: inout StoreTransaction) throws -> [CellDraft] {
    try transaction.removeScores(on: board)
    return try transaction.cells(in: ScoreEntry.collection).compactMap { cell in
      guard ScoreEntry.names(in: cell.key)?.board == board, case .best(let best) = cell.state.value, best.entry != nil
      else { return nil }
      return CellDraft(cell.key, .withdraw(BestScore(order: best.order, entry: nil, isCleared: true)))
    }
  }

  package static func withdraw(
    _ drafts: [CellDraft], now: Int64, writer: WriterID, in transaction: inout StoreTransaction
  ) throws {
    var random = SystemRandomNumberGenerator()
    for start in stride(from: 0, to: drafts.count, by: withdrawnTogether) {
      let together = Array(drafts[start..<min(start + withdrawnTogether, drafts.count)])
      try DeviceCommit.apply(CommitDraft(cells: together), now: now, writer: writer, in: &transaction, using: &random)
    }
  }
}
