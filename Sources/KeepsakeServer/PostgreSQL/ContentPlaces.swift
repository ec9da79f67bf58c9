#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import Logging
import Synchronization

/// Where a cloud's large contents are: where new ones are put, and where earlier ones may be.
final class ContentPlaces: Sendable {
  /// Where new ones are put.
  let first: any ContentStorage
  private let all: [String: any ContentStorage]
  /// How far the first one was listed.
  let listed = Mutex<String?>(nil)

  init(_ storages: [any ContentStorage], rows: ContentRows) {
    first = storages.first ?? rows
    all = Dictionary((storages + [rows]).map { ($0.name, $0) }) { $1 }
  }

  /// Opens the places that an operator has named, and sees that they are this cloud's.
  ///
  /// - Throws: `ServerError` if one can't be used, or contents are in one that isn't among them; `ContentStorageError`;
  ///   `PostgreSQLError`.
  static func open(
    _ places: [ContentPlace], pool: PostgreSQLPool, clock: @escaping @Sendable () -> Int64, logger: Logger
  ) async throws -> ContentPlaces {
    let rows = ContentRows(pool: pool, clock: clock)
    var storages: [any ContentStorage] = []
    let used = try await used(pool)
    let marked = try places.compactMap { place in
      if case .folder(let folder) = place { try ContentFolder.name(of: folder) } else { nil }
    }
    // One that isn't mounted looks as if it were new.
    let mayBeNew = !used.contains { $0.hasPrefix("folder:") && !marked.contains($0) }
    do {
      for place in places {
        switch place {
        case .rows: storages.append(rows)
        case .folder(let folder):
          storages.append(try ContentFolder(folder, for: try await cloud(pool), mayBeNew: mayBeNew))
        case .bucket(let address):
          let bucket = ContentBucket(address, credentials: try S3Credentials.source(of: address, logger: logger))
          storages.append(bucket)
          try await bucket.claim(for: try await cloud(pool), mayBeNew: !used.contains(bucket.name))
        }
      }
      guard Set(storages.map(\.name)).count == storages.count else {
        throw ServerError(
          .configuration, "Two places of contents have one name: another bucket of the same name needs another prefix.")
      }
      let opened = ContentPlaces(storages, rows: rows)
      try await opened.record(pool)
      for name in used { _ = try opened.named(name) }
      return opened
    } catch {
      for storage in storages { try await storage.shutDown() }
      throw error
    }
  }

  /// - Throws: `ServerError` with `configuration` for a name that isn't among them.
  func named(_ name: String) throws -> any ContentStorage {
    guard let storage = all[name] else {
      throw ServerError(
        .configuration, "Large contents of this cloud are in \(name): name it with --contents, behind the first one.")
    }
    return storage
  }

  /// Records where contents are put.
  private func record(_ pool: PostgreSQLPool) async throws {
    let name = PostgreSQLValue.bytes(Data(first.name.utf8))
    _ = try await pool.runUntilDone([
      PostgreSQLStatement("INSERT INTO content_place (name) VALUES ($1) ON CONFLICT DO NOTHING", [name])
    ])
  }

  /// The names of the places in which there are contents.
  private static func used(_ pool: PostgreSQLPool) async throws -> Set<String> {
    var names: Set<String> = []
    for row in try await pool.runUntilDone([PostgreSQLStatement("SELECT name FROM content_place")])[0] {
      let any = PostgreSQLStatement(
        "SELECT 1::bigint FROM content_object WHERE place = $1 LIMIT 1", [.bytes(try row.bytes(0))])
      if try await pool.runUntilDone([any])[0].first != nil { names.insert(try row.text(0)) }
    }
    return names
  }

  /// What tells this cloud from others in the folders and buckets that it uses.
  private static func cloud(_ pool: PostgreSQLPool) async throws -> String {
    let number = try await number(pool)
    return S3Request.hexadecimal(withUnsafeBytes(of: number.bigEndian) { Array($0) })
  }

  /// Returns the number of the cloud.
  ///
  /// - Parameter new: What it becomes if it has none; nil for any.
  static func number(_ pool: PostgreSQLPool, ifNone new: Int64? = nil) async throws -> Int64 {
    let name = PostgreSQLValue.bytes(Data("contents".utf8))
    _ = try await pool.runUntilDone([
      PostgreSQLStatement(
        "INSERT INTO number (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        [name, .int(new ?? .random(in: 0 ... .max))])
    ])
    let read = PostgreSQLStatement("SELECT value FROM number WHERE name = $1", [name])
    let found = try await pool.runUntilDone([read])[0].first
    guard let found else { throw ServerError(.damaged, "The number of this cloud is gone from the database.") }
    return try found.int(0)
  }

  func shutDown() async throws {
    for storage in all.values { try await storage.shutDown() }
  }
}
#endif
