#if Cloud
import Foundation
import GRDB
import Keepsake
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// A server with the apps of two studios, and their games on the player's devices. One studio, `petals`, has the
/// shared container `studio.coins`; nobody may use it yet.
final class StudioServer {
  static let (team, container) = ("petals", "studio.coins")

  private(set) var server: LiveServer
  let data: URL
  private let registry: AppRegistry
  private let folder: URL
  private let keys: [String: String]
  private var admins: [String: String] = [:]

  /// Runs `body` with a server in a new folder, and removes both. Games that are left open end with the test.
  ///
  /// - Parameter issuer: Whose tokens the server takes.
  static func with(issuer: TestIssuer? = nil, _ body: (StudioServer) async throws -> Void) async throws {
    try await TemporaryFolder.with { folder in
      let data = folder.appendingPathComponent("server")
      let login = try issuer?.configuration(in: folder)
      let studio = try StudioServer(try await start(data, [login].compactMap(\.self)), data, folder)
      do {
        try await body(studio)
      } catch {
        try await studio.server.stop()
        throw error
      }
      try await studio.server.stop()
    }
  }

  private static func start(
    _ data: URL, _ issuers: [IdentityIssuer] = [], port: Int? = nil
  ) async throws -> LiveServer {
    try await LiveServer.start(
      data: data, port: port, change: { ($0.adminPort, $0.saves, $0.identityIssuers) = (0, TextReader(), issuers) })
  }

  private init(_ server: LiveServer, _ data: URL, _ folder: URL) throws {
    (self.server, self.data, self.folder) = (server, data, folder)
    registry = try AppRegistry(data: data)
    var keys: [String: String] = [:]
    for (team, apps) in [(Self.team, ["garden", "bakery"]), ("arcade", ["pinball"])] {
      try registry.createTeam(team)
      for app in apps {
        keys[app] = try registry.create(app).key
        try registry.add(app, to: team)
      }
    }
    self.keys = keys
    try registry.share(Self.container, in: Self.team)
  }

  func grant(_ app: String, _ access: ContainerAccess = .readWrite) throws {
    try registry.entitle(app, to: Self.container, of: Self.team, access)
  }

  func withdraw(_ app: String) throws { try registry.entitle(app, to: Self.container, of: Self.team, nil) }

  func revoke(_ app: String) throws { try registry.revoke(app) }

  /// Runs `body` twice: before and after a restart of the server.
  func restarting(_ body: () async throws -> Void) async throws {
    try await body()
    let port = server.running.port
    try await server.stop()
    server = try await Self.start(data, port: port)
    try await body()
  }

  /// Opens a game on a device, connected to the server.
  func open(_ app: String, on device: String = "phone") throws -> GameData {
    let game = try GameData.open("com.example.\(app)", at: folder.appendingPathComponent("\(device) \(app)"))
    game.cloud.connect(.server(server.url, appKey: keys[app] ?? ""), deviceName: device)
    return game
  }

  // MARK: Requests

  /// A client with the key of an app.
  func client(_ app: String) throws -> Client { Client(url: server.url, appKey: try #require(keys[app])) }

  /// A client of the studio, with a key of this name.
  func admin(_ name: String = "ada", appKeys: [String] = []) throws -> Client {
    let stage = AdminStage(server: server, data: data, folder: folder)
    if let token = admins[name] { return try stage.client(token: token) }
    let client = try stage.client(name: name, appKeys: appKeys)
    admins[name] = client.token
    return client
  }

  /// A new device in the shared container, of a device of a game.
  func shared(_ device: Client) async throws -> (client: Client, account: Client.Account) {
    try await account(of: device, "/v1/shared/\(Self.container)/devices", "{}")
  }

  /// A new device that joins with a pairing code.
  func joined(_ device: Client, _ path: String, _ code: String) async throws -> (
    client: Client, account: Client.Account
  ) {
    try await account(of: device, path, #"{"code": "\#(code)"}"#)
  }

  private func account(of device: Client, _ path: String, _ json: String) async throws -> (
    client: Client, account: Client.Account
  ) {
    let headers = device.token == nil ? ["Keepsake-App-Key": device.appKey] : [:]
    let answer = try await device.call("POST", path, headers: headers, json: json)
    try #require(answer.status == 201, "\(String(decoding: answer.body, as: UTF8.self))")
    let account = try JSONDecoder().decode(Client.Account.self, from: answer.body)
    return (Client(url: device.url, appKey: device.appKey, token: account.token), account)
  }

  /// What a statement reads in the server's database: one number.
  func rows(_ sql: String) async throws -> Int? {
    let database = try AdminDatabase.open(data)
    let count = try await database.read { try Int.fetchOne($0, sql: sql) }
    try database.close()
    return count
  }
}
#endif
