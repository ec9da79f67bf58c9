#if Cloud && PostgreSQL
import Crypto
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

/// Puts large contents where a cloud in PostgreSQL has them.
struct MovedContentTarget: Sendable {
  let pool: PostgreSQLPool
  let places: ContentPlaces
  let clock: @Sendable () -> Int64

  /// Puts a file, reads it back and compares it, unless it is there already as a row names it.
  ///
  /// - Returns: Whether it was put.
  func put(_ file: URL, count: Int, named name: String, of container: ContainerID) async throws -> Bool {
    let key = try ContentKey(name, of: container)
    let id: [PostgreSQLValue] = [.bytes(container.bytes), .bytes(Data(name.utf8))]
    let found = try await pool.runUntilDone([
      PostgreSQLStatement("SELECT place, size, taken FROM content_object WHERE container = $1 AND name = $2", id)
    ])[0].first
    let storage = places.first
    if let found {
      // A row has named it since it was compared. A name is never used again for other bytes.
      if try found.int(2) == .max, try found.int(1) == Int64(count), try found.text(0) == storage.name,
        try await storage.size(of: key) == count
      {
        return false
      }
      // What is left of a move that was broken off.
      try await places.named(try found.text(0)).delete(key)
    }
    _ = try await pool.runUntilDone([
      PostgreSQLStatement(
        """
        INSERT INTO content_object (container, name, place, size, taken) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (container, name) DO UPDATE
        SET place = excluded.place, size = excluded.size, taken = excluded.taken
        """, id + [.bytes(Data(storage.name.utf8)), .int(Int64(count)), .int(clock())])
    ])
    try await storage.put(file, as: key)
    guard try await Self.hash(of: key, count: count, in: storage) == Self.hash(of: file) else {
      throw ServerError(.damaged, "A large content isn't the same where it was put: \(name).")
    }
    return true
  }

  static func hash(of file: URL) throws -> Data {
    var hasher = SHA256()
    try ContentFile.each(file, piece: 1 << 20) { hasher.update(data: $0) }
    return Data(hasher.finalize())
  }

  /// Returns the hash of bytes that are kept; nil if they aren't there.
  static func hash(of key: ContentKey, count: Int, in storage: any ContentStorage) async throws -> Data? {
    guard try await storage.size(of: key) == count else { return nil }
    var hasher = SHA256()
    for start in stride(from: 0, to: count, by: ContentParts.partBytes) {
      guard let bytes = try await storage.bytes(start..<min(start + ContentParts.partBytes, count), of: key) else {
        return nil
      }
      hasher.update(data: bytes)
    }
    return Data(hasher.finalize())
  }

  /// Writes the bytes that are kept into a new file.
  ///
  /// - Returns: Whether they were there.
  static func fetch(
    _ key: ContentKey, _ count: Int, in storage: any ContentStorage, to file: URL
  ) async throws -> Bool {
    guard try await storage.size(of: key) == count else { return false }
    let handle = try PrivateFile.createHandle(file)
    do {
      for start in stride(from: 0, to: count, by: ContentParts.partBytes) {
        let range = start..<min(start + ContentParts.partBytes, count)
        guard let bytes = try await storage.bytes(range, of: key) else {
          try handle.close()
          return false
        }
        try handle.write(contentsOf: bytes)
      }
      try handle.close()
      return true
    } catch {
      try? handle.close()  // What made this fail is thrown.
      throw error
    }
  }

  /// Puts all large contents of a container of a data folder.
  func putAll(_ named: [NamedFile], of owner: Data, in files: ContentFiles) async throws -> MovedContents.Arrived {
    var arrived = MovedContents.Arrived()
    guard !named.isEmpty else { return arrived }
    guard let container = ContainerID(bytes: owner) else {
      throw ServerError(.damaged, "A large content belongs to nobody.")
    }
    for file in named {
      guard case .file(let url, let count)? = try files.file(named: file.name), count == Int(file.size) else {
        arrived.lost.insert(Data(file.name.utf8))
        continue
      }
      do {
        if try await put(url, count: count, named: file.name, of: container) {
          arrived.count += 1
          arrived.bytes += count
        }
      } catch {
        guard Self.isGone(url) else { throw error }
        // It was removed meanwhile, with the row that named it.
        continue
      }
      arrived.names.insert(Data(file.name.utf8))
    }
    return arrived
  }

  private static func isGone(_ url: URL) -> Bool { !FileManager.default.fileExists(atPath: url.path) }

  struct NamedFile: Sendable {
    var name: String
    var size: Int64
  }
}
#endif
