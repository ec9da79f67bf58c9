#if PostgreSQL
/// Has a server behave as other databases of PostgreSQL's family may, for tests: it doesn't understand some statements,
/// and transactions fail although nothing was in their way.
package struct PostgreSQLStandIn: Hashable, Sendable {
  /// How the statements begin that aren't understood.
  package var missing: [String]
  /// One of so many transactions fails with a serialization failure.
  package var oneFailsOf: Int
  /// Whether the options of sessions are lost on the way, as in a pooler that gives each transaction another session.
  package var losesOptions: Bool
  /// Whether the server is PostgreSQL itself, by what it says.
  package var isPostgreSQL: Bool

  package init(
    missing: [String] = [], oneFailsOf: Int = .max, losesOptions: Bool = false, isPostgreSQL: Bool = false
  ) {
    (self.missing, self.oneFailsOf, self.losesOptions) = (missing, oneFailsOf, losesOptions)
    self.isPostgreSQL = isPostgreSQL
  }

  /// One without LISTEN and NOTIFY, in which one of twenty transactions fails.
  package static let other = PostgreSQLStandIn(missing: ["LISTEN", "SELECT pg_notify"], oneFailsOf: 20)

  private static let unknown = PostgreSQLStatement("SELECT keepsake_does_not_know_this()")
  private static let failing = PostgreSQLStatement(
    "DO $$ BEGIN RAISE EXCEPTION 'by the stand-in' USING ERRCODE = '40001'; END $$")

  /// Returns what is sent in place of a transaction, or of a part of one that is open.
  func altered(_ statements: [PostgreSQLStatement]) -> [PostgreSQLStatement] {
    let altered = statements.map { statement in
      missing.contains { statement.sql.hasPrefix($0) } ? Self.unknown : statement
    }
    let untouched = ["BEGIN", "ROLLBACK", PostgreSQLConnection.greeting.sql]
    guard let first = statements.first?.sql, !untouched.contains(first),
      Int.random(in: 0..<oneFailsOf) == 0
    else { return altered }
    // What fails when it is committed isn't open any more.
    return first == "COMMIT" ? [PostgreSQLStatement("ROLLBACK"), Self.failing] : altered + [Self.failing]
  }
}
#endif
