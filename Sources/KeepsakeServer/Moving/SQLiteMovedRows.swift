#if Cloud
import Foundation
import GRDB
import KeepsakeReplication

/// Reads and writes a cloud's rows in SQLite, within a transaction.
struct SQLiteMovedRows: MovedReader {
  let db: Database
  /// Large contents whose bytes are gone, by the names of their files: they are waited for from a device.
  var lost: Set<Data> = []
  /// Those whose bytes are where the rows go; nil for any.
  var arrived: Set<Data>?
  /// What the devices of the container that is written have reached.
  private var reached = PackedReached([:])
  /// The contents written that lean on others, with these. Once all are here, they name them by their numbers.
  private var leaning: [(hash: Data, base: Data)] = []

  init(_ db: Database, lost: Set<Data> = [], arrived: Set<Data>? = nil) {
    (self.db, self.lost, self.arrived) = (db, lost, arrived)
  }

  private static let number = "(SELECT number FROM container WHERE id = ?1)"

  // MARK: Reading

  func rows(of table: MovedTable, _ owner: Data, _ body: (MovedRow) throws -> Void) throws {
    if table.layout == .reached { return try eachReached(owner, body) }
    let rows = try Row.fetchCursor(
      db.cachedStatement(sql: Self.select(table)), arguments: table.owner.isEmpty ? [] : [owner])
    while let row = try rows.next() {
      var values = try Self.values(of: row)
      if table.layout == .contents { try normalize(&values) }
      try body(values)
    }
  }

  static func values(of row: Row) throws -> MovedRow {
    try (0..<row.count).map { index in
      switch (row[index] as DatabaseValue).storage {
      case .null: .null
      case .int64(let number): .number(number)
      case .blob(let data): .bytes(data)
      default: throw ServerError(.damaged, "A row of the database has a value of another type.")
      }
    }
  }

  static func select(_ table: MovedTable) -> String {
    let columns = columns(of: table)
    let order =
      switch table.layout {
      // Along the index.
      case .contents: " ORDER BY substr(hash, 1, 8), hash"
      default:
        table.keys == 0 ? "" : " ORDER BY " + table.columns.prefix(table.keys).map(\.local).joined(separator: ", ")
      }
    let condition =
      table.owner.isEmpty ? "" : " WHERE \(table.localOwner) = \(table.isNumbered ? number : "?1")"
    return "SELECT \(columns) FROM \(table.local)\(condition)\(order)"
  }

  static func columns(of table: MovedTable) -> String {
    table.columns.map { column in
      switch (table.layout, column.name) {
      // PostgreSQL takes 0 for a container that has no row.
      case (.containers, "revision"): "max(revision, 1)"
      case (.versions, "head"):
        """
        EXISTS (
          SELECT 1 FROM head
          WHERE head.container = version.container AND head.slot = version.slot AND head.version = version.number)
        """
      case (.contents, "base"): SQLiteContainer.base
      case (.contents, "leans"):
        """
        typeof(content.base) = 'integer'
          AND EXISTS (SELECT 1 FROM content AS leant WHERE leant.number = content.base)
        """
      default: column.kind == .text ? "CAST(\(column.local) AS BLOB)" : column.local
      }
    }.joined(separator: ", ")
  }

  private func eachReached(_ owner: Data, _ body: (MovedRow) throws -> Void) throws {
    let found = try Row.fetchOne(
      db.cachedStatement(sql: "SELECT reached FROM container WHERE id = ?"), arguments: [owner])
    guard let found else { return }
    for (device, seq) in try PackedReached(bytes: found.decode(atIndex: 0)).seqs.sorted(by: { $0.key < $1.key }) {
      try body([.bytes(device.bytes), .number(Int64(bitPattern: seq))])
    }
  }

  /// Of a content whose bytes are lost, that is said.
  private func normalize(_ row: inout MovedRow) throws {
    guard case .bytes(let file) = row[MovedContents.fileIndex] else { return }
    if lost.contains(file) {
      row[MovedContents.suspectIndex] = .number(1)
    } else if let arrived, !arrived.contains(file) {
      throw MovedContents.Unknown()
    }
  }
}

extension SQLiteMovedRows: MovedWriter {
  mutating func begin(_ owner: Data, _ tables: [MovedTable]) throws {
    (reached, leaning) = (PackedReached([:]), [])
    if tables.contains(where: { $0.layout == .versions }) {
      try db.cachedStatement(sql: "DELETE FROM head WHERE container = \(Self.number)").execute(arguments: [owner])
    }
    // The container's row last: others are found by its number.
    for table in tables.reversed() where table.layout != .reached {
      let value = table.isNumbered ? Self.number : "?1"
      try db.cachedStatement(sql: "DELETE FROM \(table.local) WHERE \(table.localOwner) = \(value)").execute(
        arguments: [owner])
    }
  }

  mutating func add(_ row: MovedRow, to table: MovedTable, _ owner: Data) throws {
    if table.layout == .reached { return try addReached(row) }
    try db.cachedStatement(sql: Self.insert(table)).execute(
      arguments: StatementArguments([owner.databaseValue] + row.map(\.databaseValue)))
    if table.layout == .contents, row[MovedContents.leansIndex] == .number(1),
      case .bytes(let hash) = row[0], case .bytes(let base) = row[MovedContents.baseIndex]
    {
      leaning.append((hash, base))
    }
    guard table.layout == .versions, row[MovedContents.headIndex] == .number(1) else { return }
    let version = db.lastInsertedRowID
    try db.cachedStatement(
      sql: "INSERT INTO head (container, slot, version) VALUES (\(Self.number), ?2, ?3)"
    ).execute(arguments: [owner, row[MovedContents.slotIndex].databaseValue, version])
  }

  private static func insert(_ table: MovedTable) -> String {
    var (columns, values): ([String], [String]) = ([], [])
    if !table.owner.isEmpty {
      columns.append(table.localOwner)
      values.append(table.isNumbered ? number : "?1")
    }
    for (index, column) in table.columns.enumerated() {
      let value = "?\(index + 2)"
      switch (table.layout, column.name) {
      case (.versions, "head"), (.contents, "leans"): continue
      default: values.append(column.kind == .text ? "CAST(\(value) AS TEXT)" : value)
      }
      columns.append(column.local)
    }
    return "INSERT INTO \(table.local) (\(columns.joined(separator: ", "))) VALUES (\(values.joined(separator: ", ")))"
  }

  private mutating func addReached(_ row: MovedRow) throws {
    guard case .bytes(let bytes) = row[0], let device = DeviceID(bytes: bytes), case .number(let seq) = row[1] else {
      throw ServerError(.damaged, "What a device has reached can't be read.")
    }
    reached[device] = UInt64(bitPattern: seq)
  }

  mutating func finish(_ owner: Data) throws {
    if !reached.seqs.isEmpty {
      try db.cachedStatement(sql: "UPDATE container SET reached = ? WHERE id = ?").execute(
        arguments: [reached.bytes, owner])
    }
    for (hash, base) in leaning {
      try db.cachedStatement(
        sql: """
          UPDATE content SET base = (
            SELECT number FROM content AS leant
            WHERE leant.container = content.container AND substr(leant.hash, 1, 8) = substr(?3, 1, 8)
            AND leant.hash = ?3
          ) WHERE container = \(Self.number) AND substr(hash, 1, 8) = substr(?2, 1, 8) AND hash = ?2
          """
      ).execute(arguments: [owner, hash, base])
    }
  }
}

extension MovedValue {
  var databaseValue: DatabaseValue {
    switch self {
    case .null: .null
    case .number(let number): number.databaseValue
    case .bytes(let data): data.databaseValue
    }
  }
}
#endif
