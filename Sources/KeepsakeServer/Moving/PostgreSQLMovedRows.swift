#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL

/// Reads and writes a cloud's rows in PostgreSQL, within a transaction.
struct PostgreSQLMovedRows: MovedReader {
  /// What is sent together.
  private static let statementsAtOnce = 256
  private static let bytesAtOnce = 1 << 20
  private static let smallPage: Int64 = 50

  let transaction: PostgreSQLTransaction
  /// Large contents whose bytes are gone, by their names: they are waited for from a device.
  var lost: Set<Data> = []
  /// Those whose bytes are where the rows go; nil for any.
  var arrived: Set<Data>?
  /// Where the bytes of large contents are put.
  var place = ContentRows.name
  private var statements: [PostgreSQLStatement] = []
  private var bytes = 0
  /// The first rows of one owner's tables, which were read together.
  private var first: (owner: Data, pages: [String: PostgreSQLRows]) = (Data(), [:])

  init(
    _ transaction: PostgreSQLTransaction, lost: Set<Data> = [], arrived: Set<Data>? = nil,
    place: String = ContentRows.name
  ) {
    self.transaction = transaction
    (self.lost, self.arrived, self.place) = (lost, arrived, place)
  }

  // MARK: Reading

  /// Reads the first rows of each table of an owner in one round trip: most have few. Tables whose rows are large are
  /// read when it is their turn.
  mutating func prefetch(_ owner: Data, _ tables: [MovedTable]) throws {
    let small = tables.filter { $0.page >= Self.smallPage }
    let found = try transaction.run(
      small.map { PostgreSQLStatement(Self.select($0, isFirst: true), [.bytes(owner)]) })
    first = (owner, Dictionary(uniqueKeysWithValues: zip(small.map(\.name), found)))
  }

  func rows(of table: MovedTable, _ owner: Data, _ body: (MovedRow) throws -> Void) throws {
    var last: MovedRow?
    while true {
      let known = last == nil && first.owner == owner ? first.pages[table.name] : nil
      let page =
        try known
        ?? transaction.run(
          Self.select(table, isFirst: last == nil),
          (table.owner.isEmpty ? [] : [.bytes(owner)]) + (last ?? []).map(\.postgreSQLValue))
      for row in page {
        var values = try Self.values(of: row, table)
        last = Array(values.prefix(table.keys))
        if table.layout == .contents { try normalize(&values) }
        try body(values)
      }
      if table.keys == 0 || page.rows.count < table.page { return }
    }
  }

  static func values(of row: PostgreSQLRow, _ table: MovedTable) throws -> MovedRow {
    try table.columns.enumerated().map { index, column in
      switch column.kind {
      case .number: try row.optionalInt(index).map { .number($0) } ?? .null
      case .bytes, .text: try row.optionalBytes(index).map { .bytes($0) } ?? .null
      }
    }
  }

  private static func select(_ table: MovedTable, isFirst: Bool) -> String {
    let columns = table.columns.map(\.name).joined(separator: ", ")
    let keys = table.columns.prefix(table.keys).map(\.name).joined(separator: ", ")
    let first = table.owner.isEmpty ? 1 : 2
    let after = (first..<(first + table.keys)).map { "$\($0)" }.joined(separator: ", ")
    let conditions = [
      table.owner.isEmpty ? "" : "\(table.owner) = $1", isFirst ? "" : "(\(keys)) > (\(after))",
    ].filter { !$0.isEmpty }.joined(separator: " AND ")
    return "SELECT \(columns) FROM \(table.name)" + (conditions.isEmpty ? "" : " WHERE \(conditions)")
      + (table.keys == 0 ? "" : " ORDER BY \(keys) LIMIT \(table.page)")
  }

  private func normalize(_ row: inout MovedRow) throws {
    guard case .bytes(let file) = row[MovedContents.fileIndex] else { return }
    if lost.contains(file) {
      row[MovedContents.suspectIndex] = .number(1)
    } else if let arrived, !arrived.contains(file) {
      throw MovedContents.Unknown()
    }
  }
}

extension PostgreSQLMovedRows: MovedWriter {
  mutating func begin(_ owner: Data, _ tables: [MovedTable]) throws {
    for table in tables {
      try send("DELETE FROM \(table.name) WHERE \(table.owner) = $1", [.bytes(owner)])
    }
    // Their bytes stay until they are swept, unless a row that comes names them.
    if tables.contains(where: { $0.layout == .contents }) {
      try send(
        "UPDATE content_object SET taken = -1 WHERE container = $1 AND taken = $2", [.bytes(owner), .int(.max)])
    }
  }

  mutating func add(_ row: MovedRow, to table: MovedTable, _ owner: Data) throws {
    let values = (table.owner.isEmpty ? [] : [.bytes(owner)]) + zip(row, table.columns).map { $0.value(in: $1) }
    try send(Self.insert(table), values)
    guard table.layout == .contents, case .bytes(let name) = row[MovedContents.fileIndex] else { return }
    // Its bytes were put before, or are lost.
    try send(
      """
      INSERT INTO content_object (container, name, place, size, taken) VALUES ($1, $2, $3, $4, $5)
      ON CONFLICT (container, name) DO UPDATE SET taken = excluded.taken
      """,
      [
        .bytes(owner), .bytes(name), .bytes(Data(place.utf8)),
        row[MovedContents.sizeIndex].value(in: .number("size")), .int(.max),
      ])
  }

  private static func insert(_ table: MovedTable) -> String {
    let columns = (table.owner.isEmpty ? [] : [table.owner]) + table.columns.map(\.name)
    let values = (1...columns.count).map { "$\($0)" }.joined(separator: ", ")
    return "INSERT INTO \(table.name) (\(columns.joined(separator: ", "))) VALUES (\(values))"
  }

  mutating func finish(_ owner: Data) throws { try flush() }

  private mutating func send(_ sql: String, _ values: [PostgreSQLValue]) throws {
    statements.append(PostgreSQLStatement(sql, values))
    for case .bytes(let data?) in values { bytes += data.count }
    if statements.count >= Self.statementsAtOnce || bytes >= Self.bytesAtOnce { try flush() }
  }

  mutating func flush() throws {
    guard !statements.isEmpty else { return }
    _ = try transaction.run(statements)
    (statements, bytes) = ([], 0)
  }
}

extension MovedValue {
  /// As a key, which is never null.
  var postgreSQLValue: PostgreSQLValue {
    switch self {
    case .null: .bytes(nil)
    case .number(let number): .int(number)
    case .bytes(let data): .bytes(data)
    }
  }

  /// Nothing has the type of its column, too.
  fileprivate func value(in column: MovedTable.Column) -> PostgreSQLValue {
    guard case .null = self else { return postgreSQLValue }
    return column.kind == .number ? .int(nil) : .bytes(nil)
  }
}
#endif
