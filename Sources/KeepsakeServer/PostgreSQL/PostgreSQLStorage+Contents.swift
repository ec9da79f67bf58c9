#if Cloud && PostgreSQL
import Foundation
import HTTPTypes
import KeepsakePlatform
import KeepsakePostgreSQL
import KeepsakeReplication

/// Contents: small ones beside what is known of them, large ones in parts.
extension PostgreSQLStorage {
  func hasContent(_ hash: ContentHash, of container: ContainerID) async throws -> Bool {
    // One that a device received damaged is still served, but nothing may depend on it before it was put again.
    let statement = PostgreSQLStatement(
      "SELECT 1::bigint FROM content WHERE container = $1 AND hash = $2 AND suspect = 0",
      [.bytes(container.bytes), .bytes(hash.bytes)])
    return try await read([statement])[0].first != nil
  }

  func content(_ hash: ContentHash, of container: ContainerID) async throws -> KeptContent? {
    let statement = PostgreSQLStatement(
      "SELECT length, base, bytes, file, size FROM content WHERE container = $1 AND hash = $2",
      [.bytes(container.bytes), .bytes(hash.bytes)])
    guard let found = try await read([statement])[0].first else { return nil }
    var bytes = KeptContent.Bytes.memory(try found.optionalBytes(2) ?? Data())
    if let name = try found.optionalBytes(3) {
      let source = ContentParts(count: Int(try found.int(4)), tag: String(decoding: name, as: UTF8.self)) { number in
        try await self.part(number, of: name, in: container)
      }
      bytes = .parts(source)
    }
    return KeptContent(hash: hash, length: Int(try found.int(0)), base: try found.optionalHash(1), bytes: bytes)
  }

  private func part(_ number: Int, of name: Data, in container: ContainerID) async throws -> Data {
    let statement = PostgreSQLStatement(
      "SELECT bytes FROM content_part WHERE container = $1 AND name = $2 AND number = $3",
      [.bytes(container.bytes), .bytes(name), .int(Int64(number))])
    guard let row = try await read([statement])[0].first else {
      // It was deleted, or put again, after its row was read.
      throw APIError(.serviceUnavailable, .busy, "This content is being replaced.", retryAfterSeconds: 1)
    }
    return try row.bytes(0)
  }

  func adopt(_ file: URL, as name: String, of container: ContainerID) async throws {
    let handle = try FileHandle(forReadingFrom: file)
    defer { try? handle.close() }  // Only read from: closing can lose nothing.
    var number: Int64 = 0
    while let bytes = try handle.read(upToCount: ContentParts.partBytes), !bytes.isEmpty {
      let statement = PostgreSQLStatement(
        "INSERT INTO content_part (container, name, number, taken, bytes) VALUES ($1, $2, $3, $4, $5)",
        [.bytes(container.bytes), .bytes(Data(name.utf8)), .int(number), .int(clock()), .bytes(bytes)])
      _ = try await pool.run([statement])
      number += 1
    }
    try FileManager.default.removeItem(at: file)
  }

  func discard(_ name: String, of container: ContainerID) async throws {
    // Not if a row names it: the commit may have been done although nobody was told.
    let statement = PostgreSQLStatement(
      """
      DELETE FROM content_part WHERE container = $1 AND name = $2
      AND NOT EXISTS (SELECT 1 FROM content WHERE container = $1 AND file = $2)
      """, [.bytes(container.bytes), .bytes(Data(name.utf8))])
    _ = try await pool.run([statement])
  }

  func newestSeq(of container: ContainerID) async throws -> UInt64 {
    let statement = PostgreSQLStatement("SELECT seq FROM container WHERE id = $1", [.bytes(container.bytes)])
    return try await read([statement])[0].first?.unsigned(0) ?? 0
  }
}
#endif
