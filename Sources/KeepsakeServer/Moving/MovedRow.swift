#if Cloud
import Foundation

/// What a row has in a column.
enum MovedValue: Hashable, Sendable {
  case null
  case number(Int64)
  case bytes(Data)
}

/// A row without its owner, in the order of the table's columns.
typealias MovedRow = [MovedValue]

/// Reads rows as they are in one moment.
protocol MovedReader {
  /// Calls `body` with an owner's rows, in the order of their keys.
  func rows(of table: MovedTable, _ owner: Data, _ body: (MovedRow) throws -> Void) throws
}

/// Writes rows, all of an owner in one transaction.
protocol MovedWriter {
  /// Removes whatever there is of an owner.
  mutating func begin(_ owner: Data, _ tables: [MovedTable]) throws
  mutating func add(_ row: MovedRow, to table: MovedTable, _ owner: Data) throws
  mutating func finish(_ owner: Data) throws
}
#endif
