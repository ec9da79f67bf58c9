import KeepsakeReplication

/// A board of high scores: its name, which score is the better one, and how many are kept.
///
///     extension Board {
///       static let easy = Board("easy", order: .descending)                       // the greatest is the best
///       static let lap = Board("lap time", order: .ascending, keeping: .best(100))
///     }
///
/// The order never changes under a name: take a new name instead.
public struct Board: Sendable, Hashable {
  /// Which of two scores is the better one. Of equal ones the earlier is.
  public enum Order: Sendable, Hashable {
    /// The smallest is the best: a fastest time.
    case ascending
    /// The greatest is the best.
    case descending
  }

  /// What stays on this device.
  public enum Keeping: Sendable, Hashable {
    /// The best so many, and each player's best whatever its rank. Somewhat more may stand until they are cleared away: a tenth, and 256 at most.
    case best(Int)
    /// Every score ever submitted. Each costs about 150 bytes, and time at each opening of the game's data: it is checked for damage.
    case all
  }

  /// The most bytes of a name. Control characters are refused, too.
  public static var maximumNameBytes: Int { ScoreEntry.maximumBoardBytes }
  /// The most bytes of a player's name, which may be empty.
  public static var maximumPlayerBytes: Int { ScoreEntry.maximumPlayerBytes }
  /// Enough for any list that a player looks through, and checked in little time at each opening.
  public static let standardCount = 10_000

  /// The board's name, on every device.
  public let name: String
  /// Which end of the list is the best.
  public let order: Order
  /// How many scores stay on this device.
  public let keeping: Keeping

  /// Declares a board. Costs nothing: a board is made by its first score.
  ///
  /// - Parameters:
  ///   - name: The same on every device, at most `maximumNameBytes` bytes. A board that a score can't be submitted to for its name
  ///     throws `misuse` when it is used.
  ///   - order: Which end of the list is the best. It can't be changed once a score was submitted.
  ///   - keeping: How many scores stay on this device.
  public init(_ name: String, order: Order, keeping: Keeping = .best(standardCount)) {
    self.name = name.canonical
    self.order = order
    self.keeping = keeping
  }

  var scoreOrder: ScoreOrder { order == .ascending ? .ascending : .descending }

  /// What a trim leaves; nil for all.
  var keptCount: Int? {
    if case .best(let count) = keeping { return count }
    return nil
  }

  /// So many scores may be submitted before those too many are cleared away. Clearing walks over all that are kept.
  var trimInterval: Int { keptCount.map { min(max($0 / 10, 1), 256) } ?? .max }

  /// Throws `misuse` for what can't be a board, or no player's name on it.
  func check(player: String = "") throws {
    if let objection = ScoreEntry.objection(board: name, player: player) {
      throw GameDataError(.misuse, "there can be no score of \"\(player.prefix(40))\" on \"\(name.prefix(40))\": \(objection)")
    }
    if let keptCount, keptCount < 1 {
      throw GameDataError(.misuse, "the board \"\(name)\" has to keep one score at least, and was declared to keep \(keptCount)")
    }
  }
}
