#if PostgreSQL
import Foundation
import Testing

@testable import KeepsakePostgreSQL

enum TestServer {
  static let address = ProcessInfo.processInfo.environment["KEEPSAKE_POSTGRES"]
}

/// A real server, which `Scripts/with-postgres.sh` starts. Each test has tables of its own.
@Suite("Connections to PostgreSQL", .enabled(if: TestServer.address != nil, "KEEPSAKE_POSTGRES isn't set"))
struct PostgreSQLTests {
  private let settings: PostgreSQLSettings
  private let table = "t\(UUID().uuidString.filter { $0 != "-" })"

  init() throws {
    var settings = PostgreSQLSettings(try #require(TestServer.address))
    // Only what a test is about may take too long, however busy the machine is.
    (settings.connectSeconds, settings.statementSeconds, settings.answerSeconds) = (60, 120, 240)
    self.settings = settings
  }

  private func connect(_ change: (inout PostgreSQLSettings) -> Void = { _ in }) throws -> PostgreSQLConnection {
    var settings = settings
    change(&settings)
    return try PostgreSQLConnection(settings)
  }

  private func insert(_ key: Int64, _ value: PostgreSQLValue = .bytes(nil)) -> PostgreSQLStatement {
    PostgreSQLStatement("INSERT INTO \(table) (key, value) VALUES ($1, $2)", [.int(key), value])
  }

  private func makeTable(_ connection: PostgreSQLConnection, _ more: String = "") throws {
    _ = try connection.run([PostgreSQLStatement("CREATE TABLE \(table) (key bigint PRIMARY KEY, value bytea\(more))")])
  }

  private func keys(_ connection: PostgreSQLConnection) throws -> [Int64] {
    try connection.run([PostgreSQLStatement("SELECT key FROM \(table) ORDER BY key")])[0].map { try $0.int(0) }
  }

  @Test("values come back as they were sent: numbers, bytes with NULs, nothing, and ten megabytes")
  func values() throws {
    let connection = try connect()
    try makeTable(connection)
    let large = Data((0..<10_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    let values: [PostgreSQLValue] = [.bytes(Data([0, 1, 0, 255])), .bytes(Data()), .bytes(nil), .bytes(large)]
    for (key, value) in values.enumerated() { _ = try connection.run([insert(Int64(key) - 2, value)]) }
    let rows = try connection.run([PostgreSQLStatement("SELECT key, value FROM \(table) ORDER BY key")])[0]
    #expect(rows.count == 4)
    for (row, (key, value)) in zip(rows, values.enumerated()) {
      #expect(try row.int(0) == Int64(key) - 2)
      #expect(try PostgreSQLValue.bytes(row.optionalBytes(1)) == value)
    }
    let lists = try connection.run([
      PostgreSQLStatement(
        "SELECT count(*) FROM \(table) WHERE value = ANY($1)", [.list([Data([0, 1, 0, 255]), Data()])]),
      PostgreSQLStatement("SELECT count(*) FROM \(table) WHERE key = ANY($1)", [.numbers([-2, 1, 99])]),
      PostgreSQLStatement("SELECT count(*) FROM \(table) WHERE value = ANY($1)", [.list([])]),
      PostgreSQLStatement("SELECT count(*) FROM \(table) WHERE $1::bytea[] IS NULL", [.list(nil)]),
    ])
    #expect(try lists.map { try $0.first?.int(0) } == [2, 2, 0, 4])
    let extremes = try connection.run([
      PostgreSQLStatement("SELECT $1::bigint, $2::bigint, $3::bigint IS NULL", [.int(.min), .int(.max), .int(nil)])
    ])[0]
    let row = try #require(extremes.first)
    #expect(try row.int(0) == .min && row.int(1) == .max && row.bool(2))
    #expect(throws: PostgreSQLError.self) { try row.int(2) }
    #expect(throws: PostgreSQLError.self) { try row.int(3) }
  }

  @Test("of transactions that are sent together, one that fails undoes itself and no other")
  func apart() throws {
    let connection = try connect()
    try makeTable(connection)
    let outcomes = connection.run([
      [insert(1), insert(2)], [insert(3), insert(1), insert(4)],
      [PostgreSQLStatement("SELECT nonsense")], [], [insert(5)],
    ])
    #expect(throws: Never.self) { try outcomes[0].get() }
    #expect { try outcomes[1].get() } throws: { ($0 as? PostgreSQLError)?.state == .uniqueViolation }
    #expect { try outcomes[2].get() } throws: { ($0 as? PostgreSQLError)?.state == "42703" }
    #expect(try outcomes[3].get() == [])
    #expect(throws: Never.self) { try outcomes[4].get() }
    #expect(try keys(connection) == [1, 2, 5])
    // The same again, with everything prepared.
    #expect(throws: PostgreSQLError.self) { try connection.run([insert(6), insert(1)]) }
    _ = try connection.run([insert(7)])
    #expect(try keys(connection) == [1, 2, 5, 7] && !connection.isBroken)
  }

  @Test("what fails only when it is committed has failed, and nothing of it was done")
  func lateFailure() throws {
    let connection = try connect()
    try makeTable(connection, ", other bigint REFERENCES \(table) (key) DEFERRABLE INITIALLY DEFERRED")
    let dangling = PostgreSQLStatement("INSERT INTO \(table) (key, other) VALUES ($1, $2)", [1, 99])
    let outcomes = connection.run([[dangling], [insert(2)], [dangling], [insert(3)]])
    for index in [0, 2] {
      #expect { try outcomes[index].get() } throws: { ($0 as? PostgreSQLError)?.state == "23503" }
    }
    #expect(try keys(connection) == [2, 3])
  }

  @Test("a transaction reads one moment, and of two that change a row one is a conflict")
  func conflicts() throws {
    let (first, second) = (try connect(), try connect())
    try makeTable(first)
    _ = try first.run([insert(1)])
    let read = PostgreSQLStatement("SELECT count(*) FROM \(table)")
    let change = PostgreSQLStatement("UPDATE \(table) SET value = $1 WHERE key = 1", [.bytes(Data([1]))])
    let conflict = #expect(throws: PostgreSQLError.self) {
      try PostgreSQLTransaction.run(on: first) { transaction in
        #expect(try transaction.run(read.sql).first?.int(0) == 1)
        _ = try second.run([insert(2), change])
        #expect(try transaction.run(read.sql).first?.int(0) == 1)
        try transaction.run(change.sql, change.values)
      }
    }
    #expect(conflict?.isConflict == true)
    #expect(try first.run([read])[0].first?.int(0) == 2)
  }

  @Test("a transaction that throws is undone, and the connection goes on")
  func undone() throws {
    struct Stop: Error {}
    let connection = try connect()
    try makeTable(connection)
    #expect(throws: Stop.self) {
      try PostgreSQLTransaction.run(on: connection) { transaction in
        _ = try transaction.run([insert(1), insert(2)])
        throw Stop()
      }
    }
    #expect(try keys(connection) == [])
    _ = try PostgreSQLTransaction.run(on: connection) { try $0.run([insert(3)]) }
    #expect(try keys(connection) == [3])
  }

  @Test("a connection that the server ends is broken, says that the outcome is unknown, and is made anew by a pool")
  func ended() async throws {
    let connection = try connect()
    let other = try connect()
    let process = try #require(try connection.run([PostgreSQLStatement("SELECT pg_backend_pid()::bigint")])[0].first)
    _ = try other.run([PostgreSQLStatement("SELECT pg_terminate_backend($1::integer)", [.text("\(process.int(0))")])])
    let lost = #expect(throws: PostgreSQLError.self) { try connection.run([PostgreSQLStatement("SELECT 1")]) }
    #expect(connection.isBroken)
    switch lost {
    case .unknownOutcome, .refused(.adminShutdown, _): break
    default: Issue.record("\(String(describing: lost))")
    }
    #expect { try connection.run([PostgreSQLStatement("SELECT 1")]) } throws: {
      if case .unreachable = $0 as? PostgreSQLError { true } else { false }
    }
    let pool = PostgreSQLPool(settings, connections: 1)
    defer { pool.close() }
    let first = try await pool.run([PostgreSQLStatement("SELECT pg_backend_pid()::bigint")])[0].first?.int(0)
    let own = PostgreSQLValue.text("\(try #require(first))")
    _ = try other.run([PostgreSQLStatement("SELECT pg_terminate_backend($1::integer)", [own])])
    // The server has said so before it is gone.
    let rest = PostgreSQLStatement("SELECT 1::bigint FROM pg_stat_activity WHERE pid = $1::integer", [own])
    while try other.run([rest])[0].first != nil { try await Task.sleep(for: .milliseconds(5)) }
    #expect(try await pool.run([PostgreSQLStatement("SELECT 1::bigint")])[0].first?.int(0) == 1)
    #expect(pool.connectionsMade == 2)
  }

  @Test("a connection to a server that takes no changes any more is made anew")
  func readOnly() async throws {
    let pool = PostgreSQLPool(settings, connections: 1)
    defer { pool.close() }
    _ = try await pool.run([PostgreSQLStatement("CREATE TABLE \(table) (key bigint PRIMARY KEY, value bytea)")])
    _ = try await pool.run([PostgreSQLStatement("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")])
    let refused = await #expect(throws: PostgreSQLError.self) { try await pool.run([insert(1)]) }
    #expect(refused?.state == .readOnlyTransaction)
    _ = try await pool.run([insert(1)])
  }

  @Test("where the database takes no more connections, everything is done over those that are there")
  func connectionLimit() async throws {
    let (superuser, role) = (try connect(), table.lowercased())
    _ = try superuser.run([PostgreSQLStatement("CREATE ROLE \(role) LOGIN CONNECTION LIMIT 2")])
    defer { _ = try? superuser.run([PostgreSQLStatement("DROP ROLE \(role)")]) }
    var settings = settings
    settings.address += (settings.address.contains("?") ? "&" : "?") + "user=\(role)"
    let pool = PostgreSQLPool(settings, connections: 6)
    defer { pool.close() }
    // There is one before it gets crowded.
    _ = try await pool.run([PostgreSQLStatement("SELECT 1")])
    try await withThrowingTaskGroup { group in
      for _ in 0..<100 {
        group.addTask { _ = try await pool.run([PostgreSQLStatement("SELECT pg_sleep(0.005)::text")]) }
      }
      try await group.waitForAll()
    }
    #expect(pool.connectionsMade == 2)
  }

  @Test(
    "what is committed is on the disk, also where the database is set to say so earlier", arguments: ["off", "local"])
  func synchronousCommit(setting: String) throws {
    let connection = try connect {
      $0.address += ($0.address.contains("?") ? "&" : "?") + "options=-c%20synchronous_commit%3D\(setting)"
    }
    let row = try connection.run([PostgreSQLStatement("SHOW synchronous_commit")])[0].first
    let found = try row?.bytes(0)
    #expect(found == Data((setting == "off" ? "on" : setting).utf8))
  }

  @Test("a statement that takes too long is given up by the server, and one that gets no answer by the connection")
  func slow() throws {
    let patient = try connect { $0.statementSeconds = 1 }
    #expect { try patient.run([PostgreSQLStatement("SELECT pg_sleep(20)")]) } throws: {
      ($0 as? PostgreSQLError)?.state == .queryCanceled
    }
    #expect(!patient.isBroken)
    let impatient = try connect { ($0.statementSeconds, $0.answerSeconds) = (20, 1) }
    #expect { try impatient.run([PostgreSQLStatement("SELECT pg_sleep(20)")]) } throws: {
      if case .unknownOutcome = $0 as? PostgreSQLError { true } else { false }
    }
    #expect(impatient.isBroken)
  }

  @Test("a statement that is canceled before its time, as by a lock that came too late, counts as a conflict")
  func canceled() async throws {
    let pool = PostgreSQLPool(settings, connections: 1)
    defer { pool.close() }
    let other = try connect()
    let own = try await pool.run([PostgreSQLStatement("SELECT pg_backend_pid()::bigint")])[0].first?.int(0)
    let process = PostgreSQLValue.text("\(try #require(own))")
    let sleep = Task { try await pool.run([PostgreSQLStatement("SELECT pg_sleep(60)::text")]) }
    let sleeping = PostgreSQLStatement(
      "SELECT 1::bigint FROM pg_stat_activity WHERE pid = $1::integer AND query LIKE '%pg_sleep%'", [process])
    while try other.run([sleeping])[0].first == nil { try await Task.sleep(for: .milliseconds(5)) }
    _ = try other.run([PostgreSQLStatement("SELECT pg_cancel_backend($1::integer)", [process])])
    let error = await #expect(throws: PostgreSQLError.self) { try await sleep.value }
    #expect(error?.isConflict == true)
    _ = try await pool.run([PostgreSQLStatement("SELECT 1")])
  }

  @Test("a server that answers isn't lost, however long all that was sent takes; each is told when it is known")
  func steady() throws {
    let (connection, other) = (try connect { $0.answerSeconds = 15 }, try connect())
    let lock = [PostgreSQLValue.int(Int64.random(in: 1 ... .max))]
    _ = try other.run([PostgreSQLStatement("SELECT pg_advisory_lock($1)::text", lock)])
    // The second waits for what is done when the first is told.
    let transactions =
      [[PostgreSQLStatement("SELECT 1")], [PostgreSQLStatement("SELECT pg_advisory_xact_lock($1)::text", lock)]]
      + (0..<32).map { _ in [PostgreSQLStatement("SELECT pg_sleep(0.5)::text")] }
    var finished: [Int] = []
    connection.run(transactions) { index, outcome in
      finished.append(index)
      #expect(throws: Never.self) { try outcome.get() }
      if index == 0 {
        #expect(throws: Never.self) {
          try other.run([PostgreSQLStatement("SELECT pg_advisory_unlock($1)", lock)])
        }
      }
    }
    #expect(finished == Array(transactions.indices) && !connection.isBroken)
  }

  @Test("a transaction of which a refused statement was overlooked isn't taken for committed")
  func overlooked() throws {
    let connection = try connect()
    try makeTable(connection)
    #expect(throws: PostgreSQLError.self) {
      try PostgreSQLTransaction.run(on: connection) { transaction in
        _ = try transaction.run([insert(1)])
        // Overlooked on purpose.
        _ = try? transaction.run("SELECT nonsense")
      }
    }
    #expect(try keys(connection) == [] && connection.isIdle)
  }

  @Test("options in the address count, and transactions are kept apart nevertheless")
  func ownOptions() throws {
    let connection = try connect {
      $0.statementSeconds = 10
      $0.address +=
        ($0.address.contains("?") ? "&" : "?")
        + "options=-c%20search_path%3Dpg_temp%20-c%20default_transaction_isolation%3Dread%5C%20committed"
    }
    let rows = try connection.run([
      PostgreSQLStatement("SHOW search_path"), PostgreSQLStatement("SHOW transaction_isolation"),
      PostgreSQLStatement("SHOW statement_timeout"),
    ])
    #expect(
      try rows.map { String(decoding: try #require($0.first).bytes(0), as: UTF8.self) } == [
        "pg_temp", "repeatable read", "10s",
      ])
  }

  @Test("a pooler that loses a session's options is refused: transactions wouldn't be kept apart")
  func lostOptions() {
    #expect {
      try connect { $0.standIn = PostgreSQLStandIn(losesOptions: true) }
    } throws: {
      guard case .unexpected(let message) = $0 as? PostgreSQLError else { return false }
      return message.contains("pooler")
    }
  }

  @Test("an address that leads nowhere is unreachable, and says why without a password")
  func nowhere() {
    var settings = PostgreSQLSettings("postgres://somebody:secret@127.0.0.1:1/keepsake")
    settings.connectSeconds = 2
    #expect { try PostgreSQLConnection(settings) } throws: {
      guard case .unreachable(let message) = $0 as? PostgreSQLError else { return false }
      return message.contains("127.0.0.1") && !message.contains("secret")
    }
  }

  @Test(
    "an address that can't be read is refused, and no part of a password in it is told",
    arguments: [
      "postgres://me:50%off-secret@127.0.0.1:1/keepsake", "postgres://me:secret/more@127.0.0.1:1/keepsake",
      "postgres://me:1234/secret@127.0.0.1/keepsake", "postgres://me:12@secret@127.0.0.1:1/keepsake",
      "postgres://keepsake:secret/keepsake", "host=127.0.0.1 port=1 password='secret", "secret",
    ])
  func unreadable(address: String) {
    let error = #expect(throws: PostgreSQLError.self) { try PostgreSQLConnection(PostgreSQLSettings(address)) }
    #expect(error == .invalidAddress)
    #expect(error?.description.contains("secret") == false)
  }

  @Test("many transactions at once are all done, over few connections")
  func pool() async throws {
    let pool = PostgreSQLPool(settings, connections: 3)
    defer { pool.close() }
    _ = try await pool.run([PostgreSQLStatement("CREATE TABLE \(table) (key bigint PRIMARY KEY, value bytea)")])
    try await withThrowingTaskGroup { group in
      for key in 0..<500 as Range<Int64> {
        group.addTask { [table] in
          if key % 10 == 0 {
            try await pool.transaction { transaction in
              let count = try transaction.run("SELECT $1::bigint", [.int(key)]).first?.int(0)
              try transaction.run("INSERT INTO \(table) (key) VALUES ($1)", [.int(count ?? -1)])
            }
          } else {
            _ = try await pool.run([PostgreSQLStatement("INSERT INTO \(table) (key) VALUES ($1)", [.int(key)])])
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try await pool.run([PostgreSQLStatement("SELECT count(*) FROM \(table)")])[0].first?.int(0) == 500)
    // Many that are large, over few connections.
    let large = Data(repeating: 7, count: 1_000_000)
    try await withThrowingTaskGroup { group in
      for _ in 0..<24 {
        group.addTask {
          let rows = try await pool.run([PostgreSQLStatement("SELECT octet_length($1)::bigint", [.bytes(large)])])
          #expect(try rows[0].first?.int(0) == 1_000_000)
        }
      }
      try await group.waitForAll()
    }
    pool.close()
    await #expect(throws: PostgreSQLError.self) { try await pool.run([PostgreSQLStatement("SELECT 1")]) }
  }
}
#endif
