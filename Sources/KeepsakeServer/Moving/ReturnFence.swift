#if Cloud && PostgreSQL
import KeepsakePostgreSQL

/// The fence around a cloud in PostgreSQL that has gone into a data folder: the tables without which no server changes
/// anything have other names. Every transaction that is open then has ended before, and every later one fails, also of
/// a server that has stood still since and hasn't looked what the database says of its cloud.
enum ReturnFence {
  private static let tables = ["container"] + MovedTable.ofCloud.map(\.name)

  /// Returns the name of a table behind the fence.
  static func name(_ table: String) -> String { tables.contains(table) ? "\(table)_left" : table }

  /// Builds the fence, or what is missing of it: not every database undoes this together with the transaction.
  static func build(in transaction: PostgreSQLTransaction) throws {
    try rename(tables.map { ($0, name($0)) }, transaction)
  }

  static func remove(in transaction: PostgreSQLTransaction) throws {
    try rename(tables.map { (name($0), $0) }, transaction)
  }

  private static func rename(_ names: [(old: String, new: String)], _ transaction: PostgreSQLTransaction) throws {
    for (old, new) in names {
      let found = try transaction.run(
        """
        SELECT 1::bigint FROM information_schema.tables
        WHERE table_schema = current_schema() AND table_name = '\(old)'
        """)
      if found.first != nil { try transaction.run("ALTER TABLE \(old) RENAME TO \(new)") }
    }
  }
}
#endif
