#if Cloud && PostgreSQL
import Foundation
import HTTPTypes
import KeepsakePlatform
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging

/// Contents: small ones beside what is known of them, large ones where the operator has them kept (`ContentStorage`).
///
/// A large content's row in `content_object` comes before its bytes. A commit that names them and the sweep that gives
/// them up change that row, so that of the two only one succeeds.
extension PostgreSQLStorage {
  func hasContent(_ hash: ContentHash, of container: ContainerID) async throws -> Bool {
    // One that a device received damaged is still served, but nothing may depend on it before it was put again.
    let statement = PostgreSQLStatement(
      "SELECT 1::bigint FROM content WHERE container = $1 AND hash = $2 AND suspect = 0",
      [.bytes(container.bytes), .bytes(hash.bytes)])
    return try await read([statement], of: container)[0].first != nil
  }

  func content(_ hash: ContentHash, of container: ContainerID) async throws -> KeptContent? {
    let statement = PostgreSQLStatement(
      """
      SELECT length, base, bytes, file, content.size, place, suspect FROM content
      LEFT JOIN content_object ON content_object.container = content.container AND content_object.name = file
      WHERE content.container = $1 AND hash = $2
      """, [.bytes(container.bytes), .bytes(hash.bytes)])
    guard let found = try await read([statement], of: container)[0].first else { return nil }
    var bytes = KeptContent.Bytes.memory(try found.optionalBytes(2) ?? Data())
    if try found.optionalBytes(3) != nil {
      let key = try ContentKey(try found.text(3), of: container)
      guard let place = try found.optionalBytes(5) else {
        throw ServerError(.damaged, "Nothing says where a large content's bytes are.")
      }
      let storage = try places.named(String(decoding: place, as: UTF8.self))
      let count = Int(try found.int(4))
      // Bytes elsewhere may be gone although their row is here, as after a restore of the database alone.
      // Those in rows go with their row, but a cloud that was moved here may have lacked them before.
      if try storage.name != ContentRows.name || found.int(6) == 1, try await storage.size(of: key) != count {
        try await lose(hash, key)
        return nil
      }
      bytes = .parts(Self.parts(key, count, in: storage))
    }
    return KeptContent(hash: hash, length: Int(try found.int(0)), base: try found.optionalHash(1), bytes: bytes)
  }

  private static func parts(_ key: ContentKey, _ count: Int, in storage: any ContentStorage) -> ContentParts {
    ContentParts(count: count, tag: key.name) { number in
      let start = number * ContentParts.partBytes
      guard let bytes = try await storage.bytes(start..<min(start + ContentParts.partBytes, count), of: key) else {
        // It was removed, or put again, after its row was read.
        throw Self.replaced
      }
      return bytes
    }
  }

  private static let replaced = APIError(
    .serviceUnavailable, .busy, "This content is being replaced.", retryAfterSeconds: 1)

  /// Has a content whose bytes are gone put again by a device that has it.
  private func lose(_ hash: ContentHash, _ key: ContentKey) async throws {
    let content: [PostgreSQLValue] = [
      .bytes(key.container.bytes), .bytes(hash.bytes), .bytes(Data(key.name.utf8)),
    ]
    // Who remembers the container has to learn of it, too.
    let turn = PostgreSQLStatement(
      """
      UPDATE container SET revision = revision + 1 WHERE id = $1 AND revision >= 0
      AND EXISTS (SELECT 1 FROM content WHERE container = $1 AND hash = $2 AND file = $3 AND suspect = 0)
      """, content)
    let statement = PostgreSQLStatement(
      "UPDATE content SET suspect = 1 WHERE container = $1 AND hash = $2 AND file = $3", content)
    guard try await run([turn, statement])[1].count > 0 else { throw Self.replaced }
    logger.error("The bytes of a content are gone; it is waited for from a device that has it")
  }

  func adopt(_ file: URL, as name: String, of container: ContainerID) async throws {
    let key = try ContentKey(name, of: container)
    let storage = try places.first
    let id: [PostgreSQLValue] = [.bytes(container.bytes), .bytes(Data(name.utf8))]
    let row = PostgreSQLStatement(
      """
      INSERT INTO content_object (container, name, place, size, taken) SELECT $1, $2, $3, $4, $5
      WHERE NOT EXISTS (SELECT 1 FROM container WHERE id = $1 AND revision < 0)
      """, id + [.bytes(Data(storage.name.utf8)), .int(Int64(try ContentFile.size(file))), .int(clock())])
    guard try await run([row])[0].count == 1 else { throw NotHere(container) }
    try await storage.put(file, as: key)
    let arrived = PostgreSQLStatement(
      "UPDATE content_object SET taken = $3 WHERE container = $1 AND name = $2 AND taken >= 0", id + [.int(clock())])
    guard try await read([arrived])[0].count == 1 else {
      // The player was deleted meanwhile, or it took a day. Bytes that arrived after that removal are still here.
      try await storage.delete(key)
      throw Self.replaced
    }
    try FileManager.default.removeItem(at: file)
  }

  func discard(_ name: String, of container: ContainerID) async throws {
    // Not if a row names it: the commit may have been done although nobody was told.
    let statement = PostgreSQLStatement(
      """
      UPDATE content_object SET taken = -1 WHERE container = $1 AND name = $2
      AND NOT EXISTS (SELECT 1 FROM content WHERE container = $1 AND file = $2)
      """, [.bytes(container.bytes), .bytes(Data(name.utf8))])
    _ = try await run([statement])
  }

  func newestSeq(of container: ContainerID) async throws -> UInt64 {
    if let known = newestSeqs[container] { return known }
    let statement = PostgreSQLStatement("SELECT seq FROM container WHERE id = $1", [.bytes(container.bytes)])
    return try await read([statement], of: container)[0].first?.unsigned(0) ?? 0
  }
}
#endif
