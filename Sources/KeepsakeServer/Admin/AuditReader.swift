#if Cloud
package import Foundation
package import KeepsakeReplication

/// Reads the audit log of a cloud, whether a server runs or not.
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

  private let tables: any AdminTables

  init(_ tables: any AdminTables) { self.tables = tables }

  /// - Parameters: As of `AdminKeys`.
  package init(data: URL, database: String? = nil) throws {
    self.init(try CloudDatabase.adminTables(data: data, database: database))
  }

  /// Calls `body` with the newest rows, the newest first.
  ///
  /// - Parameters:
  ///   - player: Only those about this player.
  ///   - limit: The most rows.
  package func rows(of player: PlayerID? = nil, limit: Int, _ body: (Row) throws -> Void) throws {
    try tables.auditRows(of: player.map { AuditEntry.hash($0).bytes }, limit: limit) { try body(Row($0)) }
  }

  /// Checks the chain of all rows.
  ///
  /// - Parameter noted: A hash that an earlier check has printed, to be searched for.
  package func verify(noted: ContentHash? = nil) throws -> Verification {
    var found = Verification()
    found.hasNoted = noted.map { _ in false }
    var previous = Data()
    // Before the rows, of which more may come meanwhile.
    let expected = try tables.newestAuditRow()
    try tables.auditRows { row in
      guard row.number == found.rows + 1 else {
        found.problem = "row \(found.rows + 1) is missing"
        return false
      }
      guard row.hash(after: previous) == row.chain, let hash = ContentHash(bytes: row.chain) else {
        found.problem = "row \(row.number) was changed, or one before it removed"
        return false
      }
      if hash == noted { found.hasNoted = true }
      (previous, found.rows, found.last) = (row.chain, row.number, hash)
      return true
    }
    if found.problem != nil { return found }
    if found.rows < expected {
      found.problem = "the last rows are missing: there were \(expected)"
    } else if found.hasNoted == false {
      found.problem = "no row has the hash that was noted"
    }
    return found
  }
}

extension AuditReader.Row {
  fileprivate init(_ row: AuditRow) throws {
    self.init(
      number: row.number, atMilliseconds: row.atMilliseconds, key: row.key, name: row.name, act: row.act,
      request: row.request, result: row.result,
      details: try Schema.decoded([String: String].self, Data(row.details.utf8)),
      player: row.player.flatMap { ContentHash(bytes: $0) }, subject: row.subject.flatMap { ContentHash(bytes: $0) })
  }
}
#endif
