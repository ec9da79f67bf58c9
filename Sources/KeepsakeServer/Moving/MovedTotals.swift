#if Cloud && PostgreSQL
import Foundation
import GRDB
import KeepsakePostgreSQL
import KeepsakeReplication

/// How much there is of a cloud, by which two databases are compared in the end: how many rows some tables have, and
/// sums over the containers, which grow with what players do. A copy that a database has forgotten shows in them.
struct MovedTotals: Equatable, Sendable {
  static let tables = ["container", "device", "admin_key", "audit", "identity_use"]
  private static let summed = ["epoch", "seq", "mark", "revision", "used"]

  private var rows: [Int64]
  /// Of each column, of both halves of its numbers: whole ones may be too large for a sum.
  private var sums: [Int64]
  private var numbers: Int64

  private static func sums(_ cast: String, _ column: (String) -> String) -> String {
    summed.flatMap { name in
      ["\(column(name)) & 4294967295", "\(column(name)) >> 32"].map { "coalesce(sum(\($0)), 0)\(cast)" }
    }.joined(separator: ", ")
  }

  /// Adds up a cloud in SQLite.
  init(in db: Database) throws {
    rows = try Self.tables.map { name in
      try Int64.fetchOne(db, sql: "SELECT count(*) FROM \(MovedTable.local(name))") ?? 0
    }
    // As it is moved.
    let sums = Self.sums("") { $0 == "revision" ? "max(revision, 1)" : $0 }
    let row = try Row.fetchOne(db, sql: "SELECT \(sums) FROM container")
    self.sums = try (0..<(row?.count ?? 0)).compactMap { try row?.decode(Int64.self, atIndex: $0) }
    numbers = try MovedTable.movedNumbers.reduce(0) { try $0.addingClamped(Int64(clamping: $1.value(in: db))) }
  }

  /// Reads what `statements` have found.
  init(_ found: [PostgreSQLRows]) throws {
    rows = try found.dropLast(2).map { try $0.first?.int(0) ?? 0 }
    sums = try found.dropLast().last?.first.map { row in try row.columns.indices.map { try row.int($0) } } ?? []
    numbers = try found.last?.reduce(0) { try $0.addingClamped($1.int(0)) } ?? 0
  }

  /// Adds up a cloud in PostgreSQL.
  ///
  /// - Parameter named: Under which names the tables are there.
  static func statements(_ named: (String) -> String = { $0 }) -> [PostgreSQLStatement] {
    tables.map { PostgreSQLStatement("SELECT count(*) FROM \(named($0))") } + [
      PostgreSQLStatement("SELECT \(sums("::bigint") { $0 }) FROM \(named("container"))"),
      PostgreSQLStatement(
        "SELECT value FROM \(named("number")) WHERE name = ANY($1)",
        [.list(MovedTable.movedNumbers.map { Data($0.rawValue.utf8) })]),
    ]
  }

  /// Returns what both don't have the same of; nil if there is no such thing.
  func difference(from other: MovedTotals) -> String? {
    for (table, (mine, others)) in zip(Self.tables, zip(rows, other.rows)) where mine != others {
      return "the same number of rows in \(table) (\(mine), and \(others) in the copy)"
    }
    if numbers != other.numbers { return "the same numbers of the whole cloud" }
    return sums == other.sums ? nil : "the same of all players"
  }
}
#endif
