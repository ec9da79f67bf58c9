#if Cloud
package import Foundation
import GRDB
package import KeepsakeReplication

/// Reads the audit log in a server's data folder, whether the server runs or not.
package struct AuditReader {
  /// A row of the log.
  package struct Row: Sendable {
    package var number: Int64
    package var atMilliseconds: Int64
    package var key: String
    package var name: String
    package var act: String
    package var request: String
    package var result: String
    package var details: [String: String]
    package var player: ContentHash?
    package var subject: ContentHash?
  }

  /// What checking the log has found.
  package struct Verification: Sendable {
    package var rows: Int64 = 0
    /// The hash of the last row, with which all before it are fixed; nil for an empty log.
    package var last: ContentHash?
    /// What is wrong; nil if nothing is.
    package var problem: String?
    /// Whether a hash that was noted before is the one of a row; nil if none was asked about.
    package var hasNoted: Bool?
  }

  private let database: URL

  /// - Parameter data: The data folder of a server, which must exist.
  package init(data: URL) throws { database = try DataFolder.existingDatabase(in: data) }

  /// Calls `body` with the newest rows, the newest first.
  ///
  /// - Parameters:
  ///   - player: Only those about this player.
  ///   - limit: The most rows.
  package func rows(of player: PlayerID? = nil, limit: Int, _ body: (Row) throws -> Void) throws {
    let hash = player.map { AuditEntry.hash($0).bytes }
    try Self.reading(database) { db in
      let rows = try GRDB.Row.fetchCursor(
        db, sql: "\(Self.select) WHERE ?1 IS NULL OR player = ?1 ORDER BY number DESC LIMIT ?2",
        arguments: [hash, limit])
      while let row = try rows.next() { try body(Self.row(row)) }
    }
  }

  /// Checks the chain of all rows.
  ///
  /// - Parameter noted: A hash that an earlier check has printed, to be searched for.
  package func verify(noted: ContentHash? = nil) throws -> Verification {
    try Self.reading(database) { db in
      var found = Verification()
      found.hasNoted = noted.map { _ in false }
      var previous = Data()
      let rows = try GRDB.Row.fetchCursor(db, sql: "\(Self.select) ORDER BY number")
      while let row = try rows.next() {
        let number = try row.decode(Int64.self, atIndex: 0)
        guard number == found.rows + 1 else {
          found.problem = "row \(found.rows + 1) is missing"
          return found
        }
        let link = AuditLink(
          number: number, atMilliseconds: try row.decode(atIndex: 1),
          texts: try (2...7).map { try row.decode(String.self, atIndex: $0) },
          hashes: try [8, 9].map { try row.decode(Data?.self, atIndex: $0) })
        let chain = try row.decode(Data.self, atIndex: 10)
        guard link.hash(after: previous) == chain, let hash = ContentHash(bytes: chain) else {
          found.problem = "row \(number) was changed, or one before it removed"
          return found
        }
        if hash == noted { found.hasNoted = true }
        (previous, found.rows, found.last) = (chain, number, hash)
      }
      let expected = try CloudNumber.auditRows.value(in: db)
      if found.rows < Int64(clamping: expected) {
        found.problem = "the last rows are missing: there were \(expected)"
      } else if found.hasNoted == false {
        found.problem = "no row has the hash that was noted"
      }
      return found
    }
  }

  // MARK: Rows

  private static let select =
    "SELECT number, at, key, name, act, request, details, result, player, subject, chain FROM audit"

  private static func row(_ row: GRDB.Row) throws -> Row {
    Row(
      number: try row.decode(atIndex: 0), atMilliseconds: try row.decode(atIndex: 1), key: try row.decode(atIndex: 2),
      name: try row.decode(atIndex: 3), act: try row.decode(atIndex: 4), request: try row.decode(atIndex: 5),
      result: try row.decode(atIndex: 7),
      details: try Schema.decoded([String: String].self, Data(row.decode(String.self, atIndex: 6).utf8)),
      player: try row.decode(Data?.self, atIndex: 8).flatMap { ContentHash(bytes: $0) },
      subject: try row.decode(Data?.self, atIndex: 9).flatMap { ContentHash(bytes: $0) })
  }

  static func reading<Result>(_ database: URL, _ body: (Database) throws -> Result) throws -> Result {
    var configuration = Configuration()
    configuration.readonly = true
    configuration.busyMode = .timeout(5)
    do {
      return try DatabaseQueue(path: database.path, configuration: configuration).read { db in
        try Schema.requireCurrent(db)
        return try body(db)
      }
    } catch {
      throw Schema.failure(error, opening: database)
    }
  }
}
#endif
