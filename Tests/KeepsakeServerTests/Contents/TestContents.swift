#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging
import TestSupport
import Testing

@testable import KeepsakeServer

/// A place of large contents for tests: each of the three.
enum TestContents: String, CaseIterable, CustomTestStringConvertible {
  case rows, folder, bucket

  /// The bucket that `Scripts/with-s3.sh` has started for the tests; nil if there is none.
  static let address = ProcessInfo.processInfo.environment["KEEPSAKE_S3"]
  /// Those that are there.
  static let all = allCases.filter { $0 != .bucket || address != nil }

  var testDescription: String { rawValue }

  /// How the setting `contents` names a place of this kind that nobody uses yet.
  func place(in folder: TemporaryFolder) throws -> String {
    switch self {
    case .rows: return "rows"
    case .folder:
      let url = folder.url.appendingPathComponent("contents-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
      return "folder:\(url.path)"
    case .bucket:
      return try #require(Self.address).replacing("/contents?", with: "/contents/\(UUID().uuidString)?")
    }
  }
}

/// A database of its own and places of contents, with as many servers as a test wants.
struct ContentLab: Sendable {
  static let day: Int64 = 24 * 3_600_000

  let folder: TemporaryFolder
  let settings: PostgreSQLSettings
  let container = ContainerID(high: 1, low: 1)

  /// Runs `body` with an empty database.
  static func with(_ body: (ContentLab) async throws -> Void) async throws {
    let name = "s\(UUID().uuidString.lowercased().filter { $0 != "-" })"
    let settings = TestDatabase.settings(try TestDatabase.address(ofSchema: name))
    try await body(ContentLab(folder: TemporaryFolder(), settings: settings))
    try TestDatabase.drop(schema: name)
  }

  /// Runs `body` with a server whose contents are in these places.
  func with(
    _ places: [String], now: Int64 = 5, _ body: (PostgreSQLStorage) async throws -> Void
  ) async throws {
    let storage = try await PostgreSQLStorage(
      settings, connections: 2, contents: try ContentPlace.all(places), clock: { now },
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    do {
      try await body(storage)
    } catch {
      try await storage.close()
      throw error
    }
    try await storage.close()
  }

  func file(_ bytes: Data) throws -> URL {
    let url = folder.url.appendingPathComponent("file-\(UUID().uuidString)")
    try bytes.write(to: url)
    return url
  }

  /// Puts a content as a device does, and returns its hash.
  func put(_ bytes: Data, to storage: PostgreSQLStorage) async throws -> ContentHash {
    let hash = ContentHash(of: bytes)
    _ = try await storage.putContent(
      KeptContent(hash: hash, length: bytes.count, base: nil, bytes: .file(try file(bytes), count: bytes.count)),
      of: container, quota: nil)
    return hash
  }

  /// Returns what a device gets; nil if it isn't there.
  func bytes(
    _ hash: ContentHash, in storage: PostgreSQLStorage, _ range: Range<Int>? = nil
  ) async throws -> Data? {
    guard let found = try await storage.content(hash, of: container) else { return nil }
    guard case .parts(let parts) = found.bytes else { return try await found.bytes.reader()() }
    var bytes = Data()
    try await parts.each(of: range ?? 0..<parts.count) { bytes += $0 }
    return bytes
  }

  /// Runs a statement on a connection of its own.
  @discardableResult
  func run(_ sql: String) throws -> PostgreSQLRows {
    try PostgreSQLConnection(settings).run([PostgreSQLStatement(sql)])[0]
  }

  /// The names of all large contents, each with when it was taken.
  func objects() throws -> [String: Int64] {
    let rows = try run("SELECT name, taken FROM content_object")
    return Dictionary(uniqueKeysWithValues: try rows.map { (try $0.text(0), try $0.int(1)) })
  }

  /// The names of what is in a server's first place.
  func kept(by storage: PostgreSQLStorage) async throws -> Set<String> {
    Set(try await storage.places.first.list("", after: nil, limit: 1_000).entries.map(\.key.name))
  }
}
#endif
