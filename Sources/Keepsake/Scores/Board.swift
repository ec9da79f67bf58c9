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
  /// Which of two scores is better. Of two equal scores, the earlier one is.
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

  /// Declares a board. Costs nothing, because its first score creates it.
  ///
  /// - Parameters:
  ///   - name: The same on every device, at most `maximumNameBytes` bytes. If no board can have this name, using the
  ///     board throws `misuse`.
  ///   - order: Which end of the list is the best. It can't be changed once a score was submitted.
  ///   - keeping: How many scores stay on this device.
  public init(_ name: String, order: Order, keeping: Keeping = .best(standardCount)) {
    self.name = name.canonical
    self.order = order
    self.keeping = keeping
  }

  var scoreOrder: ScoreOrder { order == .ascending ? .ascending : .descending }

  /// The number of scores that a trim keeps; nil for all.
  var keptCount: Int? {
    if case .best(let count) = keeping { return count }
    return nil
  }

  /// How many scores may be submitted before excess ones are trimmed. A trim walks over all that are kept.
  var trimInterval: Int { keptCount.map { min(max($0 / 10, 1), 256) } ?? .max }

  /// Throws `misuse` if the board is invalid, or if it can't have a player of this name.
  func check(player: String = "") throws {
    if let objection = ScoreEntry.objection(board: name, player: player) {
      throw GameDataError(.misuse, objection)
    }
    if let keptCount, keptCount < 1 {
      throw GameDataError(
        .misuse, "the board \"\(name)\" must keep at least one score, but was declared to keep \(keptCount)")
    }
  }
}
