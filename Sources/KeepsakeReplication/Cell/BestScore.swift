package import Foundation

/// Which of two scores is the better one.
package enum ScoreOrder: String, Hashable, Sendable, Codable, CaseIterable {
  /// The smallest is the best: a fastest time.
  case ascending
  /// The greatest is the best.
  case descending
}

/// A player's best score on a board, as a cell of the rule `best` holds it.
///
/// All of them stand in one line, whatever their order, and a join takes the one that comes first. So joins commute, associate and repeat
/// without effect, and two cells that disagree about the order agree about the result.
package struct BestScore: Hashable, Sendable, Codable {
  package struct Entry: Hashable, Sendable, Codable {
    /// A number.
    package var score: Scalar
    package var dateMilliseconds: Int64
    /// What belongs to the score: who compares it need not know what it is.
    package var payload: Data

    package init(score: Scalar, dateMilliseconds: Int64, payload: Data) {
      self.score = score
      self.dateMilliseconds = dateMilliseconds
      self.payload = payload
    }
  }

  package var order: ScoreOrder
  /// Nil where the best was withdrawn and no other was known.
  package var entry: Entry?

  package init(order: ScoreOrder, entry: Entry?) {
    self.order = order
    self.entry = entry
  }

  /// The one of both that comes first.
  package func joined(with other: BestScore) -> BestScore { other.precedes(self) ? other : self }

  /// The better score, then the earlier, then the smaller bytes; any score before none, and `descending` before `ascending`.
  package func precedes(_ other: BestScore) -> Bool {
    if order != other.order { return order == .descending }
    guard let entry else { return false }
    guard let others = other.entry else { return true }
    if entry.score != others.score { return order == .descending ? entry.score > others.score : entry.score < others.score }
    if entry.dateMilliseconds != others.dateMilliseconds { return entry.dateMilliseconds < others.dateMilliseconds }
    return entry.payload.lexicographicallyPrecedes(others.payload)
  }

  /// Why it can't be kept or sent; nil if it can.
  package var objection: String? {
    guard let entry else { return nil }
    switch entry.score {
    case .int: break
    case .double(let value): guard value.isFinite else { return "a score has to be a finite number" }
    case .string, .data: return "a score has to be a number"
    }
    // The magnitude of the smallest number doesn't fit into its type.
    guard entry.dateMilliseconds.magnitude <= Stamp.maximumMilliseconds.magnitude else { return "the time of a score is out of range" }
    return nil
  }

  /// Roughly the bytes it takes, for limits.
  package var size: Int { 32 + (entry.map { $0.payload.count + $0.score.size } ?? 0) }
}
