#if Cloud
import Foundation
import KeepsakeReplication
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
  static let standIn = isStandIn ? PostgreSQLStandIn(missing: ["LISTEN", "SELECT pg_notify"], oneFailsOf: 20) : nil

  static func storage(
    at address: String, connections: Int = 2, clock: @escaping @Sendable () -> Int64 = { 0 }
  ) async throws -> PostgreSQLStorage {
    var settings = settings(address)
    settings.standIn = standIn
    return try await PostgreSQLStorage(settings, connections: connections, clock: clock)
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

  /// Those that are there.
  static let all = allCases.filter { $0 == .sqlite || TestDatabase.address != nil }

  var testDescription: String { rawValue }

  /// Runs `body` with an empty storage.
  func with<Result>(
    clock: @escaping @Sendable () -> Int64 = { 0 }, _ body: (any AdminStorage) async throws -> Result
  ) async throws -> Result {
    switch self {
    case .sqlite:
      return try await TemporaryFolder.with { folder in
        let contents = folder.appendingPathComponent("contents")
        try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
        let storage = try SQLiteCloudStorage(
          database: folder.appendingPathComponent("cloud.sqlite"), contents: contents, clock: clock)
        let result = try await body(storage)
        try await storage.close()
        return result
      }
    case .postgreSQL:
      #if PostgreSQL
      let name = "s\(UUID().uuidString.lowercased().filter { $0 != "-" })"
      let storage = try await TestDatabase.storage(at: TestDatabase.address(ofSchema: name), clock: clock)
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
      return try await ShardLab.with(clock: clock) { lab in try await body(lab.server()) }
      #else
      throw ServerError(.configuration, "This program was built without PostgreSQL.")
      #endif
    }
  }
}
#endif
