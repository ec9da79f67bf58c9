#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging

/// The packed decisions of a container's bank, within a transaction that has the container's turn.
struct PostgreSQLPacking: PackedRuns {
  private let container: PostgreSQLValue
  private let transaction: PostgreSQLTransaction

  init(_ container: ContainerID, in transaction: PostgreSQLTransaction) {
    (self.container, self.transaction) = (.bytes(container.bytes), transaction)
  }

  /// Packs the oldest decisions if enough of them are older than those whose details are kept. What is decided stays
  /// the same; but who decides about the container meanwhile begins anew.
  func packOldest(keeping detailed: Int64) throws {
    let turn = try run("UPDATE container SET revision = revision + 1 WHERE id = $1 AND revision >= 0")
    // Everything of the player may have been deleted, or lives in another database by now, which packs it.
    guard turn.count > 0, let span = try run(Self.span).first,
      let end = try PackedDecisions.packedBefore(span, keeping: detailed)
    else { return }
    let rows = try run(
      """
      DELETE FROM bank_decision WHERE container = $1 AND arrival IS NOT NULL AND arrival < $2
      RETURNING operation, verdict, fingerprint
      """, [.int(end)])
    let entries = try rows.map {
      PackedDecisions.Entry(
        operation: try $0.identifier(0), isAccepted: try $0.verdict(1).counts, fingerprint: try $0.unsigned(2))
    }
    try addRun(PackedDecisions.packed(entries))
  }

  /// Reads the first and the last arrival of decisions in detail.
  static let span = """
    SELECT (SELECT min(arrival) FROM bank_decision WHERE container = $1 AND arrival IS NOT NULL),
      (SELECT max(arrival) FROM bank_decision WHERE container = $1 AND arrival IS NOT NULL)
    FROM container WHERE id = $1
    """

  func packedLevels() throws -> [Int64] {
    try run("SELECT level FROM packed_decision WHERE container = $1 GROUP BY level ORDER BY level").map {
      try $0.int(0)
    }
  }

  func packedParts(ofLevel level: Int64, after first: OperationID?) throws -> [PackedDecisions] {
    try run(
      """
      SELECT entries FROM packed_decision WHERE container = $1 AND level = $2 AND first > $3 ORDER BY first LIMIT $4
      """, [.int(level), .bytes(first?.bytes ?? Data()), .int(Int64(PackedDecisions.partsAtOnce))]
    ).map { try PackedDecisions.stored($0.bytes(0)) }
  }

  func insertPacked(_ parts: [PackedDecisions], level: Int64) throws {
    _ = try transaction.run(
      parts.map {
        PostgreSQLStatement(
          "INSERT INTO packed_decision (container, level, first, entries) VALUES ($1, $2, $3, $4)",
          [container, .int(level), .bytes($0.first.bytes), .bytes($0.bytes)])
      })
  }

  func removePacked(below level: Int64) throws {
    try run("DELETE FROM packed_decision WHERE container = $1 AND level < $2", [.int(level)])
  }

  @discardableResult
  private func run(_ sql: String, _ values: [PostgreSQLValue] = []) throws -> PostgreSQLRows {
    try transaction.run(sql, [container] + values)
  }
}

extension PackedDecisions {
  /// - Parameter span: What `PostgreSQLPacking.span` has read.
  fileprivate static func packedBefore(_ span: PostgreSQLRow, keeping detailed: Int64) throws -> Int64? {
    guard let oldest = try span.optionalInt(0), let newest = try span.optionalInt(1) else { return nil }
    return packedBefore(oldest: oldest, newest: newest, keeping: detailed)
  }
}

extension PostgreSQLStorage {
  /// Packs old decisions of a container if what its commit has read says that it is time.
  ///
  /// Whatever goes wrong, the commit is done. It is logged, and the next decision finds that it is still time.
  func packIfDue(_ container: ContainerID, after commit: PostgreSQLCommit, _ answers: [PostgreSQLRows]) async {
    do {
      guard let index = commit.spanIndex, answers.indices.contains(index), let span = answers[index].first,
        try PackedDecisions.packedBefore(span, keeping: detailedDecisions) != nil
      else { return }
      try await transaction { [detailedDecisions] in
        try PostgreSQLPacking(container, in: $0).packOldest(keeping: detailedDecisions)
      }
    } catch {
      logger.failure("Old decisions of a bank can't be packed now", error)
    }
  }
}
#endif
