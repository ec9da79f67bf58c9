import KeepsakeReplication

/// A board of high scores: its name, its order, and how many scores it keeps.
///
/// ```swift
/// extension Board {
///   static let easy = Board("easy", order: .descending)    // the greatest is the best
///   static let lap = Board("lap time", order: .ascending, keeping: .best(100))
/// }
/// ```
///
/// The order must not change under a name: use a new name instead.
public struct Board: Sendable, Hashable {
  /// Which of two scores is better. Of equal scores the earlier is.
  public enum Order: Sendable, Hashable {
    /// The smallest is the best, such as a fastest time.
    case ascending
    /// The greatest is the best.
    case descending
  }

  /// Which scores stay on this device.
  public enum Keeping: Sendable, Hashable {
    /// The best scores, up to this number, and each player's best at any rank. Up to a tenth more, and at most 256
    /// more, may be kept until they are trimmed.
    case best(Int)
    /// Every score. Each costs about 150 bytes, and time at each opening, when it is checked for damage.
    case all
  }

  /// The greatest length of a name, in bytes of UTF-8. Control characters are refused too.
  public static var maximumNameBytes: Int { ScoreEntry.maximumBoardBytes }
  /// The greatest length of a player's name, in bytes of UTF-8. It may be empty.
  public static var maximumPlayerBytes: Int { ScoreEntry.maximumPlayerBytes }
  /// The default number of scores that a board keeps.
  public static let standardCount = 10_000

  /// The board's name, the same on every device.
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
