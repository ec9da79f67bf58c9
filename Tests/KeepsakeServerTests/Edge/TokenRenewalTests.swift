#if Cloud
import Foundation
import KeepsakeReplication
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeServer
@testable import KeepsakeSync

@Suite("Tokens that are renewed, and keys that are revoked, on a running server")
struct TokenRenewalTests {
  private static let bareExchange = #"{"protocolVersion":1,"cursor":{"epoch":0,"seq":0,"mark":0},"limit":100}"#
  private static let day: Int64 = 86_400_000

  private final class Clock: Sendable {
    private let now = Mutex<Int64>(1_700_000_000_000)
    var read: @Sendable () -> Int64 { { self.now.withLock { $0 } } }
    func pass(days: Int64) { now.withLock { $0 += days * TokenRenewalTests.day } }
  }

  private func exchange(_ client: Client) async throws -> Client.Answer {
    try await client.call("POST", "/v1/exchange", json: Self.bareExchange)
  }

  private func renew(_ client: Client, appKey: String? = nil) async throws -> Client.Answer {
    try await client.call("POST", "/v1/token", headers: ["Keepsake-App-Key": appKey ?? client.appKey])
  }

  @Test("an exchange brings a new token after half of the lifetime, and the old one stays valid until it expires")
  func byUse() async throws {
    let clock = Clock()
    try await LiveServer.with(clock: clock.read) { server in
      var (client, _) = try await server.client.register()
      let old = client
      #expect(try await exchange(client).headers["keepsake-token"] == nil)
      clock.pass(days: 201)
      let due = try await exchange(client)
      #expect(due.status == 200)
      client.token = try #require(due.headers["keepsake-token"] as String?) as String
      #expect(try await exchange(client).headers["keepsake-token"] == nil)
      #expect(try await exchange(old).status == 200, "the response with the new token may have been lost")
      clock.pass(days: 200)
      for (method, path) in [("POST", "/v1/exchange"), ("GET", "/v1/devices"), ("GET", "/v1/events/next")] {
        let body = method == "GET" ? nil : Data(Self.bareExchange.utf8)
        let refused = try await old.call(method, path, body: body)
        #expect(refused.status == 401 && refused.code == "token_expired", "\(path): \(refused.json)")
      }
      #expect(try await exchange(client).status == 200)
      let copy = try await renew(old)
      #expect(copy.status == 401 && copy.code == "token_superseded", "a copy of an old token comes back to life")
    }
  }

  @Test("a device that was away for years gets a new token for its old one, also if the first response is lost")
  func afterYears() async throws {
    let clock = Clock()
    try await LiveServer.with(clock: clock.read) { server in
      var (client, _) = try await server.client.register()
      clock.pass(days: 2_000)
      #expect(try await exchange(client).code == "token_expired")
      #expect(try await client.call("POST", "/v1/token").status == 401, "the app key is missing")
      _ = try await renew(client)
      let answer = try await renew(client)
      #expect(answer.status == 200, "\(answer.json)")
      client.token = try #require(answer.json["token"] as? String)
      #expect(try await exchange(client).status == 200)
    }
  }

  @Test("a removed device gets no new token")
  func removed() async throws {
    let clock = Clock()
    try await LiveServer.with(clock: clock.read) { server in
      let (client, account) = try await server.client.register()
      #expect(try await client.call("DELETE", "/v1/devices/\(account.device)").status == 204)
      clock.pass(days: 500)
      let answer = try await renew(client)
      #expect(answer.status == 403 && answer.code == "retired", "\(answer.json)")
    }
  }

  /// Stored credentials of a device.
  private final class Keeper: Sendable {
    private let held: Mutex<CloudCredentials>
    init(_ credentials: CloudCredentials) { held = Mutex(credentials) }
    var credentials: CloudCredentials { held.withLock { $0 } }
    func transport(appKey: String) -> HTTPTransport {
      HTTPTransport(
        credentials,
        renewal: CredentialsRenewal(appKey: appKey) { new, old in
          self.held.withLock { if $0.token == old { $0 = new } }
        })
    }
  }

  @Test("the client stores a new token and uses it, and comes back by itself with one that has expired")
  func client() async throws {
    let clock = Clock()
    try await LiveServer.with(clock: clock.read) { server in
      let account = HTTPAccount(url: server.url, appKey: server.appKey)
      let keeper = Keeper(try await account.register(name: "First"))
      let first = keeper.credentials.token
      let transport = keeper.transport(appKey: server.appKey)
      let request = ExchangeRequest(cursor: .start, limit: 10)
      _ = try await transport.exchange(request)
      #expect(keeper.credentials.token == first)
      clock.pass(days: 300)
      _ = try await transport.exchange(request)
      let second = keeper.credentials.token
      #expect(second != first)
      clock.pass(days: 300)
      _ = try await transport.exchange(request)
      let third = keeper.credentials.token
      #expect(third != second)
      clock.pass(days: 3_000)
      // Also a request other than an exchange.
      var source = SystemRandomNumberGenerator()
      #expect(try await transport.devices(having: [VersionID(using: &source)]) != nil)
      #expect(keeper.credentials.token != third)
      _ = try await keeper.transport(appKey: server.appKey).exchange(request)
    }
  }

  @Test("a client that can't store a new token goes on with the old one")
  func unkept() async throws {
    let clock = Clock()
    try await LiveServer.with(clock: clock.read) { server in
      let account = HTTPAccount(url: server.url, appKey: server.appKey)
      let renewal = CredentialsRenewal(appKey: server.appKey) { _, _ in throw CocoaError(.fileWriteOutOfSpace) }
      let transport = HTTPTransport(try await account.register(name: "First"), renewal: renewal)
      clock.pass(days: 300)
      for _ in 0..<2 { _ = try await transport.exchange(ExchangeRequest(cursor: .start, limit: 10)) }
      clock.pass(days: 300)
      await #expect(throws: TransportFailure.self) {
        try await transport.exchange(ExchangeRequest(cursor: .start, limit: 10))
      }
    }
  }

  @Test("removing an app key from its file revokes its devices' tokens at once, and a current key brings them back")
  func revokedKey() async throws {
    try await TemporaryFolder.with { folder in
      let keys = folder.appendingPathComponent("keys")
      try Data("# of release 1\nfirst-app-key\n\nsecond-app-key\n".utf8).write(to: keys)
      let server = try await LiveServer.start(
        data: folder.appendingPathComponent("data"),
        change: {
          $0.appKeysFile = keys
          $0.heartbeatSeconds = 1
        })
      let base = Client(url: server.url, appKey: "first-app-key")
      var (client, _) = try await base.register()
      #expect(try await exchange(client).status == 200)
      let early = try await renew(client, appKey: "second-app-key")
      #expect(early.status == 403, "a device moves to another app although its own key is accepted")

      let stream = try RawConnection(port: server.running.port)
      await stream.send(
        "GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(client.token ?? "")\r\n\r\n")
      #expect(await stream.read(until: "data: ").hasPrefix("HTTP/1.1 200"))

      try Data("second-app-key\n".utf8).write(to: keys, options: .atomic)
      for (method, path) in [("POST", "/v1/exchange"), ("POST", "/v1/pairing"), ("POST", "/v1/wallet/leave")] {
        let refused = try await client.call(method, path, json: Self.bareExchange)
        #expect(refused.status == 401 && refused.code == "app_revoked", "\(path): \(refused.json)")
      }
      // Its stream ends, though nothing happens that it could tell.
      let rest = await stream.read(until: "0\r\n\r\n")
      #expect(rest.hasSuffix("0\r\n\r\n"), "\(rest)")
      #expect(try await renew(client).code == "bad_app_key")
      let back = try await renew(client, appKey: "second-app-key")
      client.token = try #require(back.json["token"] as? String)
      #expect(try await exchange(client).status == 200)

      // A file without any key is a mistake, and must not lock every player out.
      try Data("# none\n".utf8).write(to: keys, options: .atomic)
      #expect(try await exchange(client).status == 200)
      try await server.stop()
    }
  }

  @Test("the secret is rotated while the server runs: tokens stay valid, are renewed, and end when it is forgotten")
  func rotation() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder)
      var (client, _) = try await server.client.register()
      let secrets = try ServerSecrets(data: folder)
      #expect(try secrets.rotate(now: 1) == 2)
      let first = client
      let answer = try await exchange(client)
      #expect(answer.status == 200)
      client.token = try #require(answer.headers["keepsake-token"] as String?) as String
      #expect(try await exchange(client).headers["keepsake-token"] == nil)
      #expect(try secrets.rotate(now: 2) == 3)
      #expect(try await exchange(first).code == "token_expired")
      #expect(try await exchange(client).status == 200)
      #expect(try secrets.forgetEarlier() == 2)
      #expect(try await exchange(client).code == "unauthorized")
      let (other, _) = try await server.client.register("B")
      try await server.stop()
      let again = try await LiveServer.start(data: folder)
      #expect(try await exchange(Client(server: again, token: other.token)).status == 200)
      try await again.stop()
    }
  }

  @Test("a data folder of a release without ages keeps its secret and its devices")
  func olderFolder() async throws {
    try await TemporaryFolder.with { folder in
      let bytes = Data(repeating: 9, count: 32)
      try bytes.write(to: folder.appendingPathComponent("secret"))
      let server = try await LiveServer.start(data: folder)
      try await server.stop()
      let secrets = try ServerSecrets(data: folder).read()
      #expect(secrets.map(\.bytes) == [bytes])
      #expect(secrets[0].createdMilliseconds > 0)
    }
  }

  @Test("a damaged secret is refused at the start, and doesn't end a server that runs")
  func damaged() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder)
      let (client, _) = try await server.client.register()
      for text in ["", "keepsake-secrets 1\n", "keepsake-secrets 1\n1 00\n", "keepsake-secrets 2\n1 00\n"] {
        try Data(text.utf8).write(to: folder.appendingPathComponent("secret"), options: .atomic)
        #expect(try await exchange(client).status == 200)
        #expect(throws: ServerError.self) { try ServerSecrets(data: folder).prepare(now: 0) }
      }
      try await server.stop()
      await #expect(throws: ServerError.self) { try await LiveServer.start(data: folder) }
    }
  }
}
#endif
