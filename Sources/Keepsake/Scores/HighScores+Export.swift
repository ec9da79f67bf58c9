public import Foundation

extension HighScores {
  /// Exports the scores of a board for another program: an array of dictionaries, best first.
  ///
  /// ```swift
  /// try game.scores.export(.easy, as: .json).write(to: url)
  /// ```
  ///
  /// Each dictionary has `rank`, `player`, `score`, `date` and `id`, and `context` if there is one: its archive's bytes
  /// in a property list, its values in JSON, or `contextBytes` in JSON if they can't be read without the game. Dates
  /// are property-list dates (whole seconds in XML), or ISO 8601 in JSON with `dateMilliseconds` beside it; dates
  /// outside the years 1 to 9999 are left out.
  ///
  /// The same scores give the same bytes. Takes memory for all of them.
  ///
  /// - Parameters:
  ///   - board: The board.
  ///   - format: The format.
  ///   - count: The most scores to export.
  /// - Returns: The bytes of the file.
  /// - Throws: As `top`.
  public func export(_ board: Board, as format: ScoreFormat, atMost count: Int = .max) throws -> Data {
    try ScoreExport.data(of: top(count, of: board).map(\.entry), as: format)
  }
}
