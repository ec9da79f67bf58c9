#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

/// Contents as rows of the database, of a part each. No transaction has more than a few of them.
struct ContentRows: ContentStorage {
  static let name = "rows"
  /// Parts that are removed in one transaction: 16 MiB.
  private static let removedAtOnce: Int64 = 64

  let pool: PostgreSQLPool
  let clock: @Sendable () -> Int64

  var name: String { Self.name }

  func put(_ file: URL, as key: ContentKey) async throws {
    _ = try ContentFile.size(file)
    let handle = try FileHandle(forReadingFrom: file)
    defer { try? handle.close() }  // Only read from: closing can lose nothing.
    var number: Int64 = 0
    while let bytes = try handle.read(upToCount: ContentParts.partBytes), !bytes.isEmpty {
      try await run(
        "INSERT INTO content_part (container, name, number, stored, bytes) VALUES ($1, $2, $3, $4, $5)", key,
        [.int(number), .int(clock()), .bytes(bytes)])
      number += 1
    }
  }

  func size(of key: ContentKey) async throws -> Int? {
    let row = try await run(
      "SELECT sum(octet_length(bytes))::bigint FROM content_part WHERE container = $1 AND name = $2", key
    ).first
    return try row?.optionalInt(0).map { Int($0) }
  }

  func bytes(_ range: Range<Int>, of key: ContentKey) async throws -> Data? {
    let first = range.lowerBound / ContentParts.partBytes
    let last = max(range.upperBound - 1, range.lowerBound) / ContentParts.partBytes
    let rows = try await run(
      """
      SELECT number, bytes FROM content_part
      WHERE container = $1 AND name = $2 AND number BETWEEN $3 AND $4 ORDER BY number
      """, key, [.int(Int64(first)), .int(Int64(last))])
    guard rows.first != nil else { return try await size(of: key) == nil ? nil : try checked(Data(), range) }
    let bytes = try rows.reduce(into: Data()) { $0 += try $1.bytes(1) }
    guard try rows.first?.int(0) == Int64(first) else { return try checked(Data(), range) }
    return try checked(
      Data(bytes.dropFirst(range.lowerBound - first * ContentParts.partBytes).prefix(range.count)), range)
  }

  private func checked(_ bytes: Data, _ range: Range<Int>) throws -> Data {
    guard bytes.count == range.count else {
      throw ContentStorageError(.damaged, "A content in the database is shorter than was put.")
    }
    return bytes
  }

  func delete(_ key: ContentKey) async throws {
    while try await run(
      """
      DELETE FROM content_part WHERE container = $1 AND name = $2 AND number IN (
        SELECT number FROM content_part WHERE container = $1 AND name = $2 LIMIT $3)
      """, key, [.int(Self.removedAtOnce)]
    ).count > 0 {}
  }

  func list(_ prefix: String, after place: String?, limit: Int) async throws -> ContentPage {
    // By the keys' texts, which no index has: nobody asks for this but tests, and who looks into a database.
    let statement = PostgreSQLStatement(
      """
      SELECT container, name, min(stored) FROM content_part GROUP BY container, name
      """)
    let rows = try await pool.runUntilDone([statement])[0]
    var page = ContentPage()
    page.entries = try rows.map {
      ContentPage.Entry(
        key: try ContentKey(try $0.text(1), of: $0.identifier(0)), storedMilliseconds: try $0.int(2))
    }
    .filter { $0.key.text.hasPrefix(prefix) && $0.key.text > place ?? "" }
    .sorted { $0.key.text < $1.key.text }
    if page.entries.count > limit {
      page.entries.removeLast(page.entries.count - limit)
      page.next = page.entries.last?.key.text
    }
    return page
  }

  @discardableResult
  private func run(_ sql: String, _ key: ContentKey, _ values: [PostgreSQLValue] = []) async throws -> PostgreSQLRows {
    let statement = PostgreSQLStatement(
      sql, [.bytes(key.container.bytes), .bytes(Data(key.name.utf8))] + values)
    return try await pool.runUntilDone([statement])[0]
  }
}
#endif
