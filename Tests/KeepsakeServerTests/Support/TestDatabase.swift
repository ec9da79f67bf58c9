#if Cloud
import Foundation
import KeepsakeReplication
import Logging
import TestSupport
import Testing

@testable import KeepsakeServer

#if PostgreSQL
import KeepsakePostgreSQL
#endif

/// The PostgreSQL server that `Scripts/with-postgres.sh` has started for the tests.
enum TestDatabase {
  /// Nil if there is none, or this program was built without it.
  static let address: String? = {
    #if PostgreSQL
    ProcessInfo.processInfo.environment["KEEPSAKE_POSTGRES"]
    #else
    nil
    #endif
  }()
  /// Whether the servers of all tests use it, and not each a file.
  static let isUsedByServers = ProcessInfo.processInfo.environment["KEEPSAKE_CLOUDS"] == "PostgreSQL"
  /// Whether it behaves as another database of its family (`standIn`).
  static let isStandIn = ProcessInfo.processInfo.environment["KEEPSAKE_POSTGRES_STAND_IN"] == "1"
}

#if PostgreSQL
extension TestDatabase {
  /// However slow the machine is, nothing is given up.
  static func settings(_ address: String) -> PostgreSQLSettings {
    var settings = PostgreSQLSettings(address)
    (settings.connectSeconds, settings.statementSeconds, settings.answerSeconds) = (60, 120, 240)
    return settings
  }

  /// A database without notices, in which one of twenty transactions fails; nil for PostgreSQL itself.
  static let standIn = isStandIn ? PostgreSQLStandIn.other : nil

  static func storage(
    at address: String, connections: Int = 2, detailedDecisions: Int64 = ServerLimits.detailedDecisions,
    clock: @escaping @Sendable () -> Int64 = { 0 }
  ) async throws -> PostgreSQLStorage {
    var settings = settings(address)
    settings.standIn = standIn
    return try await PostgreSQLStorage(
      settings, connections: connections, detailedDecisions: detailedDecisions, clock: clock)
  }

  /// Returns the address of a schema, which is made if there is none: as good as a database of its own.
  static func address(ofSchema name: String) throws -> String {
    let address = try #require(address)
    let connection = try PostgreSQLConnection(settings(address))
    _ = try connection.run([PostgreSQLStatement("CREATE SCHEMA IF NOT EXISTS \(name)")])
    return address + (address.contains("?") ? "&" : "?") + "options=-csearch_path%3D\(name)"
  }

  /// Has `Scripts/with-postgres.sh` do something to its server: `crash`, `cut` or `stand-still`.
  static func control(_ what: String) throws {
    let process = Process()
    let script = try #require(ProcessInfo.processInfo.environment["KEEPSAKE_POSTGRES_CONTROL"])
    (process.executableURL, process.arguments) = (URL(fileURLWithPath: "/bin/bash"), [script, what])
    process.standardOutput = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0, "the database's server can't be told to \(what)")
  }

  /// Copies all rows of a schema as they are at one moment into a schema beside it, as a backup of the database does.
  static func backUp(schema name: String) throws {
    let connection = try PostgreSQLConnection(settings(#require(address)))
    _ = try connection.run([PostgreSQLStatement("CREATE SCHEMA \(name)_backup")])
    _ = try connection.run(
      tables(of: name, connection).map {
        PostgreSQLStatement("CREATE TABLE \(name)_backup.\($0) AS TABLE \(name).\($0)")
      })
  }

  /// Sets all rows of a schema back to those of its backup, which stays.
  static func putBack(schema name: String) throws {
    let connection = try PostgreSQLConnection(settings(#require(address)))
    let tables = try tables(of: name, connection)
    var attempts = 0
    while true {
      do {
        _ = try connection.run(
          tables.map { PostgreSQLStatement("DELETE FROM \(name).\($0)") }
            + tables.map { PostgreSQLStatement("INSERT INTO \(name).\($0) SELECT * FROM \(name)_backup.\($0)") })
        return
      } catch {
        // A server that runs beside it has changed one of them.
        guard error.isConflict, attempts < 100 else { throw error }
        attempts += 1
      }
    }
  }

  private static func tables(of schema: String, _ connection: PostgreSQLConnection) throws -> [String] {
    let names = try connection.run([
      PostgreSQLStatement("SELECT tablename::text FROM pg_tables WHERE schemaname = $1 ORDER BY 1", [.text(schema)])
    ])[0].map { String(decoding: try $0.bytes(0), as: UTF8.self) }
    try #require(names.count > 20)
    return names
  }

  static func drop(schema name: String) throws {
    let connection = try PostgreSQLConnection(settings(#require(address)))
    _ = try connection.run([PostgreSQLStatement("DROP SCHEMA \(name) CASCADE")])
  }
}
#endif

extension TestDatabase {
  /// Opens what a server with this folder has kept, after it has ended.
  static func storage(of data: URL) async throws -> any AdminStorage {
    #if PostgreSQL
    if isUsedByServers {
      return try await storage(at: address(ofSchema: schema(of: data)))
    }
    #endif
    return try SQLiteCloudStorage(
      database: data.appendingPathComponent("cloud.sqlite"), contents: data.appendingPathComponent("contents"))
  }

  /// Returns where a server with this folder has its data; nil for a file in the folder.
  static func address(of data: URL) throws -> String? {
    #if PostgreSQL
    if isUsedByServers { return try address(ofSchema: schema(of: data)) }
    #endif
    return nil
  }

  /// Returns the name of the schema of a server with this folder.
  fileprivate static func schema(of data: URL) -> String {
    "s\("\(ContentHash(of: Data(data.standardizedFileURL.path.utf8)))".prefix(20))"
  }
}

extension ServerConfiguration {
  /// If the servers of all tests use PostgreSQL, has this one use a schema of its own: that of its folder.
  mutating func useTestDatabase() async throws {
    guard TestDatabase.isUsedByServers else { return }
    #if PostgreSQL
    database = try TestDatabase.address(ofSchema: TestDatabase.schema(of: data))
    (databaseConnections, databaseStandIn) = (2, TestDatabase.standIn)
    #else
    throw ServerError(.configuration, "This program was built without PostgreSQL.")
    #endif
  }
}

/// A storage for tests: each of them.
enum TestStorage: String, CaseIterable, CustomTestStringConvertible {
  case sqlite = "SQLite"
  case postgreSQL = "PostgreSQL"
  /// With the players spread over two databases.
  case shards = "two PostgreSQL databases"

  /// Those that are there. Beside a stand-in for another database, SQLite would be the same once more.
  static let all = allCases.filter { $0 == .sqlite ? !TestDatabase.isStandIn : TestDatabase.address != nil }
  /// Those of one database each: with several, there are no webhooks yet.
  static let single = all.filter { $0 != .shards }

  var testDescription: String { rawValue }

  /// Opens a storage, as a server does.
  ///
  /// - Parameter schema: Where it is in PostgreSQL.
  func open(
    in folder: URL, schema: String, clock: @escaping @Sendable () -> Int64, logger: Logger,
    webhooks: [WebhookEndpoint]
  ) async throws -> any AdminStorage {
    switch self {
    case .sqlite:
      let contents = folder.appendingPathComponent("contents")
      try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
      return try SQLiteCloudStorage(
        database: folder.appendingPathComponent("cloud.sqlite"), contents: contents, clock: clock, logger: logger,
        webhooks: webhooks)
    case .postgreSQL:
      #if PostgreSQL
      var settings = TestDatabase.settings(try TestDatabase.address(ofSchema: schema))
      settings.standIn = TestDatabase.standIn
      return try await PostgreSQLStorage(
        settings, connections: 2, clock: clock, logger: logger, webhooks: webhooks)
      #else
      throw ServerError(.configuration, "This program was built without PostgreSQL.")
      #endif
    case .shards: throw ServerError(.configuration, "With several databases there are no webhooks yet.")
    }
  }

  /// Runs `body` with an empty storage.
  func with<Result>(
    detailedDecisions: Int64 = ServerLimits.detailedDecisions, clock: @escaping @Sendable () -> Int64 = { 0 },
    _ body: (any AdminStorage) async throws -> Result
  ) async throws -> Result {
    switch self {
    case .sqlite:
      return try await TemporaryFolder.with { folder in
        let contents = folder.appendingPathComponent("contents")
        try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
        let storage = try SQLiteCloudStorage(
          database: folder.appendingPathComponent("cloud.sqlite"), contents: contents, clock: clock,
          detailedDecisions: detailedDecisions)
        let result = try await body(storage)
        try await storage.close()
        return result
      }
    case .postgreSQL:
      #if PostgreSQL
      let name = "s\(UUID().uuidString.lowercased().filter { $0 != "-" })"
      let storage = try await TestDatabase.storage(
        at: TestDatabase.address(ofSchema: name), detailedDecisions: detailedDecisions, clock: clock)
      let result: Result
      do {
        result = try await body(storage)
      } catch {
        try await storage.close()
        throw error
      }
      try await storage.close()
      try TestDatabase.drop(schema: name)
      return result
      #else
      throw ServerError(.configuration, "This program was built without PostgreSQL.")
      #endif
    case .shards:
      #if PostgreSQL
      return try await ShardLab.with(detailedDecisions: detailedDecisions, clock: clock) { lab in
        // However often a test has a player moved.
        try await body(lab.server(requestPause: .zero))
      }
      #else
      throw ServerError(.configuration, "This program was built without PostgreSQL.")
      #endif
    }
  }
}
#endif
