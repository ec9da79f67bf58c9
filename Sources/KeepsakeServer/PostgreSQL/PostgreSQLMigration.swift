#if Cloud && PostgreSQL
import KeepsakePostgreSQL
import Logging

/// A step from one state of a database's tables to the next, forward only, while other servers use them.
struct PostgreSQLMigration: Sendable {
  /// Committed together. A statement that can't lock its table soon fails, and all of them are begun anew: as long as
  /// it waits, all other users of the table wait behind it.
  var statements: [String]
  /// The number of the oldest state whose servers may go on with the tables as they are after this; nil for only those
  /// that know this step.
  var oldest: Int64?

  init(_ statements: [String], oldest: Int64? = nil) { (self.statements, self.oldest) = (statements, oldest) }
}

extension PostgreSQLSchema {
  /// The state of the tables that this program makes and knows.
  static var number: Int64 { Int64(migrations.count) }

  /// Brings the tables to their newest state, one step at a time, whatever other servers that start do. What is there
  /// already is only read: to make a table or an index again waits for all who write, and they for it.
  ///
  /// - Throws: `ServerError` with `newerData` if newer servers have changed the tables so that this one can't use them;
  ///   `PostgreSQLError`.
  static func prepare(
    _ pool: PostgreSQLPool, _ migrations: [PostgreSQLMigration] = Self.migrations, logger: Logger
  ) async throws {
    let newest = Int64(migrations.count)
    var hasWaited = false
    while true {
      try Task.checkCancellation()
      do {
        let state: (number: Int64, oldest: Int64)
        do {
          state = try await self.state(of: pool)
        } catch let error as PostgreSQLError where isDuplicate(error) {
          // Another server was first.
          try await pause()
          continue
        }
        guard state.oldest <= newest else { throw outdated }
        guard state.number < newest else { return }
        try await migrate(pool.settings, from: state.number, by: migrations[Int(state.number)])
      } catch {
        guard (error as? PostgreSQLError)?.isConflict == true else { throw error }
        // Another server makes the same step, or uses the table: for as long as that takes.
        if !hasWaited { logger.notice("Waiting for other servers to change the database's tables") }
        hasWaited = true
        try await pause()
      }
    }
  }

  private static func pause() async throws { try await Task.sleep(for: .milliseconds(Int.random(in: 20..<200))) }

  private static func isDuplicate(_ error: PostgreSQLError) -> Bool {
    error.state.map { [.uniqueViolation, .duplicateTable, .duplicateObject].contains($0) } ?? false
  }

  /// Reads the state of the tables, and the number of the oldest one whose servers may use them.
  static let reading = PostgreSQLStatement("SELECT number, oldest FROM schema_number WHERE id = 1")
  static let outdated = ServerError(
    .newerData, "Newer servers have changed the database's tables; start this server in their version.")

  /// Throws a `ServerError` if the tables aren't all there, or this program can't use them.
  static func requireCurrent(_ connection: PostgreSQLConnection) throws {
    let isThere = try connection.run([isThere])[0].first != nil
    let row = isThere ? try connection.run([reading])[0].first : nil
    guard let row, try row.int(0) >= number else {
      throw ServerError(
        .missing, "The database doesn't have all tables of this version: run `keepsake serve` with it once.")
    }
    if try row.int(1) > number { throw outdated }
  }

  private static let isThere = PostgreSQLStatement(
    """
    SELECT 1::bigint FROM information_schema.tables
    WHERE table_schema = current_schema() AND table_name = 'schema_number'
    """)

  private static func state(of pool: PostgreSQLPool) async throws -> (number: Int64, oldest: Int64) {
    if try await pool.run([isThere])[0].first == nil {
      // The row is also what those that make a step wait for: not every database has other locks.
      _ = try await pool.run([
        PostgreSQLStatement(
          "CREATE TABLE schema_number (id bigint PRIMARY KEY, number bigint NOT NULL, oldest bigint NOT NULL)")
      ])
    }
    if let row = try await pool.run([reading])[0].first { return (try row.int(0), try row.int(1)) }
    _ = try await pool.run([
      PostgreSQLStatement("INSERT INTO schema_number (id, number, oldest) VALUES (1, 0, 0) ON CONFLICT DO NOTHING")
    ])
    return (0, 0)
  }

  /// Makes one step, unless another server has. On a connection of its own, since it may take as long as it takes.
  private static func migrate(
    _ settings: PostgreSQLSettings, from number: Int64, by migration: PostgreSQLMigration
  ) async throws {
    var settings = settings
    // But not if this server is gone, or stands still.
    (settings.idleSeconds, settings.lostSeconds) = (settings.statementSeconds, settings.answerSeconds)
    (settings.statementSeconds, settings.answerSeconds) = (24 * 3_600, 25 * 3_600)
    let pool = PostgreSQLPool(settings, connections: 1)
    let made = await Result {
      try await pool.transaction { transaction in
        let row = try transaction.run("SELECT number FROM schema_number WHERE id = 1 FOR UPDATE").first
        guard try row?.int(0) == number else { return }
        for statement in migration.statements { try transaction.run(statement) }
        try transaction.run(
          "UPDATE schema_number SET number = $1, oldest = greatest(oldest, $2) WHERE id = 1",
          [.int(number + 1), .int(migration.oldest ?? number + 1)])
      }
    }
    await pool.finish()
    try made.get()
  }
}

extension Result where Failure == any Error {
  fileprivate init(catching body: () async throws -> Success) async {
    do { self = .success(try await body()) } catch { self = .failure(error) }
  }
}
#endif
