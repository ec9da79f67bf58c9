#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import TestSupport

@testable import KeepsakeServer

#if PostgreSQL
import KeepsakePostgreSQL
#endif

/// The database of a server, changed as somebody could who has it.
enum AdminDatabase {
  static func run(_ data: URL, _ sql: String, _ arguments: StatementArguments = []) async throws {
    let queue = try open(data)
    try await queue.write { try $0.execute(sql: sql, arguments: arguments) }
    try queue.close()
  }

  /// Removes the bytes of a content, wherever the server has its data.
  static func removeContent(_ hash: ContentHash, of data: URL) async throws {
    #if PostgreSQL
    if let address = try TestDatabase.address(of: data) {
      let statement = PostgreSQLStatement("DELETE FROM content WHERE hash = $1", [.bytes(hash.bytes)])
      _ = try PostgreSQLConnection(TestDatabase.settings(address)).run([statement])
      return
    }
    #endif
    try await run(data, "DELETE FROM content WHERE hash = ?", [hash.bytes])
  }

  /// Has all events for webhooks become dead letters.
  static func buryWebhooks(_ data: URL, _ reason: String) async throws {
    let now = Int64(Date().timeIntervalSince1970 * 1_000)
    #if PostgreSQL
    if let address = try TestDatabase.address(of: data) {
      let statement = PostgreSQLStatement(
        "UPDATE webhook_event SET dead = $1, reason = $2 WHERE number IS NOT NULL",
        [.int(now), .bytes(Data(reason.utf8))])
      _ = try PostgreSQLConnection(TestDatabase.settings(address)).run([statement])
      return
    }
    #endif
    try await run(data, "UPDATE webhookEvent SET dead = ?, reason = ?", [now, reason])
  }

  /// Opens one in a folder for a test that takes turns with the server.
  static func open(_ data: URL) throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.busyMode = .timeout(TimeInterval(Patience.limit.components.seconds))
    return try DatabaseQueue(
      path: data.appendingPathComponent(DataFolder.databaseName).path, configuration: configuration)
  }
}
#endif
