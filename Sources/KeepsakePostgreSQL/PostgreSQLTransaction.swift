#if PostgreSQL
/// A transaction whose statements depend on each other's answers: each is a round trip. Used on the thread that it was
/// made on.
package struct PostgreSQLTransaction {
  private let connection: PostgreSQLConnection

  /// Runs `body` between BEGIN and COMMIT; undoes everything if it throws.
  static func run<Result>(
    on connection: PostgreSQLConnection, _ body: (PostgreSQLTransaction) throws -> Result
  ) throws -> Result {
    do {
      _ = try connection.run([PostgreSQLStatement("BEGIN")])
    } catch PostgreSQLError.unknownOutcome(let message) {
      // Nothing was changed yet.
      throw PostgreSQLError.unreachable(message)
    }
    let result: Result
    do {
      result = try body(PostgreSQLTransaction(connection: connection))
    } catch {
      // If the connection broke, the server undoes it by itself.
      _ = connection.run([[PostgreSQLStatement("ROLLBACK")]])
      if case PostgreSQLError.unknownOutcome(let message) = error { throw PostgreSQLError.unreachable(message) }
      throw error
    }
    // In a transaction that failed, COMMIT undoes it and says so by another word only: such a failure was thrown.
    _ = try connection.run([PostgreSQLStatement("COMMIT")])
    return result
  }

  /// Runs one statement.
  @discardableResult
  package func run(_ sql: String, _ values: [PostgreSQLValue] = []) throws(PostgreSQLError) -> PostgreSQLRows {
    try connection.run([PostgreSQLStatement(sql, values)])[0]
  }

  /// Runs several in one round trip.
  package func run(_ statements: [PostgreSQLStatement]) throws(PostgreSQLError) -> [PostgreSQLRows] {
    try connection.run(statements)
  }
}
#endif
