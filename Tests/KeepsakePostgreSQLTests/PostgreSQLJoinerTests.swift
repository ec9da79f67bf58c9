#if PostgreSQL
import Foundation
import Testing

@testable import KeepsakePostgreSQL

@Suite("Statements that are joined")
struct PostgreSQLJoinerTests {
  private typealias Statement = PostgreSQLStatement

  private func texts(_ statements: [Statement], _ joiner: inout PostgreSQLJoiner) -> [String] {
    joiner.join(statements).map(\.statement.sql)
  }

  @Test("neighbours of a kind become one, with the first value in common and the other ones numbered anew")
  func texts() {
    var joiner = PostgreSQLJoiner()
    let joined = joiner.join([
      Statement("SELECT a FROM t WHERE c = $1 AND b = $2", [1, 20], joining: .read),
      Statement("SELECT b FROM t WHERE c = $1 OR $12 = $2", [1, 30], joining: .read),
      Statement("UPDATE t SET a = $2 WHERE c = $1", [1, 2], joining: .change, changesOne: true),
      Statement("DELETE FROM u WHERE c = $1", [1], joining: .change),
      Statement("UPDATE v SET a = $2 WHERE c = $1", [1, 3], joining: .change, changesOne: true),
      Statement("SELECT 1"),
    ])
    #expect(
      joined.map(\.statement) == [
        Statement(
          """
          SELECT ARRAY(SELECT joined FROM (SELECT a FROM t WHERE c = $1 AND b = $2) AS joined), \
          ARRAY(SELECT joined FROM (SELECT b FROM t WHERE c = $1 OR $13 = $3) AS joined)
          """, [1, 20, 30]),
        Statement(
          """
          WITH c0 AS (UPDATE t SET a = $2 WHERE c = $1 RETURNING 1), c1 AS (DELETE FROM u WHERE c = $1), \
          c2 AS (UPDATE v SET a = $3 WHERE c = $1 RETURNING 1) \
          SELECT 1 / (SELECT count(*) FROM c0), 1 / (SELECT count(*) FROM c2)
          """, [1, 2, 3]),
        Statement("SELECT 1"),
      ])
    #expect(joined.map(\.count) == [2, 3, 1])
  }

  @Test("without a first value in common, each has numbers of its own")
  func unshared() {
    var joiner = PostgreSQLJoiner()
    let joined = joiner.join([
      Statement("DELETE FROM t WHERE c = $1 AND b = $2", [1, 2], joining: .change),
      Statement("DELETE FROM u WHERE c = $1", [3], joining: .change),
    ])
    #expect(
      joined.map(\.statement) == [
        Statement(
          "WITH c0 AS (DELETE FROM t WHERE c = $1 AND b = $2), c1 AS (DELETE FROM u WHERE c = $3) SELECT 1", [1, 2, 3])
      ])
  }

  @Test("as many as there may be of the same text, and more shapes than are kept, are sent one by one")
  func bounded() {
    var joiner = PostgreSQLJoiner()
    let twice = [Statement("SELECT $1", [1], joining: .read), Statement("SELECT $1", [2], joining: .read)]
    #expect(texts(twice, &joiner) == ["SELECT $1", "SELECT $1"])
    let moved = [
      Statement("UPDATE t SET a = 1", joining: .change, changesOne: true),
      Statement("UPDATE t SET a = 1", joining: .change, changesOne: true),
    ]
    let alone = "WITH changed AS (UPDATE t SET a = 1 RETURNING 1) SELECT 1 / count(*) FROM changed"
    #expect(texts(moved, &joiner) == [alone, alone])
    for number in 0..<PostgreSQLJoiner.shapes + 2 {
      let two = ["SELECT \(number)", "SELECT 0 WHERE false"].map { Statement($0, joining: .read) }
      #expect(texts(two, &joiner).count == (number < PostgreSQLJoiner.shapes ? 1 : 2))
      // One that is known stays so.
      #expect(texts([Statement("SELECT 0", joining: .read), two[1]], &joiner).count == 1)
    }
  }

  @Test(
    "only PostgreSQL's own server is asked like this",
    arguments: [
      ("PostgreSQL 15.14 (Debian 15.14-0+deb12u1) on x86_64-pc-linux-gnu", true),
      ("PostgreSQL 15.2-YB-2025.1.0.0-b0 on x86_64-pc-linux-gnu", false),
      ("CockroachDB CCL v25.2.1 (x86_64-pc-linux-gnu)", false), ("", false),
    ])
  func servers(version: String, expected: Bool) {
    #expect(PostgreSQLConnection.isPostgreSQL(version) == expected)
  }

  // MARK: Answers

  private static let answer = PostgreSQLJoiner.Joined(statement: Statement("SELECT"), count: 1, joining: .read)

  private func split(_ array: [UInt8]?) throws -> [PostgreSQLRows] {
    var rows = PostgreSQLRows()
    rows.rows = [[array.map { Data($0) }]]
    return try PostgreSQLJoiner.split([rows], of: [Self.answer])
  }

  @Test("an answer that is cut off anywhere, or isn't an array of rows, is an error")
  func cutOff() throws {
    let row: [UInt8] = [0, 0, 0, 2, 0, 0, 0, 17, 0, 0, 0, 1, 7, 0, 0, 0, 17, 255, 255, 255, 255]
    let array: [UInt8] =
      [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 8, 201, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, UInt8(row.count)] + row
    #expect(try split(array)[0].rows == [[Data([7]), nil]])
    for count in array.indices {
      #expect(throws: PostgreSQLError.self) { try split(Array(array.prefix(count))) }
    }
    let two: [UInt8] = [0, 0, 0, 2] + array.dropFirst(4)
    let many: [UInt8] = array.prefix(12) + [127, 255, 255, 255] + array.dropFirst(16)
    for bad in [nil, two, many] {
      #expect(throws: PostgreSQLError.self) { try split(bad) }
    }
    var rows = PostgreSQLRows()
    #expect(throws: PostgreSQLError.self) { try PostgreSQLJoiner.split([rows], of: [Self.answer]) }
    rows.rows = [[Data(array), Data(array)]]
    #expect(throws: PostgreSQLError.self) { try PostgreSQLJoiner.split([rows], of: [Self.answer]) }
  }
}

@Suite(
  "Statements that are joined, by a server", .enabled(if: TestServer.address != nil, "KEEPSAKE_POSTGRES isn't set"))
struct PostgreSQLJoinedTests {
  private typealias Statement = PostgreSQLStatement
  private let table = "j\(UUID().uuidString.filter { $0 != "-" })"

  private func connect(isPostgreSQL: Bool) throws -> PostgreSQLConnection {
    var settings = PostgreSQLSettings(try #require(TestServer.address))
    (settings.connectSeconds, settings.statementSeconds, settings.answerSeconds) = (60, 120, 240)
    settings.standIn = PostgreSQLStandIn(isPostgreSQL: isPostgreSQL)
    let connection = try PostgreSQLConnection(settings)
    _ = try connection.run([
      Statement("CREATE TABLE IF NOT EXISTS \(table) (c bigint, key bigint, value bytea, PRIMARY KEY (c, key))")
    ])
    return connection
  }

  @Test("reads return the same rows in the same order as one by one: nulls, nothing, many, and large ones")
  func reads() throws {
    let connections = try [connect(isPostgreSQL: true), connect(isPostgreSQL: false)]
    let large = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    for (key, value) in [(5, Data()), (3, nil), (4, Data([0, 1, 0])), (2, large)] {
      _ = try connections[0].run([
        Statement("INSERT INTO \(table) VALUES (1, $1, $2)", [.int(Int64(key)), .bytes(value)])
      ])
    }
    _ = try connections[0].run([
      Statement("INSERT INTO \(table) SELECT 1, number, 'x' FROM generate_series(10, 3000) AS made (number)")
    ])
    let reads = [
      Statement("SELECT key, value FROM \(table) WHERE c = $1 ORDER BY key DESC", [1], joining: .read),
      Statement("SELECT value, key FROM \(table) WHERE c = $1 AND key > $2 ORDER BY key", [1, 9], joining: .read),
      Statement("SELECT key FROM \(table) WHERE c = $1 AND key < $2", [1, 0], joining: .read),
      Statement(
        """
        WITH RECURSIVE numbered AS (SELECT $2::bigint AS n UNION SELECT n + 1 FROM numbered WHERE n < $3 AND $1 = 1)
        SELECT n FROM numbered ORDER BY n
        """, [1, 1, 5], joining: .read),
      Statement(
        "SELECT 1::bigint, NULL::bytea FROM \(table) WHERE c = $1 AND key = ANY($2)", [1, .numbers([3, 4])],
        joining: .read),
    ]
    let (joined, apart) = (try connections[0].run(reads), try connections[1].run(reads))
    #expect(joined.map(\.rows) == apart.map(\.rows))
    #expect(joined.map(\.count) == [2_995, 2_991, 0, 5, 2])
    #expect(joined.map(\.count) == apart.map(\.count))
    // One statement for all of them.
    #expect(try preparedCount(connections[0], "ARRAY(SELECT joined%") == 1)
    #expect(try preparedCount(connections[1], "ARRAY(SELECT joined%") == 0)
  }

  private func preparedCount(_ connection: PostgreSQLConnection, _ part: String) throws -> Int64? {
    try connection.run([
      Statement("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'SELECT \(part)'")
    ])[0].first?.int(0)
  }

  @Test(
    "changes are done as a whole, and not at all if one doesn't change the row that it has to",
    arguments: [true, false])
  func changes(isJoined: Bool) throws {
    let connection = try connect(isPostgreSQL: isJoined)
    _ = try connection.run([Statement("INSERT INTO \(table) VALUES (1, 1, 'a'), (1, 2, 'b')")])
    func change(_ key: Int64, _ value: String) -> [Statement] {
      [
        Statement(
          "UPDATE \(table) SET value = $3 WHERE c = $1 AND key = $2", [1, .int(key), .bytes(Data(value.utf8))],
          joining: .change, changesOne: true),
        Statement("DELETE FROM \(table) WHERE c = $1 AND key = 2", [1], joining: .change),
        Statement(
          "INSERT INTO \(table) VALUES ($1, $2, 'new') ON CONFLICT (c, key) DO UPDATE SET value = 'old'",
          [1, .int(key + 10)], joining: .change),
        Statement("SELECT value FROM \(table) WHERE c = $1 ORDER BY key", [1]),
      ]
    }
    func values(_ rows: PostgreSQLRows) throws -> [String] {
      try rows.map { String(decoding: try $0.bytes(0), as: UTF8.self) }
    }
    let failed = connection.run([change(3, "x")])[0]
    guard case .failure(let error) = failed else {
      Issue.record("a row that isn't there was changed")
      return
    }
    #expect(error.state == .divisionByZero)
    #expect(try values(connection.run([change(3, "x")[3]])[0]) == ["a", "b"])
    let answers = try connection.run(change(1, "x"))
    #expect(answers.count == 4)
    #expect(try values(answers[3]) == ["x", "new"])
    #expect(try values(connection.run(change(1, "y"))[3]) == ["y", "old"])
  }
}
#endif
