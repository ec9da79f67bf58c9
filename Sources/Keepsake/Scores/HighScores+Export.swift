public import Foundation

extension HighScores {
  /// The scores of a board for another program, best first: an array with a dictionary for each.
  ///
  ///     try game.scores.export(.easy, as: .json).write(to: url)
  ///
  /// Each has `rank`, `player`, `score`, `date` and `id`, and `context` if it was given one: in a property list the bytes of its archive, in
  /// JSON its values; in JSON `contextBytes` where those can't be read without the game. A date is a date in a property list, which in
  /// XML knows whole seconds only, and ISO 8601 in JSON, with `dateMilliseconds` beside it. Dates outside the years 1 to 9999 are left out.
  ///
  /// The same scores give the same bytes. Takes memory for all of them; throws as `top` does.
  public func export(_ board: Board, as format: ScoreFormat, atMost count: Int = .max) throws -> Data {
    try ScoreExport.data(of: top(count, of: board).map(\.entry), as: format)
  }
}
