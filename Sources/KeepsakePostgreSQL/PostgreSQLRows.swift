#if PostgreSQL
package import Foundation

/// What a statement returned.
package struct PostgreSQLRows: Hashable, Sendable {
  /// In binary form; nil for null.
  package var rows: [[Data?]] = []
  /// How many rows the statement returned or changed.
  package var count = 0
  /// What the server says that it did: `COMMIT`, `UPDATE 3`.
  package var command = ""

  package init() {}

  package var first: PostgreSQLRow? { rows.first.map { PostgreSQLRow(columns: $0) } }
  package var last: PostgreSQLRow? { rows.last.map { PostgreSQLRow(columns: $0) } }
}

extension PostgreSQLRows: Sequence {
  package func makeIterator() -> AnyIterator<PostgreSQLRow> {
    var rows = rows.makeIterator()
    return AnyIterator { rows.next().map { PostgreSQLRow(columns: $0) } }
  }
}

/// A row that was read.
package struct PostgreSQLRow: Hashable, Sendable {
  package let columns: [Data?]

  /// - Throws: `unexpected` if the column is null, or of another type.
  package func int(_ index: Int) throws(PostgreSQLError) -> Int64 {
    guard let value = try optionalInt(index) else { throw .unexpected("column \(index) is null") }
    return value
  }

  package func optionalInt(_ index: Int) throws(PostgreSQLError) -> Int64? {
    guard let bytes = try column(index) else { return nil }
    guard bytes.count == 8 else {
      throw .unexpected("column \(index) has \(bytes.count) bytes, and not those of a bigint")
    }
    return Int64(bitPattern: bytes.reduce(0) { $0 << 8 | UInt64($1) })
  }

  package func bytes(_ index: Int) throws(PostgreSQLError) -> Data {
    guard let value = try column(index) else { throw .unexpected("column \(index) is null") }
    return value
  }

  package func optionalBytes(_ index: Int) throws(PostgreSQLError) -> Data? { try column(index) }

  package func bool(_ index: Int) throws(PostgreSQLError) -> Bool {
    let bytes = try bytes(index)
    guard bytes.count == 1 else { throw .unexpected("column \(index) is no boolean") }
    return bytes.first == 1
  }

  private func column(_ index: Int) throws(PostgreSQLError) -> Data? {
    guard columns.indices.contains(index) else { throw .unexpected("there is no column \(index)") }
    return columns[index]
  }
}
#endif
