#if Cloud
import Foundation
import KeepsakeReplication
import Logging
import NIOCore
import TestSupport
import Testing

@testable import KeepsakeServer

/// How fast clients may use a running server, by a clock that the test advances.
@Suite("Rates of a running server", .hangLimit)
struct RateTests {
  private let now = Shared<Int64>(1_000_000)

  private func with(
    _ change: (inout ServerConfiguration) -> Void, _ body: (LiveServer) async throws -> Void
  ) async throws {
    try await LiveServer.with(clock: { [now] in now.value }, change: change, body)
  }

  private func advance(seconds: Int64) { now.value += seconds * 1_000 }

  private func register(_ server: LiveServer, as address: String? = nil) async throws -> Client.Answer {
    var headers = ["Keepsake-App-Key": server.appKey]
    headers["X-Forwarded-For"] = address
    return try await server.client.call("POST", "/v1/devices", headers: headers, json: #"{"name":"A"}"#)
  }

  private func exchange(_ client: Client, _ request: ExchangeRequest) async throws -> Client.Answer {
    try await client.call("POST", "/v1/exchange", body: JSONEncoder().encode(request))
  }

  private func versions(_ count: Int, covers: Int, from first: Int = 0) -> [VersionRecord] {
    (first..<(first + count)).map { number in
      VersionRecord(
        id: VersionID(high: 1, low: UInt64(number)), slot: "main",
        covers: (0..<covers).map { VersionID(high: 2 + UInt64(number), low: UInt64($0)) }, contents: [], length: 0,
        savedAtMilliseconds: 0, writer: WriterID(1), provisional: false)
    }
  }

  @Test("registrations of one address are limited and others' aren't, with a Retry-After that holds")
  func registrations() async throws {
    try await with {
      $0.trustedProxies = [AddressRange("127.0.0.0/8")].compactMap { $0 }
      $0.rates.registrations = BucketRate(burst: 3, perSecond: 0.1)
    } _: { (server: LiveServer) async throws in
      for _ in 0..<3 { #expect(try await register(server, as: "203.0.113.5").status == 201) }
      let refused = try await register(server, as: "203.0.113.5")
      #expect(refused.status == 429 && refused.code == "too_many_requests", "\(refused.json)")
      #expect(refused.headers["retry-after"] == "10")
      #expect(try await register(server, as: "203.0.113.6").status == 201)
      // The whole network of an IPv6 customer counts as one address.
      for host in 1...3 { #expect(try await register(server, as: "2001:db8:0:7::\(host)").status == 201) }
      #expect(try await register(server, as: "2001:db8:0:7::4").status == 429)
      #expect(try await register(server, as: "2001:db8:0:8::1").status == 201)
      advance(seconds: 9)
      #expect(try await register(server, as: "203.0.113.5").status == 429)
      advance(seconds: 1)
      #expect(try await register(server, as: "203.0.113.5").status == 201)
      #expect(server.running.gate.refusals.counts[.registrationRate] == 3)
    }
  }

  @Test("registrations of one app are limited together, wherever they come from")
  func appRegistrations() async throws {
    try await with {
      $0.trustedProxies = [AddressRange("127.0.0.0/8")].compactMap { $0 }
      $0.rates.appRegistrations = BucketRate(burst: 4, perSecond: 1)
    } _: { (server: LiveServer) async throws in
      for host in 1...4 { #expect(try await register(server, as: "203.0.113.\(host)").status == 201) }
      #expect(try await register(server, as: "203.0.113.9").status == 429)
      advance(seconds: 1)
      #expect(try await register(server, as: "203.0.113.9").status == 201)
    }
  }

  @Test("X-Forwarded-For of somebody who isn't a trusted proxy changes nothing")
  func untrusted() async throws {
    try await with {
      $0.rates.registrations = BucketRate(burst: 2, perSecond: 1)
    } _: { (server: LiveServer) async throws in
      for host in 1...2 { #expect(try await register(server, as: "203.0.113.\(host)").status == 201) }
      #expect(try await register(server, as: "203.0.113.3").status == 429)
    }
  }

  @Test("behind a trusted proxy, wrong pairing codes stop only the address that sent them")
  func guesses() async throws {
    try await with {
      $0.trustedProxies = [AddressRange("127.0.0.1")].compactMap { $0 }
    } _: { (server: LiveServer) async throws in
      func guess(_ code: String, from address: String) async throws -> Client.Answer {
        try await server.client.call(
          "POST", "/v1/pairing/join",
          headers: ["Keepsake-App-Key": server.appKey, "X-Forwarded-For": "198.51.100.7, \(address)"],
          json: #"{"code":"\#(code)","name":"B"}"#)
      }
      for _ in 0..<ServerLimits.guessesPerPeer {
        #expect(try await guess("ABCD2345", from: "203.0.113.5").status == 404)
      }
      #expect(try await guess("ABCD2345", from: "203.0.113.5").code == "too_many_guesses")
      let (client, _) = try await server.client.register()
      let code = try #require(try await client.call("POST", "/v1/pairing").json["code"] as? String)
      #expect(try await guess(code, from: "203.0.113.6").status == 201)
    }
  }

  @Test("behind a proxy that speaks the PROXY protocol, its header says who a client is, and must be there")
  func proxyProtocol() async throws {
    try await with {
      $0.trustedProxies = [AddressRange("127.0.0.0/8")].compactMap { $0 }
      $0.expectsProxyProtocol = true
      $0.rates.registrations = BucketRate(burst: 1, perSecond: 1)
    } _: { (server: LiveServer) async throws in
      func register(_ header: String) async throws -> String {
        let connection = try RawConnection(port: server.running.port)
        for part in header { await connection.send(String(part)) }
        await connection.send(
          """
          POST /v1/devices HTTP/1.1\r\nHost: x\r\nKeepsake-App-Key: \(server.appKey)\r\nConnection: close\r\n\
          Content-Length: 2\r\n\r\n{}
          """)
        return String(await connection.read(until: "(nothing more)").prefix(12))
      }
      #expect(try await register("PROXY TCP4 203.0.113.5 10.0.0.1 5000 443\r\n") == "HTTP/1.1 201")
      #expect(try await register("PROXY TCP4 203.0.113.5 10.0.0.1 5001 443\r\n") == "HTTP/1.1 429")
      #expect(try await register("PROXY TCP4 203.0.113.6 10.0.0.1 5000 443\r\n") == "HTTP/1.1 201")
      #expect(try await register("") == "")
      #expect(server.running.gate.refusals.counts[.proxyHeader] == 1)
    }
  }

  @Test("a device that sends too many requests has to wait, and no other device of another player does")
  func devices() async throws {
    try await with {
      $0.rates.device = BucketRate(burst: 5, perSecond: 1)
    } _: { (server: LiveServer) async throws in
      let (one, _) = try await server.client.register()
      let (other, _) = try await server.client.register()
      for _ in 0..<5 { #expect(try await one.call("GET", "/v1/devices").status == 200) }
      let refused = try await one.call("GET", "/v1/devices")
      #expect(refused.status == 429 && refused.headers["retry-after"] == "1", "\(refused.json)")
      #expect(refused.headers["keepsake-protocol"] == "1")
      #expect(try await other.call("GET", "/v1/devices").status == 200)
      advance(seconds: 2)
      #expect(try await one.call("GET", "/v1/devices").status == 200)
    }
  }

  @Test("addresses are limited before anything is known of a request, and those of this machine aren't")
  func addresses() async throws {
    try await with {
      $0.trustedProxies = [AddressRange("127.0.0.0/8")].compactMap { $0 }
      $0.rates.address = BucketRate(burst: 3, perSecond: 1)
    } _: { (server: LiveServer) async throws in
      let from = ["X-Forwarded-For": "203.0.113.5"]
      for _ in 0..<3 { #expect(try await server.client.call("GET", "/v1/nowhere", headers: from).status == 404) }
      #expect(try await server.client.call("GET", "/v1/nowhere", headers: from).status == 429)
      for _ in 0..<10 { #expect(try await server.client.call("GET", "/v1/nowhere").status == 404) }
    }
  }

  @Test("a request with more work than any may have is refused with the limit, and nothing of it is read or written")
  func tooMuchWork() async throws {
    try await with { _ in
    } _: { (server: LiveServer) async throws in
      let (client, account) = try await server.client.register()
      let answer = try await exchange(
        client, ExchangeRequest(cursor: .start, versions: versions(3, covers: 25_000), limit: 1))
      #expect(answer.status == 413 && answer.code == "too_much_work", "\(answer.json)")
      let error = answer.json["error"] as? [String: Any]
      #expect(error?["limit"] as? Int == ExchangeRules.maximumRequestCovers && error?["found"] as? Int == 75_000)
      #expect(server.running.gate.refusals.counts[.tooMuchWork] == 1)
      let after = try await exchange(client, ExchangeRequest(cursor: .start, limit: 1))
      #expect((after.json["cursor"] as? [String: Any])?["seq"] as? Int == 0, "\(account.device)")
      // A device then sends less at a time.
      let single = try await exchange(
        client, ExchangeRequest(cursor: .start, versions: versions(1, covers: 6_000), limit: 1))
      #expect(single.status == 200, "\(single.json)")
    }
  }

  @Test("a player's work beyond the burst is accepted, and paid off before more is; reading goes on meanwhile")
  func work() async throws {
    try await with {
      $0.rates.playerWork = BucketRate(burst: 100, perSecond: 10)
    } _: { (server: LiveServer) async throws in
      let (client, _) = try await server.client.register()
      let (other, _) = try await server.client.register()
      let many = ExchangeRequest(cursor: .start, versions: versions(1, covers: 296), limit: 1)
      #expect(try await exchange(client, many).status == 200)
      let refused = try await exchange(client, many)
      // Then its bytes can be paid, and that is all that is known of it so far.
      #expect(refused.status == 429 && refused.headers["retry-after"] == "21", "\(refused.json)")
      #expect(try await exchange(client, ExchangeRequest(cursor: .start, limit: 1)).status == 200)
      #expect(try await exchange(other, many).status == 200)
      advance(seconds: 30)
      #expect(try await exchange(client, many).status == 200)
    }
  }

  /// Sends a body that is no JSON, with so many values and spaces.
  private func send(values: Int, spaces: Int, to client: Client) async throws -> Client.Answer {
    let body = "[" + String(repeating: "0,", count: values) + String(repeating: " ", count: spaces)
    return try await client.call("POST", "/v1/exchange", json: body)
  }

  @Test("a body is paid for before it arrives, and its values before they are decoded")
  func payingAhead() async throws {
    try await with {
      $0.rates.playerWork = BucketRate(burst: 100, perSecond: 10)
    } _: { (server: LiveServer) async throws in
      let memory = server.running.gate.memory
      let (client, _) = try await server.client.register()
      // 256 units in bytes, of which 156 are missing afterwards.
      #expect(try await send(values: 1, spaces: 1 << 20, to: client).code == "bad_json")
      let received = memory.files.use.most
      #expect(received > 1 << 20)
      let refused = try await send(values: 1, spaces: 2 << 20, to: client)
      #expect(refused.status == 429 && refused.headers["retry-after"] == "26", "\(refused.json)")
      #expect(memory.files.use.most == received, "nothing of it was stored")
      // 1,000 units in values.
      let (other, _) = try await server.client.register()
      #expect(try await send(values: 16_000, spaces: 0, to: other).code == "bad_json")
      let decoded = memory.decoding.use.most
      // 50 are there: enough for the bytes.
      advance(seconds: 95)
      #expect(try await send(values: 32_000, spaces: 0, to: other).status == 429)
      #expect(memory.decoding.use.most == decoded, "it wasn't decoded")
      advance(seconds: 100)
      #expect(try await send(values: 16_000, spaces: 0, to: other).code == "bad_json")
      #expect(server.running.gate.refusals.counts[.workRate] == 2)
    }
  }

  @Test("decoding many values takes a turn, which costs nothing if it isn't there, and ends when the body is no JSON")
  func decodingTurn() async throws {
    try await with {
      $0.rates.playerWork = BucketRate(burst: 10_000, perSecond: 1)
    } _: { (server: LiveServer) async throws in
      let turns = server.running.gate.heavyTurns
      let (client, _) = try await server.client.register()
      let many = (ServerLimits.lightWork + 1) * ServerLimits.tokensPerWork
      #expect(turns.begin() == nil)
      for _ in 0..<4 {
        let refused = try await send(values: many, spaces: 0, to: client)
        #expect(refused.status == 503 && refused.headers["retry-after"] == "1", "\(refused.json)")
      }
      // Fewer don't wait.
      #expect(try await send(values: many / 2, spaces: 0, to: client).code == "bad_json")
      turns.end()
      #expect(try await send(values: many, spaces: 0, to: client).code == "bad_json")
      #expect(turns.begin() == nil, "the turn has ended, in no time by this clock")
      #expect(server.running.gate.refusals.counts == [.heavyQueue: 4])
    }
  }

  @Test("a body that is as large as it may be is no turn's work, however long it takes to arrive")
  func bytesAreLight() {
    #expect(ServerLimits.exchangeBytes / ServerLimits.bytesPerWork <= ServerLimits.lightWork)
  }

  @Test("requests with much work take turns, with pauses that leave most of the time to others")
  func heavyTurns() {
    let turns = HeavyTurns(clock: { [now] in now.value })
    #expect(turns.begin() == nil)
    #expect(turns.begin() == 1)
    advance(seconds: 1)
    turns.end()
    #expect(turns.begin() == 19)
    advance(seconds: 18)
    #expect(turns.begin() == 1)
    advance(seconds: 1)
    #expect(turns.begin() == nil)
    // A long one pauses the next for half a minute at most.
    advance(seconds: 60)
    turns.end()
    #expect(turns.begin() == 30)
    // A clock that was set back by an hour doesn't make it an hour.
    advance(seconds: -3_600)
    #expect(turns.begin() == nil)
  }

  @Test("each kind of refusal is counted, measured and logged, with the address that it concerns")
  func log() {
    let (lines, registry) = (Shared<[Logger.Metadata]>([]), PrometheusRegistry())
    let refusals = RefusalLog(
      metrics: ServerMetrics(registry), logger: Logger(label: "test") { _ in LineRecorder(lines: lines) },
      clock: { [now] in now.value })
    for _ in 0..<100 { refusals.count(.slowBody) }
    refusals.count(.connection, from: PeerAddress("203.0.113.5"))
    let kinds = lines.value.map { $0["kind"] }
    #expect(kinds == Array(repeating: "slow_body", count: RefusalLog.linesPerWindow) + ["connection"])
    #expect(lines.value.last?["peer"] == "203.0.113.5")
    #expect(refusals.counts == [.slowBody: 100, .connection: 1])
    #expect(registry.text().contains("keepsake_limited_total{kind=\"slow_body\"} 100"))
  }
}

private struct LineRecorder: LogHandler {
  let lines: Shared<[Logger.Metadata]>
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.trace

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) { lines.value += [event.metadata ?? [:]] }
}
#endif
