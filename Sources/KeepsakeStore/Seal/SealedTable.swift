import Foundation
import GRDB
import KeepsakeReplication

/// The tables whose rows have sealed bodies.
enum SealedTable: String, CaseIterable {
  case fact, cell, preference, version, outbox, staged, score

  /// One row, with what its seal needs.
  struct SealedRow {
    var table: SealedTable
    /// The values of the key columns.
    var key: [DatabaseValue]
    /// Nil if its columns are invalid.
    var place: String?
    var body: Data?
    /// If it is a version.
    var version: VersionID?
    var slot: String?
  }

  private var keyColumns: [String] {
    switch self {
    case .fact: ["name"]
    case .cell: ["collection", "key"]
    case .preference: ["name"]
    case .version: ["position"]
    case .outbox: ["id"]
    case .staged: ["position"]
    case .score: ["board", "rank", "date", "id"]
    }
  }

  private var columns: String {
    switch self {
    // They include the key.
    case .score: ScoreRow.columns
    case .version: (keyColumns + [VersionRow.columns]).joined(separator: ", ")
    default: (keyColumns + ["body"]).joined(separator: ", ")
    }
  }

  private var selection: String {
    // The header is excluded: it is needed to find the seal.
    let rows = self == .fact ? " WHERE name <> '\(SealHeader.factName)'" : ""
    return "SELECT \(columns) FROM \(rawValue)\(rows)"
  }

  private var keyCondition: String { keyColumns.map { "\($0) = ?" }.joined(separator: " AND ") }

  /// Returns whether the store contains nothing at all.
  static func areEmpty(in database: Database) throws -> Bool {
    for table in allCases where try Row.fetchOne(database, sql: table.selection + " LIMIT 1") != nil { return false }
    return try Row.fetchOne(database, sql: "SELECT 1 FROM content LIMIT 1") == nil
  }

  /// Calls `body` with each row of each table. No row may be changed meanwhile.
  static func forEach(in database: Database, _ body: (SealedRow) throws -> Void) throws {
    for table in allCases {
      let rows = try Row.fetchCursor(database, sql: table.selection)
      while let row = try rows.next() { try body(table.row(row)) }
    }
  }

  /// Returns the keys of the rows that weren't sealed with the form and key in `head`.
  func keys(sealedOtherwiseThan head: Data, in database: Database) throws -> [[DatabaseValue]] {
    let condition = "substr(body, \(RowCodec.checksumLength + 1), \(StoreSeal.headBytes)) IS NOT ?"
    let joiner = self == .fact ? " AND " : " WHERE "
    return try Row.fetchAll(database, sql: selection + joiner + condition, arguments: [head]).map(key)
  }

  func row(_ key: [DatabaseValue], in database: Database) throws -> SealedRow? {
    let statement = try database.cachedStatement(sql: "SELECT \(columns) FROM \(rawValue) WHERE \(keyCondition)")
    return try Row.fetchOne(statement, arguments: StatementArguments(key)).map(row)
  }

  func update(_ row: SealedRow, body: Data, in database: Database) throws {
    try database.cachedStatement(sql: "UPDATE \(rawValue) SET body = ? WHERE \(keyCondition)")
      .execute(arguments: [body] + StatementArguments(row.key))
  }

  func delete(_ row: SealedRow, in database: Database) throws {
    try database.cachedStatement(sql: "DELETE FROM \(rawValue) WHERE \(keyCondition)")
      .execute(arguments: StatementArguments(row.key))
  }

  private func key(of row: Row) -> [DatabaseValue] { keyColumns.map { row[$0] ?? .null } }

  private func row(_ row: Row) -> SealedRow {
    var sealed = SealedRow(table: self, key: key(of: row))
    do {
      sealed.body = try row.checked("body") as Data
      switch self {
      case .fact: sealed.place = RowIdentity.fact(try row.checked("name"))
      case .cell:
        sealed.place = RowIdentity.cell(CellKey(collection: try row.checked("collection"), key: try row.checked("key")))
      case .preference: sealed.place = RowIdentity.preference(try row.checked("name"))
      case .version:
        sealed.version = VersionID(bytes: try row.checked("id"))
        sealed.slot = try row.checked("slot") as String
        sealed.place = try VersionRow(row, at: keyColumns.count).place
      case .outbox: sealed.place = RowIdentity.outbox(try row.checked("id"))
      case .staged: sealed.place = RowIdentity.staged
      case .score: sealed.place = try ScoreRow(row).place
      }
    } catch {
      // Columns of the wrong type: a row without an identity, which can't verify.
      sealed.place = nil
    }
    return sealed
  }
}
