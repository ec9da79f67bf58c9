#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging
import TestSupport
import Testing

@testable import KeepsakeServer

/// Servers of several versions that start, and go on, with one database.
@Suite(
  "Steps of a PostgreSQL database's tables", .hangLimit,
  .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
struct PostgreSQLMigrationTests {
  /// An empty database.
  private struct Empty: Sendable {
    let address: String

    func connect() throws -> PostgreSQLConnection { try PostgreSQLConnection(TestDatabase.settings(address)) }

    func count(_ table: String) throws -> Int64 {
      let rows = try connect().run([PostgreSQLStatement("SELECT count(*) FROM \(table)")])
      return try #require(rows[0].first).int(0)
    }

    /// Starts a server of a version that knows these steps, as far as its tables go.
    func prepare(_ migrations: [PostgreSQLMigration]) async throws {
      let pool = PostgreSQLPool(TestDatabase.settings(address), connections: 1)
      do {
        try await PostgreSQLSchema.prepare(pool, migrations, logger: Logger(label: "keepsake.test"))
      } catch {
        await pool.finish()
        throw error
      }
      await pool.finish()
    }
  }

  private func with(_ body: (Empty) async throws -> Void) async throws {
    let name = "s\(UUID().uuidString.lowercased().filter { $0 != "-" })"
    let address = try TestDatabase.address(ofSchema: name)
    try await body(Empty(address: address))
    try TestDatabase.drop(schema: name)
  }

  private static func container(_ number: UInt64) -> ContainerID { ContainerID(high: 1, low: number) }

  /// The steps of a version after this one, which has one more.
  private static func next(_ statements: [String], oldest: Int64?) -> [PostgreSQLMigration] {
    PostgreSQLSchema.migrations + [PostgreSQLMigration(statements, oldest: oldest)]
  }
  private static let adding = [
    "ALTER TABLE container ADD COLUMN extra bigint", "CREATE TABLE step (number bigint)",
    "INSERT INTO step (number) VALUES (2)",
  ]

  @Test("a server that starts before its database waits for it and says so, and gives up after its time")
  func waits() async throws {
    try await with { database in
      let link = try DatabaseLink(to: database.address)
      var configuration = ServerConfiguration(data: link.folder, port: 0, appKeys: ["key"])
      configuration.database = link.address
      let log = RecordedLog()
      let server = Task { [configuration] in try await CloudDatabase.open(configuration, logger: log.logger) }
      try await until("the server waits") { !log.lines.value.isEmpty }
      try link.connect()
      let storage = try await server.value
      try await storage.probe()
      try await storage.close()
      #expect(log.lines.value.count { $0.text.contains("Waiting for the database") } == 1)
      #expect(log.lines.value.contains { $0.text.contains(link.folder.path) })

      log.lines.value = []
      configuration.database = try DatabaseLink(to: database.address).address
      configuration.databaseWaitSeconds = 1
      await #expect(throws: ServerError.self) { try await CloudDatabase.open(configuration, logger: log.logger) }
      #expect(log.lines.value.count { $0.text.contains("Waiting for the database") } == 1)
    }
  }

  @Test("a server doesn't wait for a database that answers and refuses it")
  func refuses() async throws {
    try await TemporaryFolder.with { folder in
      try await with { database in
        let log = RecordedLog()
        var configuration = ServerConfiguration(data: folder, port: 0, appKeys: ["key"])
        configuration.database = database.address.replacingOccurrences(of: "/postgres?", with: "/none?")
        #expect(configuration.database != database.address)
        await #expect(throws: ServerError.self) { try await CloudDatabase.open(configuration, logger: log.logger) }
        #expect(log.lines.value.isEmpty)
      }
    }
  }

  @Test("servers that start at the same time with an empty database make its tables once")
  func empty() async throws {
    try await with { database in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<6 as Range<UInt64> {
          group.addTask {
            let storage = try await TestDatabase.storage(at: database.address, connections: 1)
            try await storage.addGem(to: Self.container(number), mark: 1)
            try await storage.close()
          }
        }
        try await group.waitForAll()
      }
      #expect(try database.count("container") == 6)
      #expect(try database.count("schema_number WHERE number = \(PostgreSQLSchema.number)") == 1)
    }
  }

  @Test("servers of the next version change the tables once, while those of this one go on with every player")
  func rolling() async throws {
    try await with { database in
      let old = try await TestDatabase.storage(at: database.address)
      let isOver = Shared(false)
      let playing = Task {
        var mark: UInt64 = 0
        while !isOver.value {
          mark += 1
          try await old.addGem(to: Self.container(mark % 4), mark: mark)
        }
        return mark
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<6 { group.addTask { try await database.prepare(Self.next(Self.adding, oldest: 1)) } }
        try await group.waitForAll()
      }
      // This version goes on, and starts, beside the next one.
      try await old.refresh()
      try await old.probe()
      let restarted = try await TestDatabase.storage(at: database.address)
      try await restarted.addGem(to: Self.container(9), mark: 1)
      try await restarted.close()
      isOver.value = true
      #expect(try await playing.value > 0)
      try await old.close()
      #expect(try database.count("step") == 1)
      #expect(try database.count("container WHERE extra IS NULL AND id = \(Self.container(9).sql)") == 1)
    }
  }

  @Test("a server whose tables were changed beyond what it knows refuses everything, and starts no more")
  func outdated() async throws {
    func refusesNewer(_ body: () async throws -> Void) async {
      await #expect { try await body() } throws: { ($0 as? ServerError)?.code == .newerData }
    }
    try await with { database in
      let old = try await TestDatabase.storage(at: database.address)
      try await old.addGem(to: Self.container(1), mark: 1)
      try await database.prepare(Self.next(Self.adding, oldest: nil))
      try await old.refresh()
      await refusesNewer { try await old.probe() }
      await refusesNewer { try await old.addGem(to: Self.container(1), mark: 2) }
      await refusesNewer { _ = try await old.delete(Self.container(1), now: 5) }
      await refusesNewer { _ = try await old.load(ReadSet(), of: Self.container(1)) }
      await refusesNewer { try await old.sweep(now: .max) }
      // Also later, although nothing else can be read any more.
      let newer = try database.connect()
      _ = try newer.run([PostgreSQLStatement("ALTER TABLE ban RENAME TO banned")])
      try await old.refresh()
      await refusesNewer { try await old.probe() }
      try await old.close()
      await refusesNewer { _ = try await TestDatabase.storage(at: database.address) }
      // What a later step allows again stays refused.
      try await database.prepare(Self.next(Self.adding, oldest: nil) + [PostgreSQLMigration([], oldest: 1)])
      await refusesNewer { _ = try await TestDatabase.storage(at: database.address) }
      #expect(try database.count("container WHERE seq = 1") == 1)
    }
  }

  @Test("a step that fails leaves nothing of itself")
  func failing() async throws {
    try await with { database in
      await #expect(throws: PostgreSQLError.self) {
        try await database.prepare(Self.next(Self.adding + ["INSERT INTO nowhere VALUES (1)"], oldest: 1))
      }
      #expect(try database.count("schema_number WHERE number = \(PostgreSQLSchema.number)") == 1)
      try await database.prepare(Self.next(Self.adding, oldest: 1))
      #expect(try database.count("step") == 1)
    }
  }

  @Test("tables of something else in the same place are an error, and stay")
  func foreign() async throws {
    try await with { database in
      _ = try database.connect().run([PostgreSQLStatement("CREATE TABLE device (name text)")])
      await #expect {
        _ = try await TestDatabase.storage(at: database.address)
      } throws: {
        ($0 as? PostgreSQLError)?.state == .duplicateTable
      }
      #expect(try database.count("device") == 0)
      #expect(try database.count("schema_number WHERE number = 0") == 1)
    }
  }

  @Test("a statement whose table has become another one is prepared anew")
  func altered() async throws {
    try await with { database in
      let pool = PostgreSQLPool(TestDatabase.settings(database.address), connections: 1)
      let user = try database.connect()
      _ = try user.run([PostgreSQLStatement("CREATE TABLE thing (value bigint)")])
      let read = PostgreSQLStatement("SELECT value FROM thing")
      _ = try await pool.run([read])
      _ = try user.run([PostgreSQLStatement("ALTER TABLE thing ALTER COLUMN value TYPE int")])
      let refused = await #expect(throws: PostgreSQLError.self) { try await pool.run([read]) }
      #expect(refused?.state == .featureNotSupported)
      #expect(try await pool.run([read])[0].first == nil)
      await pool.finish()
    }
  }

  @Test("a step that waits for a table doesn't keep players waiting")
  func waiting() async throws {
    try await with { database in
      let storage = try await TestDatabase.storage(at: database.address)
      try await storage.addGem(to: Self.container(1), mark: 1)
      let user = try database.connect()
      _ = try user.run([PostgreSQLStatement("BEGIN")])
      _ = try user.run([PostgreSQLStatement("LOCK TABLE container IN ROW EXCLUSIVE MODE")])
      async let stepped: Void = database.prepare(Self.next(Self.adding, oldest: 1))
      // These come back only because the step gives way: nothing else ends its wait.
      for mark in 2...20 as ClosedRange<UInt64> { try await storage.addGem(to: Self.container(1), mark: mark) }
      _ = try user.run([PostgreSQLStatement("ROLLBACK")])
      try await stepped
      try await storage.addGem(to: Self.container(1), mark: 21)
      try await storage.close()
      #expect(try database.count("step") == 1)
      #expect(try database.count("container WHERE seq = 21") == 1)
    }
  }
}

extension Identifier {
  /// As SQL writes its bytes.
  fileprivate var sql: String { "'\\x\(self)'::bytea" }
}
#endif
