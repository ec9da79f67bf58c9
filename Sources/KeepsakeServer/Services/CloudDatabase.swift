#if Cloud
import Logging

#if PostgreSQL
import KeepsakePostgreSQL
#endif

/// The database that several servers use.
enum CloudDatabase {
  /// - Throws: `ServerError` if this program was built without support for it, or the database can't be used.
  static func open(_ configuration: ServerConfiguration, logger: Logger) async throws -> any CloudStorage {
    #if PostgreSQL
    var settings = PostgreSQLSettings(configuration.database ?? "")
    settings.statementSeconds = configuration.databaseSeconds
    settings.answerSeconds = 2 * configuration.databaseSeconds
    do {
      return try await PostgreSQLStorage(
        settings, connections: configuration.databaseConnections, clock: configuration.clock, logger: logger)
    } catch let error as ServerError {
      throw error
    } catch {
      throw ServerError(.inputOutput, "The database can't be opened.", cause: error)
    }
    #else
    throw ServerError(
      .configuration, "This program was built without PostgreSQL: build it with --traits Cloud,PostgreSQL.")
    #endif
  }
}
#endif
