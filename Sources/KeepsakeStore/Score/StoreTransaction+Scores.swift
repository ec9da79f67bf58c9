import Foundation
import GRDB
package import KeepsakeReplication

/// The result of a query for scores.
package struct FoundScores: Sendable {
  package var entries: [ScoreEntry] = []
  /// Why entries were left out.
  package var objections: [StoreError] = []

  package init() {}
}

/// What a store knows about a board.
package struct BoardSummary: Hashable, Sendable {
  package var board: String
  package var order: ScoreOrder
  package var scores: Int
  package var players: Int
}

// Scores on boards. A score that can't be read is left out of a list, so that one bad entry doesn't cost the whole
// list.
extension StoreTransaction {
  // MARK: Writing

  /// Adds a score, or replaces it.
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

  /// Removes all scores of a board, of both orders.
  package func removeScores(on board: String) throws { try run("DELETE FROM score WHERE board = ?", [board]) }

  /// Keeps the best `count` scores of a board, and each player's best. Removes at most `limit` others, so that no
  /// commit takes long.
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

  /// Puts a player's best on its board, wherever it comes from, and removes those that were withdrawn.
  func showBest(_ update: CellUpdate) throws {
    guard case .best(let best) = update.state.value else { return }
    if !best.withdrawn.isEmpty, let names = ScoreEntry.names(in: update.key) {
      var known: Set<BestScore.Withdrawal> = []
      if case .best(let before)? = try cell(update.key)?.value { known = before.withdrawn }
      for withdrawal in best.withdrawn.subtracting(known) {
        try run(
          "DELETE FROM score WHERE board = ? AND player = ? AND id = ?",
          [names.board, names.player, withdrawal.id.bytes])
      }
    }
    if !best.isTakenBack, let entry = ScoreEntry(update) { try putScore(entry) }
  }

  package func keptBest(for key: CellKey, _ order: ScoreOrder) throws -> BestScore? {
    guard let names = ScoreEntry.names(in: key) else { return nil }
    return try scores(1, of: names.player, on: names.board, order).entries.first?.best
  }

  // MARK: Reading

  package func hasScore(_ entry: ScoreEntry) throws -> Bool {
    guard let rank = ScoreRank(entry.value, entry.order) else { return false }
    let statement = try statement("SELECT 1 FROM score WHERE board = ? AND rank = ? AND date = ? AND id = ?")
    return try Int.fetchOne(statement, arguments: [entry.board, rank.bytes, entry.dateMilliseconds, entry.id.bytes])
      != nil
  }

  /// Returns the best `count` scores of a board, best first. The cost is proportional to the result.
  package func topScores(_ count: Int, on board: String, _ order: ScoreOrder) throws -> FoundScores {
    let (from, below) = ScoreRank.bounds(order)
    return try scores(
      count, "SELECT \(ScoreRow.columns) FROM score WHERE board = ? AND rank >= ? AND rank < ? ORDER BY rank, date, id",
      [board, from, below])
  }

  /// Returns the best `count` scores of a player, best first.
  package func scores(_ count: Int, of player: String, on board: String, _ order: ScoreOrder) throws -> FoundScores {
    let (from, below) = ScoreRank.bounds(order)
    return try scores(
      count,
      """
      SELECT \(ScoreRow.columns) FROM score WHERE board = ? AND player = ? AND rank >= ? AND rank < ? ORDER BY rank,
      date, id
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

  /// Returns every player who has a score on the board, sorted by the bytes of the names. Costs a look-up for each.
  package func players(on board: String, _ order: ScoreOrder) throws -> [String] {
    let (from, below) = ScoreRank.bounds(order)
    return try String.fetchAll(
      statement(
        """
        WITH RECURSIVE name (player) AS (
          SELECT MIN(player) FROM score WHERE board = ?1
          UNION ALL
          SELECT (SELECT MIN(player) FROM score WHERE board = ?1 AND player > name.player) FROM name
          WHERE player IS NOT NULL)
        SELECT player FROM name WHERE player IS NOT NULL
          AND EXISTS (SELECT 1 FROM score WHERE board = ?1 AND score.player = name.player AND rank >= ?2 AND rank < ?3)
        """), arguments: [board, from, below])
  }

  /// Returns how many scores of the board rank above this one. Counts them: the time grows with the result.
  package func countScores(above entry: ScoreEntry) throws -> Int {
    guard let rank = ScoreRank(entry.value, entry.order) else { return 0 }
    let statement = try statement(
      """
      SELECT COUNT(*) FROM score WHERE board = ?1 AND rank >= ?2 AND rank <= ?3 AND (rank, date, id) < (?3, ?4, ?5)
      """)
    return try Int.fetchOne(
      statement,
      arguments: [entry.board, ScoreRank.bounds(entry.order).from, rank.bytes, entry.dateMilliseconds, entry.id.bytes])
      ?? 0
  }

  /// Returns whether the board has scores of this order.
  package func hasScores(on board: String, _ order: ScoreOrder) throws -> Bool {
    let (from, below) = ScoreRank.bounds(order)
    let statement = try statement("SELECT 1 FROM score WHERE board = ? AND rank >= ? AND rank < ? LIMIT 1")
    return try Int.fetchOne(statement, arguments: [board, from, below]) != nil
  }

  package func hasScores(of player: String, on board: String) throws -> Bool {
    let statement = try statement("SELECT 1 FROM score WHERE board = ? AND player = ? LIMIT 1")
    return try Int.fetchOne(statement, arguments: [board, player]) != nil
  }

  /// Returns how many players have a score on the board, of either order, counting up to `limit`. Costs a look-up for
  /// each.
  package func playerCount(on board: String, atMost limit: Int) throws -> Int {
    let statement = try statement(
      """
      WITH RECURSIVE name (player) AS (
        SELECT MIN(player) FROM score WHERE board = ?1
        UNION ALL
        SELECT (SELECT MIN(player) FROM score WHERE board = ?1 AND player > name.player) FROM name
        WHERE player IS NOT NULL
        LIMIT ?2)
      SELECT COUNT(player) FROM name
      """)
    return try Int.fetchOne(statement, arguments: [board, limit]) ?? 0
  }

  /// Returns the order of the board's bests, including withdrawn ones; nil if there never was one. Reads the first that
  /// can be read.
  package func bestOrder(on board: String) throws -> ScoreOrder? {
    let prefix = ScoreEntry.keyPrefix(of: board)
    // From the prefix, which ends in "/", to the first key after all keys with the prefix: "0" follows "/".
    let statement = try statement(
      "SELECT key, body FROM cell WHERE collection = ? AND key >= ? AND key < ? ORDER BY key")
    let rows = try Row.fetchCursor(
      statement, arguments: [ScoreEntry.collection, prefix, String(prefix.dropLast()) + "0"])
    while let row = try rows.next() {
      let key = CellKey(collection: ScoreEntry.collection, key: try row.checked("key"))
      do {
        let state = try codec.decode(CellState.self, from: try row.checked("body"), place: RowIdentity.cell(key))
        if case .best(let best) = state.value { return best.order }
      } catch let error as StoreError where error.code == .damaged || error.code == .tampered {
        // The next one has the same order.
        continue
      }
    }
    return nil
  }

  /// Returns all boards that have scores. Costs a pass over the index of players.
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
