#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import KeepsakeStore
import TestSupport
import Testing

@testable import KeepsakeServer

/// Databases as earlier servers have left them. `postgresql-N.sql.zst` is what `pg_dump` wrote of the cloud of
/// `keepsake demo` in the tables of step N.
@Suite(
  "Databases of earlier servers", .hangLimit,
  .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
struct GoldenDatabaseTests {
  private static let fixtures = Repository.root.appending(path: "Tests/KeepsakeServerTests/Fixtures")

  /// Returns the rows of each table, only the columns that are named.
  private func rows(of columns: [String: [String]], by connection: PostgreSQLConnection) throws -> [String: [Data]] {
    try columns.reduce(into: [:]) { rows, table in
      rows[table.key] = try connection.run([
        PostgreSQLStatement("SELECT ROW(\(table.value.joined(separator: ", ")))::text FROM \(table.key) ORDER BY 1")
      ])[0].map { try $0.bytes(0) }
    }
  }

  private func columns(by connection: PostgreSQLConnection) throws -> [String: [String]] {
    let found = try connection.run([
      PostgreSQLStatement(
        """
        SELECT table_name::text, column_name::text FROM information_schema.columns
        WHERE table_schema = current_schema() AND table_name <> 'schema_number'
        """)
    ])[0]
    return try found.reduce(into: [:]) { columns, row in
      columns[String(decoding: try row.bytes(0), as: UTF8.self), default: []].append(
        String(decoding: try row.bytes(1), as: UTF8.self))
    }
  }

  @Test("all steps since keep every row, and the players go on", arguments: [2])
  func migrated(step: Int) async throws {
    let name = "g\(UUID().uuidString.lowercased().filter { $0 != "-" })"
    let address = try TestDatabase.address(ofSchema: name)
    let connection = try PostgreSQLConnection(TestDatabase.settings(address))
    let packed = try Data(contentsOf: Self.fixtures.appending(path: "postgresql-\(step).sql.zst"))
    let script = String(decoding: try Zstd.expand(packed, maximumBytes: 1 << 20), as: UTF8.self)
    for statement in script.split(separator: ";\n") {
      _ = try connection.run([PostgreSQLStatement(String(statement))])
    }
    let columns = try columns(by: connection)
    let before = try rows(of: columns, by: connection)
    try #require(before.values.filter { !$0.isEmpty }.count > 20)

    let storage = try await TestDatabase.storage(at: address)
    let number = try #require(try connection.run([PostgreSQLSchema.reading])[0].first)
    #expect(try number.int(0) == PostgreSQLSchema.number)
    #expect(try rows(of: columns, by: connection) == before)

    let players = try connection.run([PostgreSQLStatement("SELECT id, seq FROM container ORDER BY id")])[0]
    for row in players {
      let (container, seq): (ContainerID, UInt64) = (try row.identifier(0), UInt64(try row.int(1)))
      try await check(container, in: storage)
      try await storage.addGem(to: container, mark: 7)
      #expect(try await storage.position(of: container).seq == seq + 1)
    }
    try await storage.close()
    try TestDatabase.drop(schema: name)
  }

  /// Reads everything of a container.
  private func check(_ container: ContainerID, in storage: PostgreSQLStorage) async throws {
    var place: PlayerExport.Position? = .start
    while let next = place { place = try await storage.exported(next, of: container).next }
    _ = try await storage.account(of: container, goodsAfter: 0, ordersAfter: nil)
    let hashes = try await storage.pool.run([
      PostgreSQLStatement("SELECT hash FROM content WHERE container = $1", [.bytes(container.bytes)])
    ])[0]
    for row in hashes { #expect(try await storage.content(row.hash(0), of: container) != nil) }
  }
}
#endif
