#if PostgreSQL
package import Foundation

/// A transaction whose statements depend on each other's answers: each is a round trip. Used on the thread that it was
/// made on.
package struct PostgreSQLTransaction {
  private let connection: PostgreSQLConnection
  /// Values that `body` leaves for the code that runs the transaction, which looks at them before it commits.
  package let notes = Notes()

  package final class Notes {
    package var values: [Data] = []
  }

  /// Runs `body` between BEGIN and COMMIT; undoes everything if it throws.
  package static func run<Result>(
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
    // A transaction of which a statement was refused is undone by COMMIT, too, which says so by another word only.
    guard try connection.run([PostgreSQLStatement("COMMIT")])[0].command == "COMMIT" else {
      throw PostgreSQLError.unexpected(
        "a statement of the transaction was refused before, so that all of it was undone")
    }
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
