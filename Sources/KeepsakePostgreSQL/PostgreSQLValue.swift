#if PostgreSQL
package import Foundation

/// A parameter of a statement, or nothing of that type. Numbers are 64 bits wide, names and records are bytes: a title
/// may hold a NUL, which the database's text refuses.
package enum PostgreSQLValue: Hashable, Sendable {
  case int(Int64?)
  case bytes(Data?)
  case text(String?)
  case list([Data?]?)
  case numbers([Int64?]?)

  /// The type by which the server knows it.
  var type: UInt32 {
    switch self {
    case .int: 20
    case .bytes: 17
    case .text: 25
    case .list: 1001
    case .numbers: 1016
    }
  }

  /// Its binary form; nil for nothing.
  var bytes: Data? {
    switch self {
    case .int(let value): value.map { Self.bigEndian($0) }
    case .bytes(let data): data
    case .text(let text): text.map { Data($0.utf8) }
    case .list(let items): items.map { Self.array(of: $0, type: 17) }
    case .numbers(let numbers): numbers.map { Self.array(of: $0.map { $0.map { Self.bigEndian($0) } }, type: 20) }
    }
  }

  var byteCount: Int {
    switch self {
    case .int: 8
    case .bytes(let data): data?.count ?? 0
    case .text(let text): text?.utf8.count ?? 0
    case .list(let items): items?.reduce(0) { $0 + 4 + ($1?.count ?? 0) } ?? 0
    case .numbers(let numbers): 12 * (numbers?.count ?? 0)
    }
  }

  private static func bigEndian(_ value: some FixedWidthInteger) -> Data {
    withUnsafeBytes(of: value.bigEndian) { Data($0) }
  }

  /// An array as the server takes it: the number of dimensions, a flag for nulls, the type; the length and the first
  /// index of its one dimension; the items, each after its length, which is -1 for null. An empty one has no dimension.
  private static func array(of items: [Data?], type: Int32) -> Data {
    var bytes = Data()
    let hasNull: Int32 = items.contains(nil) ? 1 : 0
    for word in items.isEmpty ? [0, 0, type] : [1, hasNull, type, Int32(items.count), 1] { bytes += bigEndian(word) }
    for item in items {
      bytes += bigEndian(item.map { Int32($0.count) } ?? -1)
      if let item { bytes += item }
    }
    return bytes
  }
}

extension PostgreSQLValue: ExpressibleByIntegerLiteral {
  package init(integerLiteral value: Int64) { self = .int(value) }
}

/// A statement with its parameters, `$1` and so on. The server prepares each text once for a connection: it has to be
/// one of few.
package struct PostgreSQLStatement: Hashable, Sendable {
  /// Whether it may become one with those that are before and behind it in its transaction and may do so, too.
  package enum Joining: Sendable {
    /// It may not.
    case apart
    /// It only reads.
    case read
    /// It changes something, and nobody asks what it says to that. It touches no rows that those others touch, and
    /// reads none that they write.
    case change
  }
  package var sql: String
  package var values: [PostgreSQLValue]
  package var joining: Joining
  /// Whether it fails, with a division by zero, if it doesn't change a row. It changes one at most.
  package var changesOne: Bool

  package init(
    _ sql: String, _ values: [PostgreSQLValue] = [], joining: Joining = .apart, changesOne: Bool = false
  ) {
    (self.sql, self.values, self.joining, self.changesOne) = (sql, values, joining, changesOne)
  }

  /// About how many bytes it sends.
  var byteCount: Int { values.reduce(64) { $0 + 8 + $1.byteCount } }
}
#endif
