#if Cloud
import Foundation
import GRDB

@testable import KeepsakeServer

/// The database of a server, changed as somebody could who has its folder.
enum AdminDatabase {
  static func run(_ data: URL, _ sql: String, _ arguments: StatementArguments = []) async throws {
    let queue = try DatabaseQueue(path: data.appendingPathComponent(DataFolder.databaseName).path)
    try await queue.write { try $0.execute(sql: sql, arguments: arguments) }
    try queue.close()
  }
}
#endif
