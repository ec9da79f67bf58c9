#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL

/// Where a container lives, as home's directory says.
struct Placement: Hashable, Sendable {
  var shard: String
  /// Grows with each move that is begun or undone.
  var generation: Int64
  /// Where it is being moved to.
  var movingTo: String?
  /// Whether nothing was heard of its mover for so long that anybody may undo the move.
  var isAbandoned: Bool
  /// A shard that may still have rows of it.
  var leftAt: String?
  /// Whether everything of its player is being deleted.
  var isDeleting: Bool

  /// After this time without a sign of life, a move may be undone. For as long a player waits whose mover was killed; a
  /// mover that only stood still loses its work, and nothing else.
  static let leaseMilliseconds: Int64 = 1_200
  /// After this time, others do what is left of a move that was decided, or of a deletion.
  static let remainderMilliseconds: Int64 = 10_000
  static let columns =
    "shard, generation, moving_to, "
    + "CASE WHEN since < \(DatabaseClock.now) - \(leaseMilliseconds) THEN 1 ELSE 0 END::bigint, left_at, "
    + "CASE WHEN deleting IS NULL THEN 0 ELSE 1 END::bigint"

  /// Reads `columns` from a column on.
  init(_ row: PostgreSQLRow, from index: Int = 0) throws {
    func name(_ bytes: Data) -> String { String(decoding: bytes, as: UTF8.self) }
    (shard, generation) = (name(try row.bytes(index)), try row.int(index + 1))
    movingTo = try row.optionalBytes(index + 2).map(name)
    isAbandoned = try row.int(index + 3) == 1
    leftAt = try row.optionalBytes(index + 4).map(name)
    isDeleting = try row.int(index + 5) == 1
  }
}

extension PostgreSQLValue {
  static func name(_ name: String) -> Self { .bytes(Data(name.utf8)) }
}
#endif
