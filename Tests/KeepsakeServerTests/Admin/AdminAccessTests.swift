#if Cloud
import Foundation
import HTTPTypes
import KeepsakeReplication
import Logging
import KeepsakeSync
import TestSupport
import Testing

@testable import KeepsakeServer

/// Who may use the port for the studio: every route is tried with every kind of wrong key.
@Suite("Keys of the studio", .hangLimit) struct AdminAccessTests {
  /// A request for each route, with what a body has. A new route needs an entry here.
  private static let bodies: [String: String?] = [
    "GET players": nil,
    "GET players/{player}": nil,
    "GET players/{player}/devices": nil,
    "DELETE players/{player}/devices/{device}": nil,
    "DELETE players/{player}/devices/{device}/set-back": nil,
    "DELETE players/{player}/identities/{identity}": nil,
    "PUT players/{player}/ban": #"{"reason": "x"}"#,
    "DELETE players/{player}/ban": nil,
    "GET players/{player}/export": nil,
    "DELETE players/{player}": nil,
    "GET players/{player}/slots": nil,
    "GET players/{player}/versions": nil,
    "GET players/{player}/versions/{version}": nil,
    "GET players/{player}/versions/{version}/bytes": nil,
    "GET players/{player}/diff": nil,
    "POST players/{player}/versions/{version}/restore": #"{"reason": "x"}"#,
    "GET players/{player}/money": nil,
    "POST players/{player}/money/orders": #"{}"#,
    "POST players/{player}/money/refunds": #"{}"#,
    "GET webhooks": nil,
    "GET webhooks/{endpoint}/dead": nil,
    "POST webhooks/{endpoint}/retry": #"{}"#,
  ]

  private struct Sample {
    var method: String
    var path: String
    var scope: AdminScope
    var body: String?
    var name: String

    func send(_ client: Client) async throws -> Client.Answer {
      try await client.call(method, path, body: body.map { Data($0.utf8) })
    }
  }

  /// Every route, for a player.
  private func samples(_ player: String) async throws -> [Sample] {
    let folder = try TemporaryFolder()
    var configuration = ServerConfiguration(data: folder.url, port: 0)
    (configuration.adminPort, configuration.saves) = (0, TextReader())
    let service = try await CloudService(
      configuration: configuration, logger: Logger(label: "test"), stopSwitch: StopSwitch(), onRunning: { _ in })
    let table = try #require(service.admin).routes.table
    #expect(Set(table.map { "\($0.method.rawValue) \($0.path)" }) == Set(Self.bodies.keys))
    #expect(Set(table.map(\.act)).count == table.count)
    let id = String(repeating: "1", count: 32)
    return table.map { route in
      let name = "\(route.method.rawValue) \(route.path)"
      var path = route.path.replacingOccurrences(of: "{player}", with: player)
      for parameter in ["{device}", "{version}", "{endpoint}"] {
        path = path.replacingOccurrences(of: parameter, with: id)
      }
      path = path.replacingOccurrences(of: "{identity}", with: id + id)
      if name == "GET players" { path += "?player=\(player)" }
      if name.hasSuffix("/versions") { path += "?slot=main" }
      if name.hasSuffix("/diff") { path += "?from=\(id)&to=\(id)" }
      return Sample(
        method: route.method.rawValue, path: "/admin/v1/\(path)", scope: route.scope, body: Self.bodies[name] ?? nil,
        name: name)
    }
  }

  @Test("no route answers without a key, with a wrong or a revoked one, or with one that lacks the scope")
  func everyRoute() async throws {
    try await AdminStage.with { stage in
      let device = try await stage.device()
      try device.save(Data("a save".utf8), to: "main")
      try await device.sync.sync()
      let revoked = try stage.client(name: "revoked")
      try stage.keys().revoke("revoked")
      var others: [AdminScope: Client] = [:]
      for scope in AdminScope.allCases {
        others[scope] = try stage.client(Set(AdminScope.allCases).subtracting([scope]), name: "all-but-\(scope)")
      }
      let samples = try await samples("\(device.credentials.player)")
      for sample in samples {
        let none = try await sample.send(try stage.client(token: nil))
        #expect(none.status == 401 && none.code == "unauthorized", "\(sample.name)")
        // The token of a device, and a key of the game's servers, are none either.
        let server = try ServerKeys(data: stage.data).create(
          sample.name.filter { $0.isLetter } + "\(sample.path.count)")
        for token in [device.credentials.token, server] {
          let wrong = try await sample.send(try stage.client(token: token))
          #expect([401, 429].contains(wrong.status), "\(sample.name)")
        }
        #expect(try await [401, 429].contains(sample.send(revoked).status), "\(sample.name)")
        let lacking = try await sample.send(try #require(others[sample.scope]))
        #expect(lacking.status == 403 && lacking.code == "scope_missing", "\(sample.name)")
        let row = try stage.audit().last
        #expect(lacking.headers["keepsake-request"] == row?.request && none.headers["keepsake-request"] == nil)
      }
      // Nothing was done, and each refusal of a key that the server knows is in the log.
      let rows = try stage.audit().filter { $0.act != "key.create" && $0.act != "key.revoke" }
      #expect(rows.count == samples.count && rows.allSatisfy { $0.result == "scope_missing" })
      #expect(try await stage.versions(of: device, stage.client()).count == 1)
      try await device.close()
    }
  }

  @Test("a key for some apps doesn't find the players of others, whichever route asks")
  func otherApps() async throws {
    try await AdminStage.with(appKeys: ["first-app-key", "second-app-key"]) { stage in
      let device = try await stage.device()
      let client = try stage.client(name: "second", appKeys: ["second-app-key"])
      let unknown = try stage.client(name: "all")
      for sample in try await samples("\(device.credentials.player)") {
        let answer = try await sample.send(client)
        guard sample.name != "GET players" else {
          #expect(answer.status == 200 && (answer.json["players"] as? [Any])?.isEmpty == true)
          continue
        }
        if sample.scope == .webhooks {
          // They show events of all players.
          #expect(answer.status == 403 && answer.code == "scope_missing", "\(sample.name)")
          continue
        }
        // As for a player that doesn't exist.
        #expect(answer.status == 404 && answer.code == "player_unknown", "\(sample.name)")
      }
      for sample in try await samples(String(repeating: "0", count: 32))
      where sample.name != "GET players" && sample.scope != .webhooks {
        #expect(try await sample.send(unknown).code == "player_unknown", "\(sample.name)")
      }
      let own = try stage.client([.read], name: "first", appKeys: ["first-app-key"])
      #expect(try await own.call("GET", AdminStage.path(device)).status == 200)
      try await device.close()
    }
  }

  @Test("the studio's routes aren't on the port for devices, and the devices' aren't on the studio's")
  func ports() async throws {
    try await AdminStage.with { stage in
      let device = try await stage.device()
      let client = try stage.client()
      let open = Client(url: stage.server.url, appKey: stage.server.appKey, token: client.token)
      for sample in try await samples("\(device.credentials.player)") {
        #expect(try await sample.send(open).status == 404, "\(sample.name)")
      }
      for (method, path) in [
        ("GET", "/health"), ("POST", "/v1/devices"), ("GET", "/v1/devices"), ("DELETE", "/v1/player"),
        ("GET", "/metrics"), ("GET", "/v1/bank/\(device.credentials.player)"),
      ] {
        #expect(try await client.call(method, path).status == 404, "\(path)")
      }
      try await device.close()
    }
  }

  @Test("a connection without a request is closed on the studio's port, too, however often a byte comes")
  func noRequest() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(
        data: folder, change: { ($0.adminPort, $0.saves, $0.requestSeconds) = (0, TextReader(), 1) })
      let connection = try RawConnection(port: try #require(server.running.adminPort))
      let drops = Task {
        for byte in "GET /admin/v1/players?player=" {
          await connection.send("\(byte)")
          try await Task.sleep(for: .milliseconds(100))
        }
      }
      #expect(await connection.read(until: "\r\n\r\n") == "")
      drops.cancel()
      #expect(server.running.gate.refusals.counts[.noRequest] == 1)
      try await server.stop()
    }
  }

  @Test("devices that export don't keep the studio from its work")
  func turns() async throws {
    try await AdminStage.with { stage in
      let device = try await stage.device()
      try device.save(Data("a save".utf8), to: "main")
      try await device.sync.sync()
      let shares = (0..<ServerLimits.concurrentExports).map { _ in stage.server.running.gate.exports.share(1) }
      #expect(shares.allSatisfy { $0 != nil })
      #expect(try await stage.client().call("GET", AdminStage.path(device, "/export")).status == 200)
      withExtendedLifetime(shares) {}
      try await device.close()
    }
  }

  @Test("malformed ids, paths that lead elsewhere and large bodies are refused, and change nothing")
  func hostile() async throws {
    try await AdminStage.with { stage in
      let device = try await stage.device()
      let client = try stage.client()
      let player = AdminStage.path(device)
      for path in [
        "/admin/v1/players/..%2F..%2Fsecret", "/admin/v1/players/%00",
        "/admin/v1/players/\(String(repeating: "a", count: 5_000))",
        "\(player)/versions/..%2F..%2Fcloud.sqlite/bytes", "\(player)/versions/x", "\(player)/..%2F..",
        "\(player)/diff?from=x&to=y", "\(player)/versions", "\(player)/versions?slot=main&before=-1",
        "/admin/v1/players?player=x", "/admin/v1/players?player=1&device=1", "/admin/v1/players",
      ] {
        let answer = try await client.call("GET", path)
        #expect((400..<500).contains(answer.status), "\(path) \(answer.status)")
      }
      let strange = try await client.call("GET", "\(player)/versions?slot=..%2F..%2Fcloud.sqlite")
      #expect(strange.status == 200 && (strange.json["versions"] as? [Any])?.isEmpty == true)
      let large = Data(#"{"reason": ""#.utf8) + Data(repeating: UInt8(ascii: "x"), count: 1 << 20) + Data("\"}".utf8)
      for path in ["/ban", "/versions/\(String(repeating: "1", count: 32))/restore", "/money/orders", "/money/refunds"]
      {
        let answer = try await client.call(path == "/ban" ? "PUT" : "POST", player + path, body: large)
        #expect(answer.status == 413 && answer.code == "too_large", "\(path)")
      }
      for reason in ["", String(repeating: "x", count: 201), "two\\nlines"] {
        let answer = try await client.call("PUT", "\(player)/ban", json: #"{"reason": "\#(reason)"}"#)
        #expect(answer.status == 400, "\(reason)")
      }
      #expect((try await client.call("GET", player)).json["ban"] == nil)
      try await device.close()
    }
  }

  @Test("after ten wrong keys from an address a further one waits, and a right one doesn't")
  func guesses() async throws {
    try await AdminStage.with { stage in
      let client = try stage.client([.read])
      for count in 1...12 {
        let answer = try await stage.client(token: "adm_\(count)").call("GET", "/admin/v1/players?player=1")
        #expect(answer.status == (count <= 10 ? 401 : 429), "\(count)")
        if count > 10 { #expect(answer.code == "too_many_guesses" && answer.headers["retry-after"] != nil) }
      }
      #expect(
        try await client.call("GET", "/admin/v1/players?player=\(String(repeating: "1", count: 32))").status == 200)
    }
  }

  @Test("no log has a key or a player's id, and the data folder has no key")
  func secrets() async throws {
    let log = RecordedLog()
    try await AdminStage.with(logger: log.logger) { stage in
      let device = try await stage.device()
      let client = try stage.client()
      let token = try #require(client.token)
      _ = try await client.call("GET", AdminStage.path(device))
      _ = try await client.call("GET", AdminStage.path(device, "/nothing"))
      _ = try await stage.client(token: "\(token)x").call("GET", AdminStage.path(device))
      try await device.close()
      let lines = log.lines.value.map(\.text)
      #expect(!lines.isEmpty)
      for secret in [token, "\(device.credentials.player)", "\(device.credentials.device)"] {
        #expect(!lines.contains { $0.contains(secret) })
      }
      #expect(try Traces.files(of: stage.data, having: [Data(token.utf8)]).isEmpty)
      let keys = try stage.keys().list()
      #expect(!String(describing: keys).contains(token))
    }
  }

  @Test("keys have names, scopes and an end; a name isn't given twice, and a running server notices at once")
  func keys() async throws {
    try await AdminStage.with { stage in
      let keys = try stage.keys()
      let (text, key) = try keys.create("ada", scopes: [.saves, .read])
      #expect(key.scopes == [.read, .saves] && text.hasPrefix("adm_"))
      let client = try stage.client(token: text)
      let path = "/admin/v1/players?player=\(String(repeating: "1", count: 32))"
      #expect(try await client.call("GET", path).status == 200)
      try keys.revoke("ada")
      #expect(try await client.call("GET", path).status == 401)
      for name in ["ada", "", "two words", String(repeating: "x", count: 65)] {
        #expect(throws: ServerError.self) { try keys.create(name, scopes: [.read]) }
      }
      #expect(throws: ServerError.self) { try keys.create("nothing", scopes: []) }
      #expect(throws: ServerError.self) { try keys.revoke("ada") }
      #expect(throws: ServerError.self) { try keys.revoke("nobody") }
      let listed = try keys.list()
      #expect(listed.map(\.name) == ["ada"] && listed[0].revokedMilliseconds != nil)
      #expect(try stage.audit().map(\.act) == ["key.create", "player.find", "key.revoke"])
    }
  }

  @Test("the port for the studio is on loopback only, unless a proxy with TLS stands in front of it")
  func loopback() throws {
    var configuration = ServerConfiguration(data: URL(fileURLWithPath: "/nowhere"), port: 0)
    (configuration.adminPort, configuration.saves) = (0, TextReader())
    try configuration.check()
    configuration.adminHost = "0.0.0.0"
    #expect(throws: ServerError.self) { try configuration.check() }
    configuration.isBehindProxy = true
    try configuration.check()
    configuration.adminPort = 70_000
    #expect(throws: ServerError.self) { try configuration.check() }
    (configuration.adminPort, configuration.saves) = (0, nil)
    #expect(throws: ServerError.self) { try configuration.check() }
  }
}
#endif
