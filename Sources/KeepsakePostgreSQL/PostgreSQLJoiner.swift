#if PostgreSQL
import Foundation

/// Joins neighbouring statements of a transaction into one, so that the server has one to run, and takes its answer
/// apart again.
///
/// Reads become a row with an array of rows for each of them. Their order within an array is that of the statement:
/// true of PostgreSQL, and not of each database that speaks its protocol, so that only PostgreSQL itself is asked like
/// this. Changes become parts of one `WITH`: the server runs them as of one moment and in any order, so that only those
/// may be joined which touch different rows, and read nothing that another one of them writes.
struct PostgreSQLJoiner {
  /// At most so many different joined statements are prepared for a connection; each takes some 100 KB of the server.
  static let shapes = 64

  /// What is sent in place of one or more statements.
  struct Joined {
    var statement: PostgreSQLStatement
    /// How many statements it stands for.
    var count = 1
    var joining = PostgreSQLStatement.Joining.apart
  }
  private struct Shape: Hashable {
    var texts: [String]
    /// Whether they have the first value in common.
    var isShared: Bool
  }
  private var texts: [Shape: String] = [:]

  mutating func join(_ statements: [PostgreSQLStatement]) -> [Joined] {
    var joined: [Joined] = []
    var start = 0
    while start < statements.count {
      var end = start + 1
      let joining = statements[start].joining
      if joining != .apart {
        while end < statements.count, statements[end].joining == joining { end += 1 }
      }
      if end - start > 1, let statement = one(of: statements[start..<end]) {
        joined.append(Joined(statement: statement, count: end - start, joining: joining))
      } else {
        joined += statements[start..<end].map { Joined(statement: $0.alone) }
      }
      start = end
    }
    return joined
  }

  /// - Returns: Nil if a text is among them twice, since there could be as many shapes of those as of numbers; or if
  ///   there are too many shapes already.
  private mutating func one(of statements: ArraySlice<PostgreSQLStatement>) -> PostgreSQLStatement? {
    let first = statements.first?.values.first
    let shape = Shape(
      texts: statements.map { $0.changesOne ? $0.alone.sql : $0.sql },
      isShared: first != nil && statements.allSatisfy { $0.values.first == first })
    var values = shape.isShared ? first.map { [$0] } ?? [] : []
    for statement in statements { values += statement.values.dropFirst(shape.isShared ? 1 : 0) }
    if let text = texts[shape] { return PostgreSQLStatement(text, values) }
    guard texts.count < Self.shapes, Set(shape.texts).count == shape.texts.count else { return nil }
    let text = Self.text(of: Array(statements), isShared: shape.isShared)
    texts[shape] = text
    return PostgreSQLStatement(text, values)
  }

  private static func text(of statements: [PostgreSQLStatement], isShared: Bool) -> String {
    var next = isShared ? 2 : 1
    let parts = statements.map { statement in
      // Of shared ones, $2 is the first that is a statement's own.
      let shift = next - (isShared ? 2 : 1)
      next += statement.values.count - (isShared ? 1 : 0)
      return renumbered(statement.sql) { isShared && $0 == 1 ? 1 : $0 + shift }
    }
    guard statements[0].joining == .change else {
      return "SELECT " + parts.map { "ARRAY(SELECT joined FROM (\($0)) AS joined)" }.joined(separator: ", ")
    }
    let changes = zip(statements, parts).enumerated().map { number, change in
      "c\(number) AS (\(change.1)\(change.0.changesOne ? " RETURNING 1" : ""))"
    }
    let checks = statements.indices.filter { statements[$0].changesOne }.map { "1 / (SELECT count(*) FROM c\($0))" }
    return "WITH \(changes.joined(separator: ", ")) SELECT \((checks.isEmpty ? ["1"] : checks).joined(separator: ", "))"
  }

  /// Returns a text with other numbers of parameters.
  static func renumbered(_ text: String, _ number: (Int) -> Int) -> String {
    var result = ""
    var rest = text[...]
    while let dollar = rest.firstIndex(of: "$") {
      let digits = rest[rest.index(after: dollar)...].prefix { $0.isASCII && $0.isNumber }
      result += rest[...dollar]
      if let found = Int(digits) { result += "\(number(found))" }
      rest = rest[digits.endIndex...]
    }
    return result + rest
  }

  // MARK: Answers

  /// Returns the answers of the statements that were joined.
  static func split(_ answers: [PostgreSQLRows], of joined: [Joined]) throws(PostgreSQLError) -> [PostgreSQLRows] {
    var split: [PostgreSQLRows] = []
    for (answer, one) in zip(answers, joined) {
      switch one.joining {
      case .apart: split.append(answer)
      // Nobody asks what a change says.
      case .change: split += Array(repeating: PostgreSQLRows(), count: one.count)
      case .read:
        guard answer.rows.count == 1, answer.rows[0].count == one.count else {
          throw .unexpected("\(one.count) statements that were joined have another answer than one row")
        }
        for column in answer.rows[0] {
          var rows = PostgreSQLRows()
          rows.rows = try Self.rows(column)
          rows.count = rows.rows.count
          split.append(rows)
        }
      }
    }
    return split
  }

  /// Reads an array of rows: the number of dimensions, a flag for nulls, the type; the length and the first index of
  /// its one dimension; the rows, each after its length. Of a row: how many columns; of each its type, length, bytes.
  private static func rows(_ array: Data?) throws(PostgreSQLError) -> [[Data?]] {
    guard let array else { throw .unexpected("an array of rows is null") }
    var reader = Reader(bytes: array, offset: array.startIndex)
    let dimensions = try reader.number()
    _ = (try reader.number(), try reader.number())
    guard dimensions > 0 else { return [] }
    guard dimensions == 1 else { throw .unexpected("an array of rows has \(dimensions) dimensions") }
    let count = try reader.number()
    _ = try reader.number()
    var rows: [[Data?]] = []
    for _ in 0..<max(0, count) {
      _ = try reader.number()
      var row: [Data?] = []
      for _ in 0..<max(0, try reader.number()) {
        _ = try reader.number()
        row.append(try reader.value())
      }
      rows.append(row)
    }
    return rows
  }

  private struct Reader {
    let bytes: Data
    var offset: Int

    mutating func number() throws(PostgreSQLError) -> Int {
      Int(Int32(truncatingIfNeeded: try take(4).reduce(0) { $0 << 8 | Int($1) }))
    }

    /// - Returns: Nil for null.
    mutating func value() throws(PostgreSQLError) -> Data? {
      let count = try number()
      return count < 0 ? nil : Data(try take(count))
    }

    private mutating func take(_ count: Int) throws(PostgreSQLError) -> Data {
      guard count <= bytes.endIndex - offset else { throw .unexpected("an array of rows is cut off") }
      defer { offset += count }
      return bytes[offset..<offset + count]
    }
  }
}

extension PostgreSQLStatement {
  /// The statement as it is sent by itself.
  var alone: PostgreSQLStatement {
    guard changesOne else { return self }
    return PostgreSQLStatement("WITH changed AS (\(sql) RETURNING 1) SELECT 1 / count(*) FROM changed", values)
  }
}
#endif
