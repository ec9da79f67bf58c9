import Foundation
import GRDB

/// What rows of one table look like in the file: enough to distinguish them from other bytes. Taken from the schema
/// that this release creates, so that a new column needs no change here.
struct TableShape: Sendable {
  struct Column: Sendable {
    var name: String
    var type: String
    var isNullable: Bool
  }
  var name: String
  /// In the order in which a record stores them: in a table without rowid, the key comes first.
  var columns: [Column]
  /// The column that is an alias of the rowid and is empty in the record.
  var rowidColumn: Int?
  var hasRowid: Bool

  /// The tables that are gathered row by row. Everything else derives from these, or is requested from the cloud again.
  static let salvaged = [
    "fact", "cell", "preference", "version", "covered", "performed", "content", "ledger", "score",
  ]

  /// Its rows can't be verified by themselves, so they are only accepted from SQLite.
  static let quarantine = TableShape(name: "quarantine", columns: ["place", "outcome", "body"])

  private init(name: String, columns: [String]) {
    self.name = name
    self.columns = columns.map { Column(name: $0, type: "", isNullable: true) }
    hasRowid = true
  }

  /// Returns the shapes of the salvaged tables.
  static func all() throws -> [TableShape] {
    let queue = try DatabaseQueue()
    return try queue.write { database in
      try Schema.create(in: database)
      return try salvaged.map { try TableShape($0, in: database) }
    }
  }

  private init(_ table: String, in database: Database) throws {
    name = table
    let sql =
      try String.fetchOne(database, sql: "SELECT sql FROM sqlite_schema WHERE name = ?", arguments: [table]) ?? ""
    hasRowid = !sql.uppercased().hasSuffix("WITHOUT ROWID")
    var described: [(column: Column, key: Int)] = []
    for row in try Row.fetchAll(database, sql: "PRAGMA table_info(\(table))") {
      let isKey: Int = try row.checked("pk")
      let notNull: Bool = try row.checked("notnull")
      let column = Column(
        name: try row.checked("name"), type: try row.checked("type"), isNullable: !notNull && isKey == 0)
      described.append((column, isKey))
    }
    if !hasRowid {
      let key = described.filter { $0.key > 0 }.sorted { $0.key < $1.key }
      described = key + described.filter { $0.key == 0 }
    }
    columns = described.map(\.column)
    rowidColumn = hasRowid ? described.firstIndex { $0.key == 1 && $0.column.type == "INTEGER" } : nil
  }

  /// Returns whether a record with these serial types may be a row of this table.
  func fits(_ serials: [UInt64]) -> Bool {
    guard serials.count == columns.count else { return false }
    for (index, serial) in serials.enumerated() {
      if index == rowidColumn {
        guard serial == 0 else { return false }
        continue
      }
      let fits =
        switch columns[index].type {
        case "INTEGER": (1...6).contains(serial) || serial == 8 || serial == 9
        case "TEXT": serial >= 13 && serial & 1 == 1
        default: serial >= 12 && serial & 1 == 0
        }
      guard fits || serial == 0 && columns[index].isNullable else { return false }
    }
    return true
  }
}

/// A row of one of those tables, wherever it was found.
struct SalvagedRow {
  var table: String
  var values: [String: DatabaseValue]

  func data(_ column: String) -> Data? { values[column].flatMap { Data.fromDatabaseValue($0) } }
  func text(_ column: String) -> String? { values[column].flatMap { String.fromDatabaseValue($0) } }
  func integer(_ column: String) -> Int64? { values[column].flatMap { Int64.fromDatabaseValue($0) } }
}
