#if Cloud
import Foundation
import GRDB
import TestSupport

@testable import KeepsakeServer

/// The database of a server, changed as somebody could who has its folder.
enum AdminDatabase {
  static func run(_ data: URL, _ sql: String, _ arguments: StatementArguments = []) async throws {
    let queue = try open(data)
    try await queue.write { try $0.execute(sql: sql, arguments: arguments) }
    try queue.close()
  }

  /// Opens it for a test that takes turns with the server.
  static func open(_ data: URL) throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.busyMode = .timeout(TimeInterval(Patience.limit.components.seconds))
    return try DatabaseQueue(
      path: data.appendingPathComponent(DataFolder.databaseName).path, configuration: configuration)
  }
}
#endif
