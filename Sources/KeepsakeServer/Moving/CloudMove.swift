#if Cloud
package import Foundation
package import Logging

#if PostgreSQL
import KeepsakePostgreSQL
#endif

/// Moves a whole cloud from the data folder of a server into a PostgreSQL database, and back.
package enum CloudMove {
  /// What is moved, and between what.
  package struct Request: Sendable {
    package var data: URL
    /// The database's address.
    package var address: String
    /// Where large contents are with the database, as for a server.
    package var contents: [String]
    /// Whether the last step is left for another time.
    package var isOnlyCopying: Bool
    package var clock: @Sendable () -> Int64 = ServerConfiguration.systemClock

    package init(data: URL, address: String, contents: [String] = [], isOnlyCopying: Bool = false) {
      (self.data, self.address, self.contents) = (data, address, contents)
      self.isOnlyCopying = isOnlyCopying
    }
  }

  /// Returns the host and the database that an address names, without what is secret.
  package static func name(of address: String) -> String {
    guard let start = address.range(of: "://"), address.hasPrefix("postgres") else { return "a PostgreSQL database" }
    let parts = address[start.upperBound...].split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    // A password has no @ and no slash, or the address is wrong; nothing of it is shown in either case.
    let place = parts[0].lastIndex(of: "@").map { parts[0][parts[0].index(after: $0)...] } ?? parts[0]
    let path = place.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    var host = String(path[0])
    if host.isEmpty, parts.count > 1 {
      let words = parts[1].split(separator: "&").filter { $0.hasPrefix("host=") }
      host = words.first.map { String($0.dropFirst("host=".count)) } ?? ""
    }
    let database = path.count > 1 && !path[1].isEmpty ? " \(path[1])" : ""
    return "the PostgreSQL database\(database)" + (host.isEmpty ? "" : " on \(host)")
  }

  /// Copies a cloud into the database while its server goes on, and in the end makes the database its only place.
  ///
  /// It may end at any moment, and be called again: what was copied stays copied.
  ///
  /// - Throws: A `ServerError`; `CancellationError`.
  package static func move(
    _ request: Request, logger: Logger = Logger(label: "keepsake.server"),
    progress: @escaping CloudMoveProgress.Receiver = { _ in }
  ) async throws -> CloudMoveSummary {
    #if PostgreSQL
    return try await describing { try await CloudMoveRun.run(request, logger: logger, progress: progress) }
    #else
    throw missing
    #endif
  }

  /// Gives up a move that isn't finished: the folder is a cloud as before, and the database is empty.
  package static func abandon(
    _ request: Request, logger: Logger = Logger(label: "keepsake.server"),
    progress: @escaping CloudMoveProgress.Receiver = { _ in }
  ) async throws {
    #if PostgreSQL
    try await describing { try await CloudMoveRun.abandon(request, logger: logger, progress: progress) }
    #else
    throw missing
    #endif
  }

  /// Moves a cloud out of the database into a data folder. No server may run on either.
  package static func moveBack(
    _ request: Request, logger: Logger = Logger(label: "keepsake.server"),
    progress: @escaping CloudMoveProgress.Receiver = { _ in }
  ) async throws -> CloudMoveSummary {
    #if PostgreSQL
    return try await describing { try await CloudReturn.run(request, logger: logger, progress: progress) }
    #else
    throw missing
    #endif
  }

  /// Gives up moving a cloud back: servers may use the database as before.
  package static func abandonBack(_ request: Request) async throws {
    #if PostgreSQL
    try await describing { try await CloudReturn.abandon(request) }
    #else
    throw missing
    #endif
  }

  #if PostgreSQL
  private static func describing<Result>(_ body: () async throws -> Result) async throws -> Result {
    do {
      return try await body()
    } catch let error as PostgreSQLError {
      throw ServerError(.inputOutput, "The database failed.", cause: error)
    } catch let error as ContentStorageError {
      throw ServerError(.inputOutput, "The place of large contents failed.", cause: error)
    }
  }
  #else
  private static let missing = ServerError(
    .configuration, "This program was built without PostgreSQL: build it with --traits Cloud,PostgreSQL.")
  #endif
}
#endif
