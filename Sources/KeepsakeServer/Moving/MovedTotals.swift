#if Cloud && PostgreSQL
import Foundation
import GRDB
import KeepsakePostgreSQL
import KeepsakeReplication

/// How much there is of a cloud, by which two databases are compared in the end: how many rows some tables have, and
/// sums over the containers, which grow with what players do, and over when codes, identities and the like came. A copy
/// that a database has forgotten shows in them.
struct MovedTotals: Equatable, Sendable {
  static let tables = ["container", "device", "admin_key", "audit", "identity_use"]
  private static let summed = ["epoch", "seq", "mark", "revision", "used"]
  /// What changes without its container, with the column that says when.
  static let dated = [
    ("recovery", "created"), ("identity", "created"), ("ban", "at"), ("retired", "at"), ("token_use", "issued"),
  ]

  private var rows: [Int64]
  /// Of each column, of both halves of its numbers: whole ones may be too large for a sum.
  private var sums: [Int64]
  private var numbers: Int64
  /// Of each dated table how many rows it has, and both halves of the sum of their times.
  private var times: [[Int64]]

  private static func sums(_ cast: String, of columns: [String] = summed, _ column: (String) -> String) -> String {
    columns.flatMap { name in
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
    times = try Self.dated.map { table, column in
      let sums = Self.sums("", of: [column]) { MovedTable.local($0) }
      let row = try Row.fetchOne(db, sql: "SELECT count(*), \(sums) FROM \(MovedTable.local(table))")
      return try (0..<(row?.count ?? 0)).compactMap { try row?.decode(Int64.self, atIndex: $0) }
    }
  }

  /// Reads what `statements` have found.
  init(_ found: [PostgreSQLRows]) throws {
    func values(_ rows: PostgreSQLRows?) throws -> [Int64] {
      try rows?.first.map { row in try row.columns.indices.map { try row.int($0) } } ?? []
    }
    rows = try found.prefix(Self.tables.count).map { try $0.first?.int(0) ?? 0 }
    let others = found.dropFirst(Self.tables.count)
    times = try others.prefix(Self.dated.count).map(values)
    sums = try values(found.dropLast().last)
    numbers = try found.last?.reduce(0) { try $0.addingClamped($1.int(0)) } ?? 0
  }

  /// Adds up a cloud in PostgreSQL.
  ///
  /// - Parameter named: Under which names the tables are there.
  static func statements(_ named: (String) -> String = { $0 }) -> [PostgreSQLStatement] {
    let counts = tables.map { PostgreSQLStatement("SELECT count(*) FROM \(named($0))") }
    let times = dated.map { table, column in
      let sums = sums("::bigint", of: [column]) { $0 }
      return PostgreSQLStatement("SELECT count(*), \(sums) FROM \(named(table))")
    }
    return counts + times + [
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
    for ((table, _), (mine, others)) in zip(Self.dated, zip(times, other.times)) where mine != others {
      return "the same rows in \(table)"
    }
    if numbers != other.numbers { return "the same numbers of the whole cloud" }
    return sums == other.sums ? nil : "the same of all players"
  }
}
#endif
