import Foundation
import GRDB
package import KeepsakeReplication

/// Scores as they were found.
package struct FoundScores: Sendable {
  package var entries: [ScoreEntry] = []
  /// Why entries were left out.
  package var objections: [StoreError] = []

  package init() {}
}

/// What a store knows of a board.
package struct BoardSummary: Hashable, Sendable {
  package var board: String
  package var order: ScoreOrder
  package var scores: Int
  package var players: Int
}

// Scores on boards. A score that can't be read is left out, and the rest given: nobody loses a list for one entry of it.
extension StoreTransaction {
  // MARK: Writing

  /// Adds a score, or writes it anew.
  package func putScore(_ entry: ScoreEntry) throws { try insert(ScoreRow(entry, codec), or: "REPLACE") }

  func insert(_ row: ScoreRow, or otherwise: String) throws {
    try run("INSERT OR \(otherwise) INTO score (\(ScoreRow.columns)) VALUES (?, ?, ?, ?, ?, ?)", row.arguments)
  }

  package func removeScore(_ entry: ScoreEntry) throws {
    guard let rank = ScoreRank(entry.value, entry.order) else { return }
    try run(
      "DELETE FROM score WHERE board = ? AND rank = ? AND date = ? AND id = ?",
      [entry.board, rank.bytes, entry.dateMilliseconds, entry.id.bytes])
  }

  /// Removes all scores of a board, of either order.
  package func removeScores(on board: String) throws { try run("DELETE FROM score WHERE board = ?", [board]) }

  /// Keeps the best `count` scores of a board, and each player's best; removes `limit` others at most, so that no commit takes long.
  package func trimScores(on board: String, _ order: ScoreOrder, to count: Int, atMost limit: Int) throws {
    let (from, below) = ScoreRank.bounds(order)
    try run(
      """
      DELETE FROM score WHERE (board, rank, date, id) IN (
        SELECT board, rank, date, id FROM (
          SELECT board, rank, date, id, player FROM score WHERE board = ?1 AND rank >= ?2 AND rank < ?3
          ORDER BY rank, date, id LIMIT -1 OFFSET ?4) AS low
        WHERE EXISTS (
          SELECT 1 FROM score AS better WHERE better.board = ?1 AND better.player = low.player AND better.rank >= ?2
            AND (better.rank, better.date, better.id) < (low.rank, low.date, low.id))
        LIMIT ?5)
      """, [board, from, below, count, limit])
  }

  /// A best, wherever it comes from, stands on its board; one that was taken back no longer does.
  func showBest(_ update: CellUpdate) throws {
    if let before = try cell(update.key), before.generation < update.state.generation,
      let old = ScoreEntry(CellUpdate(key: update.key, state: before))
    {
      try removeScore(old)
    }
    if let entry = ScoreEntry(update) { try putScore(entry) }
  }

  // MARK: Reading

  package func hasScore(_ entry: ScoreEntry) throws -> Bool {
    guard let rank = ScoreRank(entry.value, entry.order) else { return false }
    let statement = try statement("SELECT 1 FROM score WHERE board = ? AND rank = ? AND date = ? AND id = ?")
    return try Int.fetchOne(statement, arguments: [entry.board, rank.bytes, entry.dateMilliseconds, entry.id.bytes]) != nil
  }

  /// The best `count` scores of a board, best first. Costs what it gives.
  package func topScores(_ count: Int, on board: String, _ order: ScoreOrder) throws -> FoundScores {
    let (from, below) = ScoreRank.bounds(order)
    return try scores(
      count, "SELECT \(ScoreRow.columns) FROM score WHERE board = ? AND rank >= ? AND rank < ? ORDER BY rank, date, id",
      [board, from, below])
  }

  /// The best `count` scores of a player, best first.
  package func scores(_ count: Int, of player: String, on board: String, _ order: ScoreOrder) throws -> FoundScores {
    let (from, below) = ScoreRank.bounds(order)
    return try scores(
      count,
      """
      SELECT \(ScoreRow.columns) FROM score WHERE board = ? AND player = ? AND rank >= ? AND rank < ? ORDER BY rank, date, id
      """, [board, player, from, below])
  }

  private func scores(_ count: Int, _ sql: String, _ arguments: StatementArguments) throws -> FoundScores {
    var found = FoundScores()
    guard count > 0 else { return found }
    let rows = try Row.fetchCursor(statement(sql), arguments: arguments)
    while found.entries.count < count, let row = try rows.next() {
      do {
        found.entries.append(try ScoreRow(row).entry(codec))
      } catch let error as StoreError where error.code == .damaged || error.code == .tampered {
        found.objections.append(error)
      }
    }
    return found
  }

  /// Every player who has a score on the board, by the bytes of the names. Costs a look-up for each.
  package func players(on board: String, _ order: ScoreOrder) throws -> [String] {
    let (from, below) = ScoreRank.bounds(order)
    return try String.fetchAll(
      statement(
        """
        WITH RECURSIVE name (player) AS (
          SELECT MIN(player) FROM score WHERE board = ?1
          UNION ALL
          SELECT (SELECT MIN(player) FROM score WHERE board = ?1 AND player > name.player) FROM name WHERE player IS NOT NULL)
        SELECT player FROM name WHERE player IS NOT NULL
          AND EXISTS (SELECT 1 FROM score WHERE board = ?1 AND score.player = name.player AND rank >= ?2 AND rank < ?3)
        """), arguments: [board, from, below])
  }

  /// How many scores of the board stand above this one. Counts them: time grows with the result.
  package func countScores(above entry: ScoreEntry) throws -> Int {
    guard let rank = ScoreRank(entry.value, entry.order) else { return 0 }
    let statement = try statement(
      """
      SELECT COUNT(*) FROM score WHERE board = ?1 AND rank >= ?2 AND rank <= ?3 AND (rank, date, id) < (?3, ?4, ?5)
      """)
    return try Int.fetchOne(
      statement,
      arguments: [entry.board, ScoreRank.bounds(entry.order).from, rank.bytes, entry.dateMilliseconds, entry.id.bytes]) ?? 0
  }

  /// Whether the board has scores of this order.
  package func hasScores(on board: String, _ order: ScoreOrder) throws -> Bool {
    let (from, below) = ScoreRank.bounds(order)
    let statement = try statement("SELECT 1 FROM score WHERE board = ? AND rank >= ? AND rank < ? LIMIT 1")
    return try Int.fetchOne(statement, arguments: [board, from, below]) != nil
  }

  /// How many players of the board have a best here.
  package func bestCount(on board: String) throws -> Int {
    let prefix = ScoreEntry.keyPrefix(of: board)
    // From the prefix to what would come after its last stroke.
    let statement = try statement("SELECT COUNT(*) FROM cell WHERE collection = ? AND key >= ? AND key < ?")
    return try Int.fetchOne(statement, arguments: [ScoreEntry.collection, prefix, String(prefix.dropLast()) + "0"]) ?? 0
  }

  /// All boards that have scores. Costs a pass over the index of players.
  package func boards() throws -> [BoardSummary] {
    var summaries: [BoardSummary] = []
    let boards = try String.fetchAll(
      statement(
        """
        WITH RECURSIVE name (board) AS (
          SELECT MIN(board) FROM score
          UNION ALL SELECT (SELECT MIN(board) FROM score WHERE board > name.board) FROM name WHERE board IS NOT NULL)
        SELECT board FROM name WHERE board IS NOT NULL
        """))
    for board in boards {
      for order in ScoreOrder.allCases {
        let (from, below) = ScoreRank.bounds(order)
        let count = try Int.fetchOne(
          statement("SELECT COUNT(*) FROM score INDEXED BY score_player WHERE board = ? AND rank >= ? AND rank < ?"),
          arguments: [board, from, below])
        guard let count, count > 0 else { continue }
        summaries.append(
          BoardSummary(board: board, order: order, scores: count, players: try players(on: board, order).count))
      }
    }
    return summaries
  }
}
