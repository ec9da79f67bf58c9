#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeSync
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeServer

/// What anybody can send to the addresses of identities.
@Suite("Identities at a server", .hangLimit) struct IdentityRouteTests {
  private let issuer = TestIssuer()

  private func with(
    clock: (@Sendable () -> Int64)? = nil, source: (any KeySource)? = nil,
    nonce: Bool = false, singleUse: Bool = false, _ body: (LiveServer) async throws -> Void
  ) async throws {
    try await TemporaryFolder.with { folder in
      var login = try issuer.configuration(in: folder)
      if source != nil { login.keys = .address(try #require(URL(string: "https://login.test/keys"))) }
      (login.requiresNonce, login.isSingleUse) = (nonce, singleUse)
      func change(_ configuration: inout ServerConfiguration) {
        configuration.identityIssuers = [login]
        if let source { configuration.keySource = source }
      }
      try await LiveServer.with(clock: clock, change: change, body)
    }
  }

  private func post(
    _ client: Client, _ token: String, to path: String = "/v1/identities", issuer: String = "login"
  ) async throws -> Client.Answer {
    try await client.call("POST", path, json: #"{"issuer": "\#(issuer)", "proof": "\#(token)", "name": "new"}"#)
  }

  @Test("of many devices that link the same identity at once, one wins, and the others are told and nothing else")
  func raced() async throws {
    try await with { server in
      var clients: [Client] = []
      for number in 0..<6 { clients.append(try await server.client.register("\(number)").0) }
      for round in 0..<5 {
        let token = try issuer.token(of: "ada \(round)")
        let answers = try await postAtOnce(clients, token)
        #expect(answers.count { $0.status == 200 } == 1)
        let others = answers.filter { $0.status == 409 && $0.code == "identity_taken" }
        #expect(others.count == 5)
        for other in others {
          #expect(Set(other.json.keys) == ["error"])
          #expect(Set((other.json["error"] as? [String: Any] ?? [:]).keys) == ["code", "message"])
        }
      }
    }
  }

  private func postAtOnce(_ clients: [Client], _ token: String) async throws -> [Client.Answer] {
    try await withThrowingTaskGroup(of: Client.Answer.self) { group in
      for client in clients { group.addTask { try await self.post(client, token) } }
      var answers: [Client.Answer] = []
      for try await answer in group { answers.append(answer) }
      return answers
    }
  }

  @Test("whoever joins gets the same device again for the same request, until another one joins")
  func repeated() async throws {
    try await with { server in
      let (phone, own) = try await server.client.register("phone")
      let token = try issuer.token(of: "ada")
      #expect(try await post(phone, token, to: "/v1/identities/join").code == "identity_unknown")
      let linked = try await post(phone, token)
      #expect(linked.status == 200 && Set(linked.json.keys) == ["createdMilliseconds", "id", "issuer"])
      #expect(try await post(phone, token).json["id"] as? String == linked.json["id"] as? String)
      #expect(try await post(phone, token, to: "/v1/identities/join").status == 400, "it is that player's")
      let (guest, _) = try await server.client.register("guest")
      let first = try await post(guest, token, to: "/v1/identities/join")
      let again = try await post(guest, try issuer.token(of: "ada"), to: "/v1/identities/join")
      #expect(first.status == 201 && first.json["device"] as? String == again.json["device"] as? String)
      #expect(first.json["container"] as? String == own.container.description)
      let joined = Client(server: server, token: try #require(first.json["token"] as? String))
      let listed = try await phone.call("GET", "/v1/devices").json["devices"] as? [[String: Any]]
      #expect(listed?.count == 2 && listed?.contains { $0["name"] as? String == "new" } == true)
      // The joined device is removed: the same request makes another one.
      let device = try #require(first.json["device"] as? String)
      #expect(try await joined.call("DELETE", "/v1/devices/\(device)").status == 204)
      let third = try await post(guest, token, to: "/v1/identities/join")
      #expect(third.status == 201 && third.json["device"] as? String != device)
    }
  }

  @Test("a removed device's token links nothing, joins nothing and gets no nonce; no token at all neither")
  func removed() async throws {
    try await with { server in
      let (phone, account) = try await server.client.register()
      try #require(try await phone.call("DELETE", "/v1/devices/\(account.device)").status == 204)
      let token = try issuer.token(of: "ada")
      for path in ["/v1/identities", "/v1/identities/join", "/v1/identities/nonce"] {
        let refused = try await post(phone, token, to: path)
        #expect(refused.status == 403 && refused.code == "retired", "\(path)")
        #expect(try await post(server.client, token, to: path).status == 401)
      }
      #expect(try await phone.call("GET", "/v1/identities").code == "retired")
      let (other, _) = try await server.client.register()
      #expect(try await post(other, token).status == 200, "nobody has it")
    }
  }

  @Test("a device that is removed while its request is on its way links, joins and removes nothing")
  func removedMeanwhile() async throws {
    try await TemporaryFolder.with { folder in
      let contents = folder.appendingPathComponent("contents")
      try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
      let storage = try SQLiteCloudStorage(database: folder.appendingPathComponent("cloud.sqlite"), contents: contents)
      var source = SystemRandomNumberGenerator()
      func device() async throws -> DeviceIdentity {
        let made = DeviceIdentity(
          device: DeviceID(using: &source), player: PlayerID(using: &source), container: ContainerID(using: &source),
          app: AppID(ofKey: "key-of-an-app"))
        try await storage.recordDevice(
          DeviceRecord(identity: made, name: "A", createdMilliseconds: 1, seenMilliseconds: 1))
        return made
      }
      let (phone, stolen) = (try await device(), try await device())
      let ada = VerifiedIdentity(id: VerifiedIdentity.id(of: "ada", at: "", named: "login"), issuer: "login")
      let eve = VerifiedIdentity(id: VerifiedIdentity.id(of: "eve", at: "", named: "login"), issuer: "login")
      _ = try await storage.link(ada, to: phone, now: 2)
      _ = try await storage.retire(stolen.device, of: stolen.container, now: 3)
      let new = NewDevice(device: DeviceID(using: &source), name: "new")
      let attempts: [() async throws -> Void] = [
        { _ = try await storage.link(eve, to: stolen, now: 4) },
        { _ = try await storage.signIn(with: ada, by: stolen, as: new, now: 4) },
        { _ = try await storage.unlink(ada.id, by: stolen) },
      ]
      for attempt in attempts {
        await #expect {
          try await attempt()
        } throws: {
          ($0 as? APIError)?.code == .retired
        }
      }
      #expect(try await storage.identities(of: stolen.container).isEmpty)
      #expect(try await storage.devices(of: phone.container).count == 1)
      try await storage.close()
    }
  }

  @Test("a token is for the issuer that was named: another game's issuer refuses it, and names its players apart")
  func otherGame() async throws {
    try await TemporaryFolder.with { folder in
      var space = try issuer.configuration(named: "space", in: folder)
      space.audiences = ["space"]
      var twin = try issuer.configuration(named: "twin", in: folder)
      twin.audiences = [TestIssuer.audience]
      let issuers = [try issuer.configuration(in: folder), space, twin]
      func change(_ configuration: inout ServerConfiguration) { configuration.identityIssuers = issuers }
      try await LiveServer.with(change: change) { server in
        let (phone, _) = try await server.client.register()
        let token = try issuer.token(of: "ada")
        #expect(try await post(phone, token).status == 200)
        let refused = try await post(phone, token, issuer: "space")
        #expect(refused.status == 403 && refused.code == "identity_refused")
        #expect(try await post(phone, token, issuer: "nobody").code == "issuer_unknown")
        // The same person at the same service, in another game.
        let (other, _) = try await server.client.register()
        #expect(try await post(other, token, issuer: "twin").status == 200)
        #expect(try await phone.call("GET", "/v1/identities").json["identities"] as? [Any] != nil)
      }
    }
  }

  @Test("bad tokens are counted for their device alone, apart from codes; what isn't tried isn't counted")
  func guesses() async throws {
    try await with { server in
      let (phone, _) = try await server.client.register()
      let good = try issuer.token(of: "ada")
      for _ in 0..<10 {
        #expect(try await post(phone, TestIssuer().token(of: "ada")).code == "identity_refused")
      }
      let stopped = try await post(phone, good)
      #expect(stopped.status == 429 && stopped.code == "too_many_guesses" && stopped.headers["retry-after"] != nil)
      // Of the same network.
      let (other, _) = try await server.client.register()
      for _ in 0..<11 {
        #expect(try await post(other, good, to: "/v1/identities/join").code == "identity_unknown")
        #expect(try await post(other, good, issuer: "nobody").code == "issuer_unknown")
      }
      #expect(try await post(other, good).status == 200)
      let wrong = try await server.client.call(
        "POST", "/v1/pairing/join", headers: ["Keepsake-App-Key": server.appKey], json: #"{"code": "22222222"}"#)
      #expect(wrong.status == 404)
    }
  }

  @Test("an oversized token is refused before anything of it is looked at, and so is an oversized body")
  func oversized() async throws {
    let source = StubKeySource(try TestIssuer.set([issuer.jwk]))
    try await with(source: source) { server in
      let (phone, _) = try await server.client.register()
      let padding = String(repeating: "a", count: 8_192)
      let large = try await post(phone, try issuer.token(of: "ada", ["padding": padding]))
      #expect(large.status == 413 && large.code == "too_large" && source.count == 0)
      let larger = try await post(phone, String(repeating: "a", count: 20_000))
      #expect(larger.status == 413 && larger.code == "too_large")
      #expect(try await post(phone, issuer.token(of: "ada")).status == 200 && source.count == 1)
    }
  }

  @Test("a flood of unknown keys has the issuer asked once a minute, and while it is down, 503 says when to come again")
  func flood() async throws {
    let (clock, source) = (IdentityClock(), StubKeySource(nil))
    try await with(clock: clock.read, source: source) { server in
      func token(_ kid: String) throws -> String {
        try issuer.token(of: "ada", at: clock.milliseconds, header: ["kid": kid])
      }
      let (phone, _) = try await server.client.register()
      for _ in 0..<12 {
        let down = try await post(phone, token("one"))
        #expect(down.status == 503 && down.code == "identity_unavailable" && down.headers["retry-after"] == "60")
      }
      #expect(source.count == 1)
      source.change(to: try TestIssuer.set([issuer.jwk]))
      clock.pass(seconds: 60)
      for number in 0..<9 { #expect(try await post(phone, token("\(number)")).code == "identity_refused") }
      #expect(try await post(phone, token("one")).status == 200 && source.count == 2)
    }
  }

  @Test("a nonce is of one device and one issuer, is used once, and expires")
  func nonces() async throws {
    let clock = IdentityClock()
    try await with(clock: clock.read, nonce: true) { server in
      let (phone, _) = try await server.client.register()
      let (other, _) = try await server.client.register()
      func nonce(_ client: Client) async throws -> String {
        let made = try await client.call("POST", "/v1/identities/nonce", json: #"{"issuer": "login"}"#)
        #expect(made.status == 201 && made.json["expiresInSeconds"] as? Int == 600)
        return try #require(made.json["nonce"] as? String)
      }
      func token(_ nonce: String, _ subject: String = "ada") throws -> String {
        try issuer.token(of: subject, at: clock.milliseconds, ["nonce": nonce])
      }
      let first = try await nonce(phone)
      let second = try await nonce(phone)
      #expect(first.count == 76 && second != first)
      #expect(try await post(other, token(first)).code == "identity_refused", "it is another device's")
      let used = try token(first)
      #expect(try await post(phone, used).status == 200)
      #expect(try await post(phone, used).status == 200, "its response may have been lost")
      // Replayed for somebody else.
      #expect(try await post(phone, token(first, "eve")).code == "identity_refused")
      let late = try await nonce(phone)
      clock.pass(seconds: 600)
      #expect(try await post(phone, token(late)).code == "identity_refused")
      var altered = Array(try await nonce(phone))
      altered[20] = altered[20] == "A" ? "B" : "A"
      #expect(try await post(phone, token(String(altered))).code == "identity_refused")
    }
  }

  @Test("a nonce stays good when the server starts again, at other servers, and while its secret is the newest but one")
  func keptNonce() async throws {
    try await TemporaryFolder.with { folder in
      var login = try issuer.configuration(in: folder)
      login.requiresNonce = true
      let data = folder.appendingPathComponent("cloud")
      func start() async throws -> LiveServer {
        try await LiveServer.start(data: data, change: { $0.identityIssuers = [login] })
      }
      let first = try await start()
      let phone = try await first.client.register().0
      let made = try await phone.call("POST", "/v1/identities/nonce", json: #"{"issuer": "login"}"#)
      let nonce = try #require(made.json["nonce"] as? String)
      try await first.stop()
      _ = try ServerSecrets(data: data).rotate(now: 5)
      let second = try await start()
      let proof = try issuer.token(of: "ada", ["nonce": nonce])
      #expect(try await post(Client(server: second, token: phone.token), proof).status == 200)
      try await second.stop()
    }
    let device = DeviceID(high: 1, low: 1)
    let keys = (1...3 as ClosedRange<UInt8>).map { Data(repeating: $0, count: 32) }
    let nonce = NonceAuthority(keys: { [keys[0]] }).nonce(for: device, issuer: "login", now: 5)
    func expiry(_ keys: [Data]) -> Int64? {
      NonceAuthority(keys: { keys }).expiry(of: nonce, for: device, issuer: "login", now: 6)
    }
    #expect(expiry([keys[0]]) == 600_005 && expiry([keys[1], keys[0]]) == 600_005)
    #expect(expiry([keys[1], keys[2]]) == nil && expiry([]) == nil)
  }

  @Test("a token for one use is refused from a second device, as long as it is valid")
  func singleUse() async throws {
    let clock = IdentityClock()
    try await with(clock: clock.read, singleUse: true) { server in
      let (phone, _) = try await server.client.register()
      let (thief, _) = try await server.client.register()
      let token = try issuer.token(of: "ada", at: clock.milliseconds)
      #expect(try await post(phone, token).status == 200)
      for path in ["/v1/identities", "/v1/identities/join"] {
        #expect(try await post(thief, token, to: path).code == "identity_refused", "\(path)")
      }
      clock.pass(seconds: 659)
      #expect(try await post(thief, token).code == "identity_refused")
      #expect(try await post(phone, token).status == 200)
    }
  }

  @Test("an export names a player's identities, and nothing shows who they are")
  func exported() async throws {
    try await with { server in
      let (phone, _) = try await server.client.register()
      #expect(try await post(phone, issuer.token(of: "ada@example.com")).status == 200)
      let export = String(decoding: try await phone.call("GET", "/v1/export").body, as: UTF8.self)
      let lines = export.split(separator: "\n").filter { $0.hasPrefix(#"{"identity""#) }
      #expect(lines.count == 1 && lines[0].contains(#""issuer":"login""#) && !export.contains("ada@example.com"))
      let (other, _) = try await server.client.register()
      let shown = try await other.call("GET", "/v1/recovery")
      #expect(shown.json["identities"] as? Int == 0)
      let id = try #require(
        (try await phone.call("GET", "/v1/identities").json["identities"] as? [[String: Any]])?.first?["id"] as? String)
      #expect(try await other.call("DELETE", "/v1/identities/\(id)").status == 404)
      #expect(try await phone.call("DELETE", "/v1/identities/xyz").status == 400)
      #expect(try await phone.call("DELETE", "/v1/identities/\(id)").status == 204)
      #expect(try await phone.call("DELETE", "/v1/identities/\(id)").status == 404)
    }
  }

  // MARK: Verifiers

  /// Knows tickets such as `ticket of ada`, and what a service does that is slow, wrong or down.
  private struct Tickets: IdentityVerifier {
    let apps = Shared<[String]>([])

    func subject(of proof: IdentityProof) async throws -> String {
      apps.value += [proof.app]
      switch String(decoding: proof.bytes, as: UTF8.self) {
      case "forged": throw IdentityFailure(.refused, "the ticket is forged")
      case "down": throw IdentityFailure(.unavailable, "the service is down")
      case "broken": throw URLError(.badServerResponse)
      case "empty": return ""
      case "slow":
        for await _ in AsyncStream<Void>.makeStream().stream {}
        return "too late"
      case let ticket: return String(ticket.dropFirst("ticket of ".count))
      }
    }
  }

  private func show(_ proof: String, _ client: Client, to path: String = "/v1/identities") async throws -> Client.Answer
  {
    try await post(client, proof, to: path, issuer: "steam")
  }

  @Test("who embeds the server passes a verifier for services that have to be asked")
  func verifiers() async throws {
    let tickets = Tickets()
    func change(_ configuration: inout ServerConfiguration) { configuration.identityVerifiers = ["steam": tickets] }
    try await LiveServer.with(change: change) { server in
      let (phone, _) = try await server.client.register()
      let forged = try await show("forged", phone)
      #expect(forged.status == 403 && "\(forged.json)".contains("the ticket is forged"))
      for proof in ["down", "broken", "empty"] {
        let failed = try await show(proof, phone)
        #expect(failed.status == 503 && failed.code == "identity_unavailable", "\(proof)")
      }
      #expect(try await show("ticket of ada", phone).status == 200)
      let (bought, _) = try await server.client.register()
      #expect(try await show("ticket of ada", bought, to: "/v1/identities/join").status == 201)
      let app = AppID(ofKey: server.appKey).bytes.map { String(format: "%02x", $0) }.joined()
      #expect(Set(tickets.apps.value) == [app])
    }
  }

  @Test("a verifier that hangs is given up, and others of its server aren't held up")
  func hangingVerifier() async throws {
    func change(_ configuration: inout ServerConfiguration) {
      (configuration.identityVerifiers, configuration.identityLimit) = (["steam": Tickets()], .milliseconds(1))
    }
    try await LiveServer.with(change: change) { server in
      let (phone, _) = try await server.client.register()
      for _ in 0..<3 {
        let slow = try await show("slow", phone)
        #expect(slow.status == 503 && slow.code == "identity_unavailable")
      }
      #expect(try await phone.call("GET", "/v1/identities").status == 200)
    }
  }
}
#endif
