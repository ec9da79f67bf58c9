#if Cloud
import Foundation
import KeepsakeReplication
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeServer

@Suite("Registering and pairing")
struct AccountTests {
  @Test("a second device joins the same player with a pairing code, which works only once")
  func pairing() async throws {
    try await LiveServer.with { server in
      let (first, account) = try await server.client.register()
      let pairing = try await first.call("POST", "/v1/pairing")
      #expect(pairing.status == 201)
      let code = try #require(pairing.json["code"] as? String)
      #expect(code.count == 8)
      #expect(pairing.json["expiresInSeconds"] as? Int == 600)
      let key = ["Keepsake-App-Key": server.appKey]
      // The code as a person might type it: in lower case, with a hyphen.
      let typed = code.prefix(4).lowercased() + "-" + code.suffix(4)
      let joined = try await server.client.call(
        "POST", "/v1/pairing/join", headers: key, json: #"{"code": "\#(typed)", "name": "Handheld"}"#)
      #expect(joined.status == 201)
      let second = try JSONDecoder().decode(Client.Account.self, from: joined.body)
      #expect(second.container == account.container)
      #expect(second.player == account.player)
      #expect(second.device != account.device)
      #expect(second.token != account.token)
      let again = try await server.client.call(
        "POST", "/v1/pairing/join", headers: key, json: #"{"code": "\#(code)", "name": "Thief"}"#)
      #expect(again.status == 404)
      #expect(again.code == "code_unknown")
    }
  }

  @Test("a pairing code expires after ten minutes")
  func oldCode() async throws {
    let now = Mutex<Int64>(1_000_000)
    let clock = Clock(now)
    let time: @Sendable () -> Int64 = { clock.now.withLock { $0 } }
    try await LiveServer.with(clock: time) { server in
      let (first, _) = try await server.client.register()
      let code = try #require(try await first.call("POST", "/v1/pairing").json["code"] as? String)
      clock.now.withLock { $0 += 600_001 }
      let late = try await server.client.call(
        "POST", "/v1/pairing/join", headers: ["Keepsake-App-Key": server.appKey], json: #"{"code": "\#(code)"}"#)
      #expect(late.code == "code_unknown")
    }
  }

  @Test("after ten wrong pairing codes even a right one is refused with Retry-After; ten minutes later one works again")
  func guesses() async throws {
    let now = Mutex<Int64>(1_000_000)
    let clock = Clock(now)
    let time: @Sendable () -> Int64 = { clock.now.withLock { $0 } }
    try await LiveServer.with(clock: time) { server in
      let key = ["Keepsake-App-Key": server.appKey]
      for _ in 0..<10 {
        let wrong = try await server.client.call(
          "POST", "/v1/pairing/join", headers: key, json: #"{"code": "22222222"}"#)
        #expect(wrong.status == 404)
      }
      let (first, _) = try await server.client.register()
      let code = try #require(try await first.call("POST", "/v1/pairing").json["code"] as? String)
      let stopped = try await server.client.call(
        "POST", "/v1/pairing/join", headers: key, json: #"{"code": "\#(code)"}"#)
      #expect(stopped.status == 429)
      #expect(stopped.code == "too_many_guesses")
      #expect(try #require(stopped.headers["retry-after"].flatMap { Int($0) }) > 0)
      clock.now.withLock { $0 += 600_000 }
      let fresh = try #require(try await first.call("POST", "/v1/pairing").json["code"] as? String)
      let later = try await server.client.call(
        "POST", "/v1/pairing/join", headers: key, json: #"{"code": "\#(fresh)"}"#)
      #expect(later.status == 201)
    }
  }

  @Test("a player's new pairing code replaces the previous one")
  func replacedCode() async throws {
    try await LiveServer.with { server in
      let (first, _) = try await server.client.register()
      let old = try #require(try await first.call("POST", "/v1/pairing").json["code"] as? String)
      let new = try #require(try await first.call("POST", "/v1/pairing").json["code"] as? String)
      let key = ["Keepsake-App-Key": server.appKey]
      #expect(
        try await server.client.call("POST", "/v1/pairing/join", headers: key, json: #"{"code": "\#(old)"}"#).status
          == 404)
      #expect(
        try await server.client.call("POST", "/v1/pairing/join", headers: key, json: #"{"code": "\#(new)"}"#).status
          == 201)
    }
  }

  @Test("a pairing code of one app isn't valid for another app")
  func otherApp() async throws {
    try await LiveServer.with(appKeys: ["first-app-key", "second-app-key"]) { server in
      let (first, _) = try await server.client.register()
      let code = try #require(try await first.call("POST", "/v1/pairing").json["code"] as? String)
      let other = try await server.client.call(
        "POST", "/v1/pairing/join", headers: ["Keepsake-App-Key": "second-app-key"], json: #"{"code": "\#(code)"}"#)
      #expect(other.code == "code_unknown")
    }
  }

  @Test(
    "registering with a name that has a NUL, is too long or of the wrong type, or with malformed JSON, returns 400",
    arguments: [
      #"{"name": "a\u0000b"}"#, #"{"name": "LONG"}"#, #"{"name": 5}"#, #"{"name": "#, "",
      "[]", "\u{FEFF}", "DEEP", #"{"name": "\ud800"}"#,
    ])
  func badNames(body: String) async throws {
    try await LiveServer.with { server in
      let answer = try await server.client.call(
        "POST", "/v1/devices", headers: ["Keepsake-App-Key": server.appKey],
        json: body.replacing("LONG", with: String(repeating: "n", count: 201))
          .replacing("DEEP", with: String(repeating: "[", count: 10_000)))
      #expect(answer.status == 400)
      #expect(answer.code == "bad_json" || answer.code == "bad_request")
    }
  }

  @Test("registering without the app's key, or with a wrong one, is refused")
  func appKeys() async throws {
    try await LiveServer.with { server in
      let none = try await server.client.call("POST", "/v1/devices", json: "{}")
      #expect(none.status == 401)
      let wrong = try await server.client.call("POST", "/v1/devices", headers: ["Keepsake-App-Key": "x"], json: "{}")
      #expect(wrong.status == 403)
      #expect(wrong.code == "bad_app_key")
    }
  }

  @Test("a token that was altered, truncated or signed with another secret is refused with status 401")
  func tokens() async throws {
    try await LiveServer.with { server in
      let (client, account) = try await server.client.register()
      var tokens = ["", "x", String(account.token.dropLast()), account.token + "A", String(account.token.reversed())]
      for index in stride(from: 0, to: account.token.count, by: 9) {
        var changed = Array(account.token)
        changed[index] = changed[index] == "A" ? "B" : "A"
        tokens.append(String(changed))
      }
      let other = TokenSigner(secrets: [.init(createdMilliseconds: 0, bytes: Data(repeating: 7, count: 32))])
      var source = SystemRandomNumberGenerator()
      tokens.append(
        other.token(
          for: DeviceIdentity(
            device: account.device, player: PlayerID(using: &source), container: account.container,
            app: AppID(ofKey: server.appKey)), now: ServerConfiguration.systemClock()))
      for token in tokens {
        let answer = try await Client(server: server, token: token).call("POST", "/v1/pairing")
        #expect(answer.status == 401, "\(token)")
      }
      #expect(try await client.call("POST", "/v1/pairing").status == 201)
      #expect(try await server.client.call("POST", "/v1/pairing").code == "unauthorized")
    }
  }

  @Test("the app key and a device's token remain valid when the server restarts without its database")
  func restored() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder)
      let key = server.appKey
      let (_, account) = try await server.client.register()
      try await server.stop()
      for name in ["cloud.sqlite", "cloud.sqlite-wal", "cloud.sqlite-shm"] {
        let file = folder.appendingPathComponent(name)
        if FileManager.default.fileExists(atPath: file.path) { try FileManager.default.removeItem(at: file) }
      }
      let restored = try await LiveServer.start(data: folder)
      #expect(restored.appKey == key)
      let answer = try await Client(server: restored, token: account.token).call("POST", "/v1/pairing")
      #expect(answer.status == 201)
      try await restored.stop()
    }
  }

  private final class Clock: Sendable {
    let now: Mutex<Int64>
    init(_ now: consuming Mutex<Int64>) { self.now = now }
  }
}
#endif
