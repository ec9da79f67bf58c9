#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync
import Logging
import TestSupport
import Testing

@testable import KeepsakeServer

/// Shows saves that are texts.
struct TextReader: SaveReading {
  func plain(_ frame: Data, base: Data?, length: Int) throws -> Data {
    do {
      return try Zstd.decompress(frame, prefix: base, length: length)
    } catch {
      throw UnreadableSave("\(error)")
    }
  }

  func json(_ save: Data) throws -> Data {
    guard let text = String(data: save, encoding: .utf8) else { throw UnreadableSave("It is no text.") }
    return try JSONEncoder().encode(["text": text])
  }

  func difference(from old: Data, to new: Data) throws -> Data {
    Data(#"{"old":"#.utf8) + (try json(old)) + Data("}".utf8)
  }
}

/// A server with a port for the studio.
struct AdminStage {
  let server: LiveServer
  let data: URL
  let folder: URL

  static func with(
    appKeys: [String] = [], logger: Logger? = nil, clock: (@Sendable () -> Int64)? = nil,
    setBackPolicy: SetBackPolicy = .flag, webhooks: [WebhookEndpoint] = [],
    sender: any WebhookSender = HTTPWebhookSender(), _ body: (AdminStage) async throws -> Void
  ) async throws {
    try await TemporaryFolder.with { folder in
      let data = folder.appendingPathComponent("server")
      let server = try await LiveServer.start(data: data, appKeys: appKeys, clock: clock, logger: logger) {
        ($0.adminPort, $0.saves, $0.setBackPolicy) = (0, TextReader(), setBackPolicy)
        ($0.webhooks, $0.webhookSender) = (webhooks, sender)
      }
      do {
        try await body(AdminStage(server: server, data: data, folder: folder))
      } catch {
        try await server.stop()
        throw error
      }
      try await server.stop()
    }
  }

  var url: URL {
    get throws {
      let port = try #require(server.running.adminPort)
      return try #require(URL(string: "http://127.0.0.1:\(port)"))
    }
  }

  /// A client with a new key.
  func client(
    _ scopes: Set<AdminScope> = Set(AdminScope.allCases), name: String = "ada", appKeys: [String] = []
  ) throws -> Client {
    try client(token: try keys().create(name, scopes: scopes, appKeys: appKeys).text)
  }

  func keys() throws -> AdminKeys { try AdminKeys(data: data, database: TestDatabase.address(of: data)) }

  func client(token: String?) throws -> Client { Client(url: try url, appKey: server.appKey, token: token) }

  /// A device of a new player, which syncs.
  func device() async throws -> Device {
    let device = try await Device.register(with: server, in: folder)
    try await device.sync.start()
    return device
  }

  /// Another device of the same player.
  func device(with first: Device) async throws -> Device {
    let device = try await first.pair(with: server, in: folder)
    try await device.sync.start()
    return device
  }

  /// A storage in a folder of its own.
  static func storage(in folder: URL) throws -> SQLiteCloudStorage {
    let contents = folder.appendingPathComponent("contents")
    try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
    return try SQLiteCloudStorage(
      database: folder.appendingPathComponent(DataFolder.databaseName), contents: contents)
  }

  /// The path of a player, below which the routes are.
  static func path(_ device: Device, _ rest: String = "") -> String {
    "/admin/v1/players/\(device.credentials.player)\(rest)"
  }

  /// The audit log, oldest row first.
  func audit() throws -> [AuditReader.Row] {
    var rows: [AuditReader.Row] = []
    try AuditReader(data: data, database: TestDatabase.address(of: data)).rows(limit: 1_000) { rows.insert($0, at: 0) }
    return rows
  }

  func versions(of device: Device, slot: String = "main", _ client: Client) async throws -> [Version] {
    let answer = try await client.call("GET", Self.path(device, "/versions?slot=\(slot)"))
    try #require(answer.status == 200)
    return try JSONDecoder().decode(Versions.self, from: answer.body).versions
  }

  struct Versions: Decodable {
    var versions: [Version]
  }
  struct Version: Decodable {
    var version: VersionID
    var head: Bool
    var tombstone: Bool
    var available: Bool
    var bytes: Int
    var covers: [VersionID]
    var deviceName: String?
  }
}
#endif
