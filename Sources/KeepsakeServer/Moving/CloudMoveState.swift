#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import Logging

/// What a PostgreSQL database says about a cloud that comes or goes. While it does, no server may use the database,
/// whatever its version: the state of the tables says that all that exist are too old.
struct CloudMoveState: Sendable {
  enum Step: Int64, Sendable {
    /// A cloud is being copied here.
    case copying = 1
    /// The cloud is here.
    case finished = 2
    /// What was copied here is being removed.
    case abandoned = 3
    /// The cloud is being copied into a data folder.
    case leaving = 4
    /// The cloud is in a data folder.
    case left = 5
  }
  var step: Step
  /// Tells the cloud from others.
  var source: Data
  /// Where it comes from, or has gone to.
  var place: String
  /// What the folder has, too, into which it goes (`ReturnMark`).
  var mark: Data?

  // MARK: Reading

  private static let isThere = PostgreSQLStatement(
    """
    SELECT 1::bigint FROM information_schema.tables
    WHERE table_schema = current_schema() AND table_name = 'cloud_move'
    """)
  private static let reading = "SELECT state, source, place FROM cloud_move WHERE id = 1"

  /// Returns what the database says; nil if it says nothing.
  static func read(_ pool: PostgreSQLPool) async throws -> CloudMoveState? {
    guard try await pool.runUntilDone([isThere])[0].first != nil else { return nil }
    return try await pool.runUntilDone([PostgreSQLStatement(reading)])[0].first.map(CloudMoveState.init)
  }

  private init(_ row: PostgreSQLRow) throws {
    guard let step = Step(rawValue: try row.int(0)) else {
      throw ServerError(.newerData, "The database says of a move what only a newer version understands.")
    }
    // A path has no NUL.
    let parts = try row.bytes(2).split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
    (self.step, source) = (step, try row.bytes(1))
    place = String(decoding: parts[0], as: UTF8.self)
    mark = parts.count > 1 ? Data(parts[1]) : nil
  }

  private static func value(_ place: String, _ mark: Data) -> PostgreSQLValue {
    .bytes(Data(place.utf8) + Data([0]) + mark)
  }

  // MARK: Waiting

  /// Before a server uses the database: waits until the cloud that is being copied into it is there.
  ///
  /// - Returns: Whether a cloud was moved here.
  /// - Throws: `ServerError` if the cloud has gone elsewhere, or what was waited for was given up.
  static func awaitFinished(_ settings: PostgreSQLSettings, logger: Logger) async throws -> Bool {
    let pool = PostgreSQLPool(settings, connections: 1)
    do {
      let hasMoved = try await awaitFinished(pool, logger: logger)
      await pool.finish()
      return hasMoved
    } catch {
      await pool.finish()
      throw error
    }
  }

  private static func awaitFinished(_ pool: PostgreSQLPool, logger: Logger) async throws -> Bool {
    var hasWaited = false
    while true {
      let state = try await read(pool)
      switch state?.step {
      case .finished: return true
      case .copying:
        if !hasWaited { logger.notice("Waiting until a cloud is moved into this database (keepsake migrate)") }
        hasWaited = true
        try await Task.sleep(for: .milliseconds(100))
      case .leaving:
        throw ServerError(
          .unusableFile,
          """
          This cloud is being moved to the data folder \(state?.place ?? ""), where it isn't yet: run \
          `keepsake migrate` again, or give that up with --abandon.
          """)
      case .left:
        throw ServerError(
          .unusableFile,
          "This cloud has moved to the data folder \(state?.place ?? ""): run `keepsake serve` with it instead.")
      case .abandoned, nil:
        guard state == nil, !hasWaited else {
          throw ServerError(.unusableFile, "The move of a cloud into this database was given up (keepsake migrate).")
        }
        return false
      }
    }
  }

  // MARK: Coming

  /// Claims an empty database for a cloud, and keeps all servers from it; or finds that this was done before.
  ///
  /// - Returns: Whether the cloud is there already.
  /// - Throws: `ServerError` if something else is in the database.
  static func claim(_ pool: PostgreSQLPool, for source: Data, from place: String) async throws -> Bool {
    try await pool.changing { transaction in
      let found = try transaction.run("\(reading) FOR UPDATE").first.map(CloudMoveState.init)
      if let found {
        switch found.step {
        case .copying where found.source == source: return false
        case .finished where found.source == source: return true
        case .abandoned:
          throw ServerError(
            .unusableFile, "An earlier move into this database was given up, and isn't removed: use --abandon again.")
        default: break
        }
        throw ServerError(
          .unusableFile, "The database has another cloud, or another one is being moved there: name an empty one.")
      }
      try refuseFilled(transaction)
      try transaction.run(
        """
        INSERT INTO cloud_move (id, source, state, place, oldest)
        SELECT 1, $1, $2, $3, oldest FROM schema_number WHERE id = 1
        """, [.bytes(source), .int(Step.copying.rawValue), .bytes(Data(place.utf8))])
      try shut(transaction)
      return false
    }
  }

  private static func refuseFilled(_ transaction: PostgreSQLTransaction) throws {
    let tables = MovedTable.ofPlayer + [MovedTable.uses, .adminKeys, .audit]
    for name in tables.map(\.name) + ["content_object", "shard", "shard_self"] {
      guard try transaction.run("SELECT 1::bigint FROM \(name) LIMIT 1").first == nil else {
        throw ServerError(
          .unusableFile, "The database has a cloud already (there is something in \(name)): name an empty one.")
      }
    }
  }

  private static func shut(_ transaction: PostgreSQLTransaction) throws {
    try transaction.run("UPDATE schema_number SET oldest = $1 WHERE id = 1", [.int(.max)])
  }

  private static func open(_ transaction: PostgreSQLTransaction) throws {
    try transaction.run(
      "UPDATE schema_number SET oldest = (SELECT oldest FROM cloud_move WHERE cloud_move.id = 1) WHERE id = 1")
  }

  /// Says that the cloud is in the database, and lets servers use it.
  static func finish(_ pool: PostgreSQLPool, _ source: Data) async throws {
    try await pool.changing { transaction in
      let moved = try transaction.run(
        "UPDATE cloud_move SET state = $1 WHERE id = 1 AND source = $2 AND state IN ($1, $3)",
        [.int(Step.finished.rawValue), .bytes(source), .int(Step.copying.rawValue)])
      guard moved.count == 1 else { throw ServerError(.unusableFile, "The move was given up by somebody else.") }
      try open(transaction)
    }
  }

  /// Says that what was copied isn't wanted.
  ///
  /// - Parameter source: Of the cloud in the data folder; nil if that doesn't say so any more.
  /// - Returns: Whether there is anything to remove.
  static func abandon(_ pool: PostgreSQLPool, _ source: Data?) async throws -> Bool {
    try await pool.changing { transaction in
      let found = try transaction.run("\(reading) FOR UPDATE").first.map(CloudMoveState.init)
      guard let found else { return false }
      switch found.step {
      case .abandoned where found.source == source: return true
      case .copying where found.source == source:
        try transaction.run("UPDATE cloud_move SET state = $1 WHERE id = 1", [.int(Step.abandoned.rawValue)])
        return true
      case .finished where found.source == source:
        throw ServerError(
          .unusableFile,
          "The move is finished: the cloud is in the database, and can only be moved back (--from its address).")
      default:
        throw ServerError(.unusableFile, "The database has another cloud than the folder: nothing was changed.")
      }
    }
  }

  /// Removes the row after everything else of an abandoned move is removed.
  static func forget(_ pool: PostgreSQLPool) async throws {
    try await pool.changing { transaction in
      try open(transaction)
      try transaction.run("DELETE FROM cloud_move WHERE id = 1 AND state = $1", [.int(Step.abandoned.rawValue)])
    }
  }

  // MARK: Going

  fileprivate static func isInTheWay(_ error: PostgreSQLError) -> Bool {
    if case .unknownOutcome = error { return true }
    return error.isConflict || error.state == .uniqueViolation
  }

  /// Keeps all servers from a database whose cloud goes into a data folder.
  ///
  /// - Parameter mark: What the folder has.
  /// - Throws: `ServerError` if it goes elsewhere, or is there already: nothing was changed.
  static func leave(_ pool: PostgreSQLPool, to place: String, _ mark: Data) async throws {
    let value = value(place, mark)
    try await pool.changing { transaction in
      let found = try transaction.run("\(reading) FOR UPDATE").first.map(CloudMoveState.init)
      try refuseShards(transaction)
      // What is still to be told to backends isn't moved.
      guard try transaction.run("SELECT 1::bigint FROM webhook_event LIMIT 1").first == nil else {
        throw CloudMoveRun.undelivered
      }
      switch found?.step {
      case nil:
        try transaction.run(
          """
          INSERT INTO cloud_move (id, source, state, place, oldest)
          SELECT 1, $1, $2, $3, oldest FROM schema_number WHERE id = 1
          """, [.bytes(mark), .int(Step.leaving.rawValue), value])
      case .finished:
        try transaction.run(
          """
          UPDATE cloud_move SET state = $1, place = $2,
            oldest = (SELECT oldest FROM schema_number WHERE schema_number.id = 1) WHERE id = 1
          """, [.int(Step.leaving.rawValue), value])
      case .leaving where found?.mark == mark: return try ReturnFence.remove(in: transaction)
      case .leaving, .left: throw elsewhere(found?.place)
      case .copying, .abandoned:
        throw ServerError(.unusableFile, "A cloud is being moved into this database: there is none to move out of it.")
      }
      try shut(transaction)
    }
  }

  /// The path alone doesn't say which folder it is.
  static func elsewhere(_ place: String?) -> ServerError {
    ServerError(
      .unusableFile,
      """
      The cloud has gone to the data folder \(place ?? ""), or is being moved there, and this isn't that folder, or \
      one of another machine: name that one.
      """)
  }

  private static func refuseShards(_ transaction: PostgreSQLTransaction) throws {
    guard try transaction.run([ShardBinding.spreading])[0].first == nil else {
      throw ServerError(
        .unusableFile, "The players of this cloud are spread over several databases: it can't be moved into a folder.")
    }
  }

  /// Keeps those servers out, too, that have stood still since the cloud began to leave.
  ///
  /// - Parameters:
  ///   - milliseconds: How long open transactions are waited for, each time.
  ///   - attempts: How often.
  /// - Throws: `ServerError` if the move was given up meanwhile, or if transactions stay open.
  static func fence(
    _ settings: PostgreSQLSettings, _ mark: Data, waiting milliseconds: Int = 10_000, attempts: Int = 6
  ) async throws {
    var settings = settings
    // Longer than the database takes to end its own work on a table for this.
    settings.lockMilliseconds = milliseconds
    let pool = PostgreSQLPool(settings, connections: 1)
    var failure: (any Error)?
    for _ in 0..<attempts {
      do {
        try await pool.transaction { transaction in
          try requireLeaving(transaction, mark)
          try ReturnFence.build(in: transaction)
        }
        failure = nil
        break
      } catch {
        failure = error
        guard let error = error as? PostgreSQLError, isInTheWay(error) else { break }
        failure = ServerError(
          .folderInUse, "A server still uses the database: stop all servers, and run the command again.", cause: error)
      }
    }
    await pool.finish()
    if let failure { throw failure }
  }

  private static func requireLeaving(_ transaction: PostgreSQLTransaction, _ mark: Data) throws {
    let found = try transaction.run("\(reading) FOR UPDATE").first.map(CloudMoveState.init)
    guard let found, found.mark == mark, [.leaving, .left].contains(found.step) else {
      throw ServerError(.unusableFile, "The move was given up meanwhile: the cloud stays in the database.")
    }
  }

  /// Says that the cloud is in a folder, once the fence is built.
  ///
  /// - Parameter copied: What was copied.
  /// - Throws: `ServerError` if that was given up meanwhile: servers may use the database again. Or if the database has
  ///   changed since it was copied.
  static func setLeft(_ pool: PostgreSQLPool, _ mark: Data, _ copied: MovedTotals) async throws {
    try await pool.changing { transaction in
      try requireLeaving(transaction, mark)
      let there = try MovedTotals(try transaction.run(MovedTotals.statements(ReturnFence.name)))
      if let difference = there.difference(from: copied) {
        throw ServerError(
          .folderInUse,
          """
          The database has changed while it was copied: it hasn't \(difference). Stop all servers, and run the command \
          again.
          """)
      }
      try transaction.run("UPDATE cloud_move SET state = $1 WHERE id = 1", [.int(Step.left.rawValue)])
    }
  }

  /// Lets servers use the database again whose cloud was to go.
  static func stay(_ pool: PostgreSQLPool) async throws {
    try await pool.changing { transaction in
      guard let found = try transaction.run("\(reading) FOR UPDATE").first.map(CloudMoveState.init) else { return }
      switch found.step {
      case .finished: return
      case .leaving:
        try ReturnFence.remove(in: transaction)
        try open(transaction)
        // A cloud that was moved here isn't in the folder from which it came, whatever was given up since.
        try transaction.run("UPDATE cloud_move SET state = $1 WHERE id = 1", [.int(Step.finished.rawValue)])
      case .left, .copying, .abandoned:
        throw ServerError(.unusableFile, "The cloud isn't on its way out of this database: nothing was changed.")
      }
    }
  }
}

extension PostgreSQLPool {
  /// Runs a transaction that may be done twice, again if another one was in its way or the connection broke.
  @discardableResult
  func changing<Result: Sendable>(
    _ body: @escaping @Sendable (PostgreSQLTransaction) throws -> Result
  ) async throws -> Result {
    try await repeating(CloudMoveState.isInTheWay) { try await transaction(body) }
  }
}
#endif
