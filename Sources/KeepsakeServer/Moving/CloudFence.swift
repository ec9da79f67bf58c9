#if Cloud
import Foundation
import GRDB

/// The fence around a cloud in SQLite that is in another database: triggers by which each write fails, whatever process
/// tries it, from the commit that has made them.
enum CloudFence {
  private static let prefix = "moveFence"
  /// How the refusal of a write begins.
  private static let beginning = "This cloud has moved to "

  private static func name(_ table: String, _ event: String) -> String { "\(prefix)_\(table)_\(event)" }

  /// Builds the fence, within a transaction.
  ///
  /// - Parameter target: Where the cloud is: a host and a database, and no password.
  static func build(in db: Database, target: String) throws {
    let message = "\(beginning)\(target)".replacingOccurrences(of: "'", with: "''")
    for table in try tables(in: db) {
      for event in ["INSERT", "UPDATE", "DELETE"] {
        try db.execute(
          sql: """
            CREATE TRIGGER IF NOT EXISTS \(name(table, event)) BEFORE \(event) ON "\(table)" BEGIN
              SELECT RAISE(ABORT, '\(message)');
            END
            """)
      }
    }
  }

  static func remove(in db: Database) throws {
    let names = try String.fetchAll(
      db, sql: "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name GLOB '\(prefix)_*'")
    for name in names { try db.execute(sql: "DROP TRIGGER \"\(name)\"") }
  }

  /// All tables that servers write.
  private static func tables(in db: Database) throws -> [String] {
    try String.fetchAll(
      db,
      sql: """
        SELECT name FROM sqlite_master WHERE type = 'table'
        AND name NOT GLOB 'sqlite_*' AND name NOT GLOB 'move*' AND name <> 'grdb_migrations' ORDER BY name
        """)
  }

  /// Returns where the cloud is; nil if it is here.
  static func target(in db: Database) throws -> String? {
    let text = try String.fetchOne(
      db,
      sql: "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = '\(name("container", "INSERT"))'")
    guard let text else { return nil }
    guard let start = text.range(of: beginning), let end = text.range(of: "');", options: .backwards) else {
      return "another database"
    }
    return text[start.upperBound..<end.lowerBound].replacingOccurrences(of: "''", with: "'")
  }

  /// Throws if the cloud isn't here any more.
  static func refuse(_ db: Database) throws {
    guard let target = try target(in: db) else { return }
    throw ServerError(.unusableFile, sentence(target))
  }

  static func sentence(_ target: String) -> String {
    """
    \(beginning)\(target): run `keepsake serve` with --database and its address. If it has to stay here, and the move \
    isn't finished, run `keepsake migrate` with the same folder, the same address and --abandon.
    """
  }

  /// Whether the fence has refused a write.
  static func isRefusal(_ error: any Error) -> Bool {
    guard let error = error as? DatabaseError, error.resultCode == .SQLITE_CONSTRAINT else { return false }
    return error.message?.hasPrefix(beginning) == true
  }
}
#endif
