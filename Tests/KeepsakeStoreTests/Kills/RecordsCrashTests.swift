import Foundation
import GRDB
import TestSupport
import Testing

@testable import KeepsakeStore

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

extension CrashTests {
  /// A quarter of the kills of the store.
  private static let killsOfRecords = max(kills / 4, 1)
  /// One step in this many is a migration, which fills a table and changes every row.
  private static let migrationInterval: Int64 = 7
  private static let rowsOfMigration = 400
  private static let maximumSteps = 12

  @Test("when the game is killed, its own tables have every write and migration that returned, and no partial one")
  func recordsSurviveKills() async throws {
    var folder = try TemporaryFolder.inMemory()
    var steps: Int64 = 0
    for round in 0..<Self.killsOfRecords {
      if round % Self.killsPerStore == Self.killsPerStore - 1 { folder = try TemporaryFolder.inMemory() }
      let path = folder.url.path
      await #expect(processExitsWith: .signal(SIGKILL), "kill \(round)") {
        [path = path as String, round = round as Int] in
        try CrashTests.recordUntilKilled(path: path, seed: UInt64(round))
      }
      let (last, problems) = try await onThread { try Self.findRecords(path) }
      let returned = try Self.lastReturned(path)
      #expect(last >= returned, "kill \(round): step \(returned) had returned, \(last) is there")
      #expect(problems.isEmpty, "kill \(round)")
      steps = max(steps, last)
    }
    #expect(steps > 2 * Self.migrationInterval)
    print("records killed \(Self.killsOfRecords) times, \(steps) steps in the longest life of one database")
  }

  /// On a copy: the next process has to find the tables as the killed one left them.
  private static func findRecords(_ path: String) throws -> (last: Int64, problems: [String]) {
    let copy = try TemporaryFolder.inMemory()
    let original = URL(fileURLWithPath: path).appendingPathComponent("records")
    let url = copy.url.appendingPathComponent("records")
    guard FileManager.default.fileExists(atPath: original.path) else { return (0, []) }
    try FileManager.default.copyItem(at: original, to: url)
    let told = Shared<[StoreIncident]>([])
    let records = try RecordsDatabase.open(in: url) { told.value += [$0] }
    defer { try? records.close() }
    var problems = told.value.map(\.message)
    let last = try lastStep(records)
    try records.reading { database in
      guard last > 0 else { return }
      if try Int64.fetchOne(database, sql: "SELECT COUNT(*) FROM step") != last { problems.append("a step is gone") }
      let migrations = last / migrationInterval
      let tables = try String.fetchAll(database, sql: "SELECT name FROM sqlite_master WHERE name LIKE 'extra%'")
      if tables.count != Int(migrations) { problems.append("\(tables.count) tables of \(migrations) migrations") }
      for table in tables where try Int.fetchOne(database, sql: "SELECT COUNT(*) FROM \(table)") != rowsOfMigration {
        problems.append("\(table) is there by half")
      }
      // A row is changed by each migration after it.
      let changes = try Int64.fetchAll(
        database, sql: "SELECT DISTINCT changes + number / \(migrationInterval) FROM step")
      if changes != [migrations] { problems.append("migrations changed some of the rows: \(changes)") }
    }
    return (last, problems)
  }

  private static func lastStep(_ records: RecordsDatabase) throws -> Int64 {
    try records.reading {
      try $0.tableExists("step") ? Int64.fetchOne($0, sql: "SELECT MAX(number) FROM step") ?? 0 : 0
    }
  }

  private static func lastReturned(_ path: String) throws -> Int64 {
    let file = URL(fileURLWithPath: path).appendingPathComponent("returned")
    guard FileManager.default.fileExists(atPath: file.path) else { return 0 }
    let bytes = try Data(contentsOf: file)
    guard bytes.count >= 8 else { return 0 }
    return bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: (bytes.count / 8 - 1) * 8, as: Int64.self) }
  }

  private static func migrator(upTo count: Int64) -> DatabaseMigrator {
    var migrator = DatabaseMigrator()
    migrator.registerMigration("first") {
      try $0.execute(
        sql: "CREATE TABLE step (number INTEGER PRIMARY KEY, changes INTEGER NOT NULL DEFAULT 0, body BLOB)")
    }
    for number in 1..<(max(count, 0) + 1) {
      migrator.registerMigration("migration \(number)") { database in
        try database.execute(sql: "CREATE TABLE extra_\(number) (value)")
        for row in 0..<rowsOfMigration {
          try database.execute(sql: "INSERT INTO extra_\(number) VALUES (?)", arguments: [row])
        }
        try database.execute(sql: "UPDATE step SET changes = changes + 1")
        try database.execute(
          sql: "INSERT INTO step (number, body) VALUES (?, 'migration')", arguments: [number * migrationInterval])
      }
    }
    return migrator
  }

  /// The child process: writes and migrates until it is killed.
  private static func recordUntilKilled(path: String, seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let isShort = Int.random(in: 0..<4, using: &random) == 0
    let steps = isShort ? 0 : Int.random(in: 1...maximumSteps, using: &random)
    let moment = UInt32.random(in: 0..<20_000, using: &random)
    let returned = Shared(0)
    Thread {
      while returned.value < steps { usleep(50) }
      usleep(moment)
      kill(getpid(), SIGKILL)
    }.start()
    let folder = URL(fileURLWithPath: path)
    let url = folder.appendingPathComponent("records")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    let records = try RecordsDatabase.open(in: url) { _ in exit(EXIT_FAILURE) }
    var number = try lastStep(records)
    // Otherwise the next steps would hide that some are gone.
    guard number >= (try lastReturned(path)) else { exit(EXIT_FAILURE) }
    try records.migrate(migrator(upTo: number / migrationInterval))
    let file = open(folder.appendingPathComponent("returned").path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    while true {
      number += 1
      if number % migrationInterval == 0 {
        try records.migrate(migrator(upTo: number / migrationInterval))
      } else {
        try records.write {
          try $0.execute(sql: "INSERT INTO step (number, body) VALUES (?, zeroblob(3000))", arguments: [number])
        }
      }
      withUnsafeBytes(of: number) { _ = write(file, $0.baseAddress, $0.count) }
      returned.value += 1
    }
  }
}
