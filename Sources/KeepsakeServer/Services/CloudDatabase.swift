#if Cloud
import Foundation
import KeepsakeReplication
import Logging

#if PostgreSQL
import KeepsakePlatform
import KeepsakePostgreSQL
#endif

/// The database that several servers use, or the databases over which its players are spread.
enum CloudDatabase {
  /// - Throws: `ServerError` if this program was built without support for it, or a database can't be used.
  static func open(_ configuration: ServerConfiguration, logger: Logger) async throws -> any AdminStorage {
    #if PostgreSQL
    let shards = try ShardAddress.all(configuration.shards)
    guard !shards.isEmpty else {
      return try await openOne(configuration, until: end(of: configuration), logger: logger)
    }
    return try await openSharded(shards, configuration, logger: logger)
    #else
    throw missing
    #endif
  }

  #if PostgreSQL
  static func openSharded(
    _ shards: [ShardAddress], _ configuration: ServerConfiguration, logger: Logger,
    firstWait: Duration = ShardedStorage.firstWait
  ) async throws -> ShardedStorage {
    let addresses = Dictionary(shards.map { ($0.name, $0.address) }) { $1 }
    let names = Set(addresses.keys).union([ShardBinding.home])
    let end = end(of: configuration)
    return try await ShardedStorage.open(addresses.keys.sorted(), firstWait: firstWait) { name, binding in
      var logger = logger
      logger[metadataKey: "shard"] = "\(name)"
      return try await openOne(
        configuration, at: addresses[name], binding: binding, shards: names, until: end, logger: logger)
    }
  }

  /// Opens the databases of a cloud beside its servers: of large contents only their rows.
  static func openBeside(
    database: String, _ shards: [ShardAddress], logger: Logger
  ) async throws -> ShardedStorage {
    let addresses = Dictionary(shards.map { ($0.name, $0.address) }) { $1 }
    let names = Set(addresses.keys).union([ShardBinding.home])
    do {
      return try await ShardedStorage.open(addresses.keys.sorted(), isServer: false) { name, binding in
        let settings = PostgreSQLSettings(addresses[name] ?? database)
        // Servers that run may be unable to go on with newer tables.
        try PostgreSQLSchema.requireCurrent(PostgreSQLConnection(settings))
        return try await PostgreSQLStorage(
          settings, connections: besideConnections, contents: nil, binding: binding, shards: names,
          clock: ServerConfiguration.systemClock, logger: logger)
      }
    } catch let error as PostgreSQLError {
      throw ServerError(.inputOutput, "A database can't be opened.", cause: error)
    }
  }

  private static let besideConnections = 4

  private static func openOne(
    _ configuration: ServerConfiguration, at address: String? = nil, binding: ShardBinding? = nil,
    shards: Set<String> = [], until end: ContinuousClock.Instant, logger: Logger
  ) async throws -> PostgreSQLStorage {
    var settings = PostgreSQLSettings(address ?? configuration.database ?? "")
    settings.statementSeconds = configuration.databaseSeconds
    settings.answerSeconds = 2 * configuration.databaseSeconds
    settings.standIn = configuration.databaseStandIn
    let which = binding.map { " of the shard \($0.name)" } ?? ""
    do {
      let contents = try ContentPlace.all(configuration.contents)
      func storage(unopened: PostgreSQLError? = nil) async throws -> PostgreSQLStorage {
        try await PostgreSQLStorage(
          settings, connections: configuration.databaseConnections, contents: contents, binding: binding,
          shards: shards, clock: configuration.clock, logger: logger, webhooks: configuration.webhooks,
          unopened: unopened)
      }
      guard binding?.isKnown == true else {
        return try await waiting(for: settings, until: end, logger: logger) { try await storage() }
      }
      do {
        return try await storage()
      } catch let error as PostgreSQLError where error.isPassing {
        // One that answers and refuses isn't down: that says the reason once more, unless it has begun to admit now.
        let isRefusing = await LibraryThread.result { [settings] in PostgreSQLConnection.isRefusing(settings) }
        return try await isRefusing == true ? storage() : storage(unopened: error)
      }
    } catch let error as ServerError {
      throw error
    } catch let error as ContentStorageError {
      throw ServerError(.inputOutput, "The place of large contents can't be used.", cause: error)
    } catch {
      throw ServerError(.inputOutput, "The database\(which) can't be opened.", cause: error)
    }
  }

  /// Until when a server that starts now waits for its databases.
  private static func end(of configuration: ServerConfiguration) -> ContinuousClock.Instant {
    .now + .seconds(configuration.databaseWaitSeconds)
  }

  /// Does `body` again as long as a database doesn't answer. One that answers and refuses isn't waited for.
  private static func waiting<Result>(
    for settings: PostgreSQLSettings, until end: ContinuousClock.Instant, logger: Logger,
    _ body: () async throws -> Result
  ) async throws -> Result {
    var (hasWaited, hasAnswered) = (false, false)
    while true {
      do {
        return try await body()
      } catch let error as PostgreSQLError where error.isPassing && ContinuousClock.now < end {
        // It may have begun to answer just now.
        if hasAnswered { throw error }
        hasAnswered = await isAnswering(settings)
        if hasAnswered { continue }
        if !hasWaited { logger.warning("Waiting for the database", metadata: ["error": "\(error)"]) }
        hasWaited = true
        try await Task.sleep(for: .milliseconds(500))
      }
    }
  }

  private static func isAnswering(_ settings: PostgreSQLSettings) async -> Bool {
    await LibraryThread.result { PostgreSQLConnection.isAnswering(settings) } ?? false
  }
  #endif

  /// Before the data folder is opened: waits until a cloud that is being moved into the database is there.
  ///
  /// - Returns: Whether one was moved there.
  static func awaitMoved(_ configuration: ServerConfiguration, logger: Logger) async throws -> Bool {
    guard let address = configuration.database else { return false }
    #if PostgreSQL
    do {
      let settings = PostgreSQLSettings(address)
      return try await waiting(for: settings, until: end(of: configuration), logger: logger) {
        try await CloudMoveState.awaitFinished(settings, logger: logger)
      }
    } catch let error as PostgreSQLError {
      throw ServerError(.inputOutput, "The database can't be opened.", cause: error)
    }
    #else
    throw missing
    #endif
  }

  /// Returns the admin keys and the audit log of a cloud, for commands beside its servers.
  ///
  /// - Parameters:
  ///   - data: The data folder of a server, which must exist.
  ///   - database: The address of the PostgreSQL database that the cloud is in; nil for one in the folder.
  /// - Throws: As `open`.
  static func adminTables(data: URL, database: String?) throws -> any AdminTables {
    let file = try DataFolder.existingDatabase(in: data)
    #if PostgreSQL
    if let database { return try PostgreSQLAdminTables(PostgreSQLSettings(database)) }
    #else
    if database != nil { throw missing }
    #endif
    return SQLiteAdminTables(database: file)
  }

  #if !PostgreSQL
  static func bankStatus(_ address: String, player: PlayerID?) throws -> BankStatus { throw missing }

  static let missing = ServerError(
    .configuration, "This program was built without PostgreSQL: build it with --traits Cloud,PostgreSQL.")
  #endif
}
#endif
