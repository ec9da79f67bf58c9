package import Foundation

/// Which of two scores is better.
package enum ScoreOrder: String, Hashable, Sendable, Codable, CaseIterable {
  /// The smallest is the best: a fastest time.
  case ascending
  /// The greatest is the best.
  case descending
}

/// A player's best score on a board, as held by a cell of the rule `best`.
///
/// All best scores have one common order, whatever their `order`, and a join takes the first in it. So joins are
/// commutative, associative and idempotent, and two cells that disagree about `order` agree about the result.
package struct BestScore: Hashable, Sendable, Codable {
  package struct Entry: Hashable, Sendable, Codable {
    /// A number.
    package var score: Scalar
    package var dateMilliseconds: Int64
    /// Data that belongs to the score; comparing scores doesn't require understanding it.
    package var payload: Data

    package init(score: Scalar, dateMilliseconds: Int64, payload: Data) {
      self.score = score
      self.dateMilliseconds = dateMilliseconds
      self.payload = payload
    }
  }

  /// A score that was taken back, so that every device removes this one, but no better one that the device which did it
  /// had never seen.
  package struct Withdrawal: Hashable, Comparable, Sendable, Codable {
    /// The cell's generation in which it was the best.
    package var generation: UInt64
    package var id: ScoreID

    package init(generation: UInt64, id: ScoreID) {
      self.generation = generation
      self.id = id
    }

    package static func < (left: Self, right: Self) -> Bool {
      left.generation != right.generation ? left.generation < right.generation : left.id < right.id
    }
  }

  /// The most withdrawn scores that are remembered, for devices that have been offline. The newest are kept; a player
  /// whose best is taken back more often has other problems.
  package static let maximumWithdrawn = 64

  package var order: ScoreOrder
  /// Nil if the best was withdrawn and no other was known.
  package var entry: Entry?
  /// Scores that were taken back in this generation and in those before it.
  package var withdrawn: Set<Withdrawal>
  /// The whole board was taken back: what devices still keep for themselves isn't offered again.
  package var isCleared: Bool

  package init(order: ScoreOrder, entry: Entry?, withdrawn: Set<Withdrawal> = [], isCleared: Bool = false) {
    self.order = order
    self.entry = entry
    self.withdrawn = withdrawn
    self.isCleared = isCleared
  }

  /// Returns the first of both in the common order, with everything that was taken back.
  package func joined(with other: BestScore) -> BestScore {
    var joined = other.precedes(self) ? other : self
    joined.withdrawn = Self.newest(of: withdrawn.union(other.withdrawn))
    joined.isCleared = isCleared || other.isCleared
    return joined
  }

  /// Returns the greatest of a set. This is a join as well: what is left out stays out.
  private static func newest(of withdrawn: Set<Withdrawal>) -> Set<Withdrawal> {
    guard withdrawn.count > maximumWithdrawn else { return withdrawn }
    return Set(withdrawn.sorted(by: >).prefix(maximumWithdrawn))
  }

  /// Returns the score that replaces `held`, which is taken back.
  func replacing(_ held: BestScore, of generation: UInt64) -> BestScore {
    var next = self
    next.withdrawn.formUnion(held.withdrawn)
    if let id = held.scoreID { next.withdrawn.insert(Withdrawal(generation: generation, id: id)) }
    next.withdrawn = Self.newest(of: next.withdrawn)
    return next
  }

  /// The score's id, as a device writes it; nil without a score, or if no device wrote it.
  package var scoreID: ScoreID? { entry.flatMap { ScoreEntry.id(in: $0.payload) } }

  /// Whether the score itself was taken back, because two devices took back each other's next best.
  package var isTakenBack: Bool {
    guard !withdrawn.isEmpty, let id = scoreID else { return false }
    return withdrawn.contains { $0.id == id }
  }

  /// Compares scores: the better score comes first, then the earlier, then the smaller bytes; any score comes before
  /// none, and `descending` before `ascending`.
  package func precedes(_ other: BestScore) -> Bool {
    if order != other.order { return order == .descending }
    guard let entry else { return false }
    guard let others = other.entry else { return true }
    if entry.score != others.score {
      return order == .descending ? entry.score > others.score : entry.score < others.score
    }
    if entry.dateMilliseconds != others.dateMilliseconds { return entry.dateMilliseconds < others.dateMilliseconds }
    return entry.payload.lexicographicallyPrecedes(others.payload)
  }

  /// Why the score can't be kept or sent; nil if it can.
  package var objection: String? {
    guard withdrawn.count <= Self.maximumWithdrawn else { return "more scores were withdrawn than a value may list" }
    guard let entry else { return nil }
    switch entry.score {
    case .int: break
    case .double(let value): guard value.isFinite else { return "a score has to be a finite number" }
    case .string, .data: return "a score has to be a number"
    }
    // The magnitude of the smallest number doesn't fit into its type.
    guard entry.dateMilliseconds.magnitude <= Stamp.maximumMilliseconds.magnitude else {
      return "the time of a score is out of range"
    }
    return nil
  }

  /// The approximate size in bytes, for limits.
  package var size: Int { 32 + withdrawn.count * 96 + (entry.map { $0.payload.count + $0.score.size } ?? 0) }
}

// Withdrawn scores are omitted if there are none.
extension BestScore {
  private enum CodingKeys: String, CodingKey {
    case order, entry, withdrawn, cleared
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      order: try container.decode(ScoreOrder.self, forKey: .order),
      entry: try container.decodeIfPresent(Entry.self, forKey: .entry),
      withdrawn: Set(try container.decodeIfPresent([Withdrawal].self, forKey: .withdrawn) ?? []),
      isCleared: try container.decodeIfPresent(Bool.self, forKey: .cleared) ?? false)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(order, forKey: .order)
    try container.encodeIfPresent(entry, forKey: .entry)
    if !withdrawn.isEmpty { try container.encode(withdrawn.sorted(), forKey: .withdrawn) }
    if isCleared { try container.encode(true, forKey: .cleared) }
  }
}
