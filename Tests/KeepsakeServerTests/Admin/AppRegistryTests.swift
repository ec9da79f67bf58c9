#if Cloud
import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// Apps whose keys are replaced and revoked while a server runs.
@Suite("Apps and their keys", .hangLimit) struct AppRegistryTests {
  private func with(
    keys: [String] = [], _ body: (LiveServer, AppRegistry) async throws -> Void
  ) async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder, appKeys: keys)
      do {
        try await body(server, try AppRegistry(data: folder))
      } catch {
        try await server.stop()
        throw error
      }
      try await server.stop()
    }
  }

  private func register(_ server: LiveServer, _ key: String) async throws -> Client.Answer {
    try await Client(url: server.url, appKey: key).call(
      "POST", "/v1/devices", headers: ["Keepsake-App-Key": key], json: "{}")
  }

  private func registered(_ server: LiveServer, _ key: String) async throws -> Client {
    let answer = try await register(server, key)
    #expect(answer.status == 201)
    return Client(url: server.url, appKey: key, token: try #require(answer.json["token"] as? String))
  }

  @Test("a key is replaced, and the one before revoked, without a device noticing; players and pairing stay the app's")
  func rotated() async throws {
    try await with { server, registry in
      let first = try #require(try registry.create("dungeon").key)
      let phone = try await registered(server, first)
      let second = try registry.rotate("dungeon")
      let tablet = try await registered(server, second)
      let code = try #require(try await phone.call("POST", "/v1/pairing").json["code"] as? String)
      let joined = try await tablet.call(
        "POST", "/v1/pairing/join", headers: ["Keepsake-App-Key": second], json: #"{"code": "\#(code)"}"#)
      #expect(joined.status == 201, "both keys are one app's")
      let old = try #require(try registry.list().first?.keys.first)
      try registry.revoke("dungeon", key: old.id)
      #expect(try await register(server, first).code == "bad_app_key")
      // A game that wasn't updated has the old key, which is good for its own device's next token and nothing else.
      #expect(try await phone.call("POST", "/v1/token", headers: ["Keepsake-App-Key": first]).status == 200)
      let other = try #require(try registry.create("other").key)
      let stranger = try await registered(server, other)
      let foreign = try await stranger.call("POST", "/v1/token", headers: ["Keepsake-App-Key": first])
      #expect(foreign.code == "bad_app_key")
      #expect(try await register(server, second).status == 201)
      #expect(try await phone.call("GET", "/v1/devices").status == 200)
      // A token that is renewed with the new key stays the same app's.
      #expect(try await phone.call("POST", "/v1/token", headers: ["Keepsake-App-Key": second]).status == 200)
      #expect(throws: ServerError.self) { try registry.revoke("dungeon", key: old.id) }
      let last = try #require(try registry.list().first?.keys.last)
      let error = #expect(throws: ServerError.self) { try registry.revoke("dungeon", key: last.id) }
      #expect(error?.code == .configuration, "the last one goes with the app only")
    }
  }

  @Test("a revoked app's devices and keys are refused, and no other app's")
  func revoked() async throws {
    try await with { server, registry in
      let (one, other) = (try #require(try registry.create("one").key), try #require(try registry.create("other").key))
      let (phone, second) = (try await registered(server, one), try await registered(server, other))
      var source = SystemRandomNumberGenerator()
      let code = RecoveryCode(using: &source)
      let made = try await phone.call("PUT", "/v1/recovery", json: #"{"digest": "\#(code.digest)"}"#)
      #expect(made.status == 204)
      try registry.revoke("one")
      #expect(try await phone.call("GET", "/v1/devices").code == "app_revoked")
      #expect(try await register(server, one).code == "bad_app_key")
      // The key of another app doesn't bring them back, nor one of their own.
      let moved = try await phone.call("POST", "/v1/token", headers: ["Keepsake-App-Key": other])
      #expect(moved.code == "app_revoked")
      #expect(try await phone.call("POST", "/v1/token", headers: ["Keepsake-App-Key": one]).code == "bad_app_key")
      let body = #"{"code": "\#(code.text)", "next": "\#(ContentHash(of: Data()))"}"#
      let back = try await second.call("POST", "/v1/recovery/join", headers: ["Keepsake-App-Key": other], json: body)
      #expect(back.status == 403 && back.code == "bad_app_key", "\(String(decoding: back.body, as: UTF8.self))")
      #expect(try await second.call("GET", "/v1/devices").status == 200)
      let error = #expect(throws: ServerError.self) { _ = try registry.create("one") }
      #expect(error?.code == .configuration, "a name is used once")
      #expect(throws: ServerError.self) { _ = try registry.rotate("one") }
      #expect(throws: ServerError.self) { try registry.revoke("one") }
    }
  }

  @Test("an app takes over a key of the settings with its devices, and what it revokes isn't accepted from there")
  func adopted() async throws {
    try await with(keys: ["app-key-of-settings"]) { server, registry in
      let phone = try await registered(server, "app-key-of-settings")
      let (key, app) = try registry.create("dungeon", adopting: "app-key-of-settings")
      #expect(key == nil && app.id == AppID(ofKey: "app-key-of-settings").text)
      #expect(try await phone.call("GET", "/v1/devices").status == 200)
      #expect(throws: ServerError.self) { _ = try registry.create("again", adopting: "app-key-of-settings") }
      #expect(throws: ServerError.self) { _ = try registry.create("short", adopting: "short") }
      // What the registry has revoked isn't accepted from the settings either.
      try registry.revoke("dungeon")
      #expect(try await phone.call("GET", "/v1/devices").code == "app_revoked")
      #expect(try await register(server, "app-key-of-settings").code == "bad_app_key")
    }
  }

  @Test("the generated key stays accepted beside apps, also after a restart")
  func generated() async throws {
    try await TemporaryFolder.with { folder in
      var server = try await LiveServer.start(data: folder)
      let own = server.appKey
      let token = try await registered(server, own).token
      let key = try #require(try AppRegistry(data: folder).create("dungeon").key)
      for _ in 0..<2 {
        #expect(try await Client(url: server.url, appKey: own, token: token).call("GET", "/v1/devices").status == 200)
        #expect(try await register(server, own).status == 201)
        #expect(try await register(server, key).status == 201)
        try await server.stop()
        server = try await LiveServer.start(data: folder)
      }
      try await server.stop()
    }
  }

  @Test("a registry that can't be understood changes nothing while a server runs; a newer one is refused as such")
  func damaged() async throws {
    try await with { server, registry in
      let key = try #require(try registry.create("dungeon").key)
      let phone = try await registered(server, key)
      let bytes = try Data(contentsOf: registry.file)
      #expect(bytes.range(of: Data(key.utf8)) == nil, "only a hash is kept")
      let texts = [
        "", "{", #"{"format": 1}"#, #"{"apps": [], "format": 0}"#, #"{"format": 1, "apps": [{"name": 1}]}"#,
      ]
      for text in texts {
        try Data(text.utf8).write(to: registry.file)
        #expect(try await phone.call("GET", "/v1/devices").status == 200, "\(text)")
        let error = #expect(throws: ServerError.self, "\(text)") { _ = try registry.create("new") }
        #expect(error?.code == .damaged, "\(text)")
        #expect(try Data(contentsOf: registry.file) == Data(text.utf8), "nothing is written over it")
      }
      try Data(#"{"format": 3, "apps": "otherwise"}"#.utf8).write(to: registry.file)
      let error = #expect(throws: ServerError.self) { _ = try registry.list() }
      #expect(error?.code == .newerData)
      #expect(try await phone.call("GET", "/v1/devices").status == 200)
      try bytes.write(to: registry.file)
      #expect(try registry.list().map(\.name) == ["dungeon"])
    }
  }

  @Test("a file of keys that is gone doesn't hide what is revoked; keys can be replaced as often as one likes")
  func separately() async throws {
    try await TemporaryFolder.with { folder in
      let keys = folder.appendingPathComponent("keys")
      try Data("key-of-settings\n".utf8).write(to: keys)
      let data = folder.appendingPathComponent("cloud")
      let server = try await LiveServer.start(data: data, change: { $0.appKeysFile = keys })
      let registry = try AppRegistry(data: data)
      let key = try #require(try registry.create("dungeon").key)
      let phone = try await registered(server, key)
      try FileManager.default.removeItem(at: keys)
      #expect(try await phone.call("GET", "/v1/devices").status == 200)
      try registry.revoke("dungeon")
      #expect(try await phone.call("GET", "/v1/devices").code == "app_revoked")
      #expect(try await register(server, "key-of-settings").status == 201, "what was read before stays in use")
      _ = try registry.create("kingdom")
      func kingdom() throws -> AppRegistry.App? { try registry.list().last }
      for _ in 0..<20 {
        let before = try #require(kingdom()?.keys.last)
        _ = try registry.rotate("kingdom")
        try registry.revoke("kingdom", key: before.id)
      }
      for _ in 0..<15 { _ = try registry.rotate("kingdom") }
      let error = #expect(throws: ServerError.self) { _ = try registry.rotate("kingdom") }
      #expect(error?.code == .configuration)
      try await server.stop()
    }
  }

  @Test("an admin key for an app's key is good for the players of all its keys")
  func adminKey() async throws {
    try await with { server, registry in
      let key = try #require(try registry.create("dungeon").key)
      let id = try #require(try registry.list().first?.appID)
      let data = registry.file.deletingLastPathComponent()
      let made = try AdminKeys(data: data).create("ada", scopes: [.read], appKeys: [key, "another-app-key"])
      #expect(made.key.apps == [id, AppID(ofKey: "another-app-key")])
      _ = server
    }
  }
}
#endif
