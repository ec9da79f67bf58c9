import Foundation
import KeepsakeReplication
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeSync

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("How a device handles HTTP responses")
struct HTTPTransportTests {
  private static let goodAnswer = ExchangeResponse(
    outcome: nil, changes: [], contents: [], wallet: nil, cursor: Cursor(epoch: 1, seq: 2, mark: 3), more: false,
    serverTimeMilliseconds: 7)
  private static let request = ExchangeRequest(cursor: .start, limit: 10)

  init() { SyncLimits.waitLonger() }

  private func credentials(_ url: URL) -> CloudCredentials {
    CloudCredentials(
      url: url, device: DeviceID(high: 1, low: 1), player: PlayerID(high: 1, low: 1),
      container: ContainerID(high: 1, low: 1), token: "token")
  }

  private func transport(_ server: CannedServer, _ carrier: HTTPCarrier) -> HTTPTransport {
    transport(server.url, carrier)
  }

  private func transport(_ url: URL, _ carrier: HTTPCarrier, eventIdleSeconds: Double = 600) -> HTTPTransport {
    HTTPTransport(credentials(url), eventIdleSeconds: eventIdleSeconds, carrier: carrier)
  }

  private static func goodJSON() throws -> String {
    String(decoding: try JSONEncoder().encode(goodAnswer), as: UTF8.self)
  }

  private func failure(of reply: CannedServer.Reply, _ carrier: HTTPCarrier) async throws -> TransportFailure {
    let server = try CannedServer { _, _ in reply }
    defer { server.stop() }
    do {
      _ = try await transport(server, carrier).exchange(Self.request)
    } catch {
      return error
    }
    Issue.record("no failure for \(reply)")
    return TransportFailure(.rejected, "")
  }

  @Test("a response is received as it was sent, and the request carries the token", arguments: HTTPCarrier.allCases)
  func goodAnswer(_ carrier: HTTPCarrier) async throws {
    let json = try Self.goodJSON()
    let server = try CannedServer { _, _ in .http("200 OK", body: json) }
    defer { server.stop() }
    #expect(try await transport(server, carrier).exchange(Self.request) == Self.goodAnswer)
    let head = try #require(server.requests.first).lowercased()
    #expect(head.hasPrefix("post /v1/exchange "))
    #expect(head.contains("authorization: bearer token"))
    #expect(!head.contains("gzip"))
  }

  @Test(
    "each error status becomes the right kind of failure, with a limited `Retry-After`", arguments: HTTPCarrier.allCases
  )
  func statuses(_ carrier: HTTPCarrier) async throws {
    let error = #"{"error":{"code":"busy","message":"Later, please."}}"#
    let mark = "Keepsake-Protocol: 1"
    #expect(try await failure(of: .http("401 X", body: error), carrier).kind == .unauthorized)
    #expect(try await failure(of: .http("403 X", body: error), carrier).kind == .unauthorized)
    #expect(try await failure(of: .http("400 X", body: error), carrier).kind == .rejected)
    #expect(try await failure(of: .http("413 X", body: error), carrier).kind == .rejected)
    #expect(try await failure(of: .http("404 X", body: error), carrier).kind == .rejected)
    #expect(try await failure(of: .http("408 X", body: error), carrier).kind == .interrupted)
    #expect(try await failure(of: .http("500 X", body: error), carrier).kind == .server(retryAfterMilliseconds: nil))
    let busy = try await failure(of: .http("503 X", [mark, "Retry-After: 7"], body: error), carrier)
    #expect(busy.kind == .server(retryAfterMilliseconds: 7000))
    #expect(busy.message.contains("Later, please."))
    #expect(
      try await failure(of: .http("429 X", [mark, "Retry-After: 7"]), carrier).kind
        == .server(retryAfterMilliseconds: 7000))
    #expect(try await failure(of: .http("429 X", [mark]), carrier).kind == .server(retryAfterMilliseconds: nil))
    for text in ["-1", "soon", "99999999999999999999", "Wed, 21 Oct 2099 07:28:00 GMT"] {
      #expect(
        try await failure(of: .http("503 X", [mark, "Retry-After: \(text)"]), carrier).kind
          == .server(retryAfterMilliseconds: 60_000))
    }
    #expect(
      try await failure(of: .http("503 X", [mark, "Retry-After: 9000000000000000000"]), carrier).kind
        == .server(retryAfterMilliseconds: 3_600_000))
  }

  @Test(
    "a full disk of the server, an exceeded quota with its numbers, and too large a content are different failures",
    arguments: HTTPCarrier.allCases)
  func storage(_ carrier: HTTPCarrier) async throws {
    let mark = "Keepsake-Protocol: 1"
    let full = #"{"error":{"code":"storage_full","message":"Full."}}"#
    let disk = try await failure(of: .http("507 X", [mark, "Retry-After: 60"], body: full), carrier)
    #expect(disk.kind == .server(retryAfterMilliseconds: 60_000) && disk.quota == nil)
    let quota = #"{"error":{"code":"quota","message":"No room.","limit":1000,"used":990,"needed":20}}"#
    let refused = try await failure(of: .http("413 X", body: quota), carrier)
    #expect(refused.kind == .rejected && refused.quota == QuotaShortage(limit: 1000, used: 990, needed: 20))
    #expect(refused.message.contains("No room."))
    for body in [
      #"{"error":{"code":"too_large","message":"m"}}"#,
      #"{"error":{"code":"too_large","message":"m","limit":1,"used":1,"needed":1}}"#,
      #"{"error":{"code":"quota","message":"m"}}"#,
      #"{"error":{"code":"quota","message":"m","limit":1000,"used":990}}"#,
      #"{"error":{"code":"quota","message":"m","limit":"much","used":990,"needed":20}}"#,
    ] {
      let large = try await failure(of: .http("413 X", body: body), carrier)
      #expect(large.kind == .rejected && large.quota == nil, "\(body)")
    }
    // A proxy's own limit says nothing about the player's quota.
    #expect(try await failure(of: .http("413 X", [], body: quota), carrier).kind == .interrupted)
  }

  @Test(
    "an upload fails with the right kind of failure, whatever the server says about its parts, and never loops",
    arguments: HTTPCarrier.allCases)
  func hostileParts(_ carrier: HTTPCarrier) async throws {
    let content = EncodedContent(
      hash: ContentHash(of: Data()), length: 1, base: nil, bytes: Data(repeating: 7, count: 3_000_000))
    let replies: [(String, String, TransportFailure.Kind)] = [
      ("202 X", #"{"received":0}"#, .interrupted), ("202 X", #"{"received":5}"#, .interrupted),
      ("202 X", #"{"received":-1}"#, .rejected),
      ("202 X", #"{"received":3000001}"#, .rejected), ("202 X", #"{"received":99999999999999999999}"#, .rejected),
      ("202 X", "{}", .rejected),
      ("202 X", "<html>", .rejected), ("202 X", #"{"received":3000000}"#, .interrupted),
      ("409 X", #"{"error":{"code":"wrong_offset","message":"m","received":0}}"#, .interrupted),
      ("409 X", #"{"error":{"code":"wrong_offset","message":"m","received":-4}}"#, .rejected),
      ("409 X", #"{"error":{"code":"wrong_offset","message":"m"}}"#, .rejected),
      ("409 X", #"{"error":{"code":"base_missing","message":"m"}}"#, .rejected),
      ("409 X", #"{"error":{"code":"superseded","message":"m"}}"#, .interrupted),
      ("422 X", #"{"error":{"code":"frame_mismatch","message":"m"}}"#, .interrupted),
      ("429 X", #"{"error":{"code":"too_many_uploads","message":"m"}}"#, .server(retryAfterMilliseconds: nil)),
    ]
    for (status, body, kind) in replies {
      let server = try CannedServer { _, _ in .http(status, body: body) }
      defer { server.stop() }
      let failure = await #expect(throws: TransportFailure.self, "\(status) \(body)") {
        try await transport(server, carrier).putContent(content) { _ in }
      }
      #expect(failure?.kind == kind, "\(status) \(body): \(String(describing: failure))")
      #expect(server.requests.count < 10, "\(status) \(body)")
    }
  }

  @Test(
    "a resumed download is never combined with a range that wasn't requested, or with one of other bytes",
    arguments: HTTPCarrier.allCases)
  func hostileRanges(_ carrier: HTTPCarrier) async throws {
    let hash = ContentHash(of: Data("a".utf8))
    let head =
      "HTTP/1.1 200 OK\r\nKeepsake-Protocol: 1\r\nKeepsake-Length: 9\r\nETag: \"t\"\r\nContent-Length: 10\r\n\r\n"
    let rest = ["Keepsake-Protocol: 1", "Keepsake-Length: 9", "ETag: \"t\"", "Content-Range: bytes 5-9/10"]
    func get(_ second: CannedServer.Reply) async throws -> (EncodedContent?, [String]) {
      let server = try CannedServer { _, number in number == 1 ? .answerAndClose(head + "01234") : second }
      defer { server.stop() }
      let transport = transport(server, carrier)
      await #expect(throws: TransportFailure.self) { try await transport.getContent(hash) { _ in } }
      return (try await transport.getContent(hash) { _ in }, server.requests)
    }
    let (whole, requests) = try await get(.http("206 X", rest, body: "56789"))
    #expect(whole?.bytes == Data("0123456789".utf8))
    let asked = try #require(requests.last).lowercased()
    #expect(asked.contains("range: bytes=5-\r\n") && asked.contains("if-range: \"t\"\r\n"))
    // Another encoding, in full.
    let (other, _) = try await get(
      .http("200 X", ["Keepsake-Protocol: 1", "Keepsake-Length: 9", "ETag: \"u\""], body: "abc"))
    #expect(other?.bytes == Data("abc".utf8))
    for headers in [
      ["Keepsake-Protocol: 1", "Keepsake-Length: 9", "ETag: \"u\"", "Content-Range: bytes 5-9/10"],
      ["Keepsake-Protocol: 1", "Keepsake-Length: 9", "Content-Range: bytes 5-9/10"],
      ["Keepsake-Protocol: 1", "Keepsake-Length: 9", "ETag: \"t\"", "Content-Range: bytes 4-8/10"],
      ["Keepsake-Protocol: 1", "Keepsake-Length: 9", "ETag: \"t\"", "Content-Range: bytes 5-9/11"],
      ["Keepsake-Protocol: 1", "Keepsake-Length: 9", "ETag: \"t\""],
    ] {
      await #expect(throws: TransportFailure.self, "\(headers)") {
        try await get(.http("206 X", headers, body: "56789"))
      }
    }
    // A truncated refusal doesn't count: what was received is kept, and the rest is requested again.
    let refusal = "HTTP/1.1 404 X\r\nKeepsake-Protocol: 1\r\nContent-Length: 100\r\n\r\n{\"error\":"
    let server = try CannedServer { _, number in
      number == 1
        ? .answerAndClose(head + "01234") : number == 2 ? .answerAndClose(refusal) : .http("206 X", rest, body: "56789")
    }
    defer { server.stop() }
    let patient = transport(server, carrier)
    for _ in 0..<2 {
      let failure = await #expect(throws: TransportFailure.self) { try await patient.getContent(hash) { _ in } }
      #expect(failure?.kind == .interrupted)
    }
    #expect(try await patient.getContent(hash) { _ in }?.bytes == Data("0123456789".utf8))
    // Shorter, or longer, than the range that the response states.
    for body in ["5678", "56789a"] {
      await #expect(throws: TransportFailure.self, "\(body)") { try await get(.http("206 X", rest, body: body)) }
    }
  }

  @Test(
    "a captive portal's responses count as interruptions, and its redirects aren't followed",
    arguments: HTTPCarrier.allCases)
  func portal(_ carrier: HTTPCarrier) async throws {
    for status in ["200 OK", "401 X", "403 X", "404 X", "400 X"] {
      let kind = try await failure(of: .http(status, [], body: "<html>Please log in</html>"), carrier).kind
      #expect(kind == .interrupted, "\(status)")
    }
    let away = try CannedServer { head, _ in
      head.contains("/v1/exchange") ? .http("302 Found", ["Location: /portal"]) : .http("200 OK", body: "{}")
    }
    defer { away.stop() }
    await #expect { try await transport(away, carrier).exchange(Self.request) } throws: {
      ($0 as? TransportFailure)?.kind == .interrupted
    }
    #expect(away.requests.count == 1, "a redirect was followed, with the player's token")
  }

  @Test(
    "a response that is truncated, isn't valid JSON or is too large is a failure, and not a crash",
    arguments: HTTPCarrier.allCases)
  func badAnswers(_ carrier: HTTPCarrier) async throws {
    let head = "HTTP/1.1 200 OK\r\nKeepsake-Protocol: 1\r\n"
    #expect(try await failure(of: .answerAndClose(""), carrier).kind == .interrupted)
    #expect(try await failure(of: .answerAndClose(head + "Content-Length: 100\r\n\r\n{"), carrier).kind == .interrupted)
    #expect(try await failure(of: .answerAndClose("nonsense\r\n\r\n"), carrier).kind == .interrupted)
    #expect(try await failure(of: .http("200 OK", body: "{}"), carrier).kind == .rejected)
    #expect(
      try await failure(of: .http("200 OK", body: String(repeating: "[", count: 100_000)), carrier).kind == .rejected)
    #expect(
      try await failure(of: .answerAndHang(head + "Content-Length: 60000000\r\n\r\n"), carrier).kind == .interrupted)
    let endless = try CannedServer { _, _ in
      .answerAndClose(head + "\r\n" + String(repeating: "x", count: 1 << 20))
    }
    defer { endless.stop() }
    let error = await #expect(throws: AccountError.self) {
      try await HTTPAccount(url: endless.url, appKey: "app-key-app").register(name: "A")
    }
    guard case .failed(let failure) = error?.code else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(failure.message.contains("larger"))
  }

  @Test(
    "a failure is `unreachable` only if no connection was made; on a dead connection it is `interrupted`",
    arguments: HTTPCarrier.allCases)
  func unreachable(_ carrier: HTTPCarrier) async throws {
    let json = try Self.goodJSON()
    let server = try CannedServer { _, number in number == 1 ? .http("200 OK", body: json) : .answerAndClose("") }
    let transport = transport(server, carrier)
    _ = try await transport.exchange(Self.request)
    server.stop()
    // Over the kept connection, which is dead; the next one certainly can't connect. Foundation doesn't say whether it
    // sent the request before it noticed.
    var kinds: [TransportFailure.Kind] = []
    for _ in 0..<2 {
      do {
        _ = try await transport.exchange(Self.request)
      } catch {
        kinds.append(error.kind)
      }
    }
    #expect(kinds == [carrier == .system ? .interrupted : .unreachable, .unreachable])
  }

  @Test(
    "a request that the cloud received before it went away is `interrupted`, though its repetition can't connect",
    arguments: HTTPCarrier.allCases)
  func receivedThenGone(_ carrier: HTTPCarrier) async throws {
    let json = try Self.goodJSON()
    let running = Shared<CannedServer?>(nil)
    let server = try CannedServer { _, number in
      if number == 1 { return .http("200 OK", body: json) }
      running.value?.stop()
      return .answerAndClose("")
    }
    running.value = server
    let transport = transport(server, carrier)
    _ = try await transport.exchange(Self.request)
    await #expect { try await transport.exchange(Self.request) } throws: {
      ($0 as? TransportFailure)?.kind == .interrupted
    }
    #expect(server.requests.count == 2)
    running.value = nil
  }

  @Test(
    "concurrent requests that all fail throw one failure each, and never crash the process",
    arguments: [HTTPCarrier.preferred])
  func parallelFailures(_ carrier: HTTPCarrier) async throws {
    let server = try CannedServer { _, _ in .answerAndClose("") }
    defer { server.stop() }
    let transport = transport(server, carrier)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask {
          for _ in 0..<50 {
            await #expect(throws: TransportFailure.self) { try await transport.exchange(Self.request) }
          }
        }
      }
    }
    #expect(server.requests.count >= 200)
  }

  @Test(
    "a request to a URL that isn't HTTP fails as `rejected`, so that it isn't retried", arguments: HTTPCarrier.allCases)
  func badAddress(_ carrier: HTTPCarrier) async throws {
    let url = try #require(URL(string: "file:///etc"))
    await #expect {
      try await transport(url, carrier).exchange(Self.request)
    } throws: {
      ($0 as? TransportFailure)?.kind == .rejected
    }
  }

  @Test("a cancelled request ends at once", arguments: HTTPCarrier.allCases)
  func cancellation(_ carrier: HTTPCarrier) async throws {
    let server = try CannedServer { _, _ in .answerAndHang("") }
    defer { server.stop() }
    let transport = transport(server, carrier)
    let task = Task { try await transport.exchange(Self.request) }
    try await until("a request") { !server.requests.isEmpty }
    task.cancel()
    await #expect(throws: TransportFailure.self) { try await task.value }
  }

  @Test(
    "a content is received with its length and base; a missing one is nil, and one with invalid headers throws",
    arguments: HTTPCarrier.allCases)
  func contents(_ carrier: HTTPCarrier) async throws {
    let (hash, base) = (ContentHash(of: Data("a".utf8)), ContentHash(of: Data("b".utf8)))
    func content(_ reply: CannedServer.Reply) async throws -> EncodedContent? {
      let server = try CannedServer { _, _ in reply }
      defer { server.stop() }
      return try await transport(server, carrier).getContent(hash) { _ in }
    }
    let mark = "Keepsake-Protocol: 1"
    let whole = try await content(
      .http("200 OK", [mark, "Keepsake-Length: 9", "Keepsake-Base: \(base)"], body: "frame"))
    #expect(whole == EncodedContent(hash: hash, length: 9, base: base, bytes: Data("frame".utf8)))
    let gone = #"{"error":{"code":"content_missing","message":"Gone."}}"#
    #expect(try await content(.http("404 X", body: gone)) == nil)
    for headers in [[mark], [mark, "Keepsake-Length: -1"], [mark, "Keepsake-Length: 1", "Keepsake-Base: zz"]] {
      await #expect(throws: TransportFailure.self, "\(headers)") {
        try await content(.http("200 OK", headers, body: "frame"))
      }
    }
  }

  @Test(
    "uploads and downloads of large contents report increasing progress up to the end", arguments: HTTPCarrier.allCases)
  func progress(_ carrier: HTTPCarrier) async throws {
    let count = 3_000_000
    let server = try CannedServer { head, _ in
      head.hasPrefix("PUT")
        ? .http("201 Created")
        : .http("200 OK", ["Keepsake-Protocol: 1", "Keepsake-Length: 1"], body: String(repeating: "x", count: count))
    }
    defer { server.stop() }
    let (up, down) = (Steps(), Steps())
    let content = EncodedContent(
      hash: ContentHash(of: Data()), length: 1, base: nil, bytes: Data(repeating: 7, count: count))
    try await transport(server, carrier).putContent(content) { up.add($0) }
    _ = try await transport(server, carrier).getContent(content.hash) { down.add($0) }
    for steps in [up, down] {
      let all = steps.all
      #expect(all.count > 1)
      #expect(all.map(\.bytesDone) == all.map(\.bytesDone).sorted())
      #expect(all.last == TransferProgress(bytesDone: Int64(count), bytesInAll: Int64(count)))
    }
  }

  @Test(
    "events are received one by one until the stream ends, without heartbeats and unknown lines",
    arguments: HTTPCarrier.allCases)
  func events(_ carrier: HTTPCarrier) async throws {
    let head = "HTTP/1.1 200 OK\r\nKeepsake-Protocol: 1\r\nContent-Type: text/event-stream\r\n\r\n"
    let server = try CannedServer { request, _ in
      request.hasPrefix("GET /health")
        ? .http("200 OK")
        : .answerAndClose(head + ": hello\n\nevent: x\nid: 4\ndata: {\"seq\":5}\r\n\r\n: still here\n\n")
    }
    defer { server.stop() }
    var seqs: [UInt64] = []
    for try await event in transport(server, carrier).events() { seqs.append(event.seq) }
    #expect(seqs == [5])
  }

  @Test("an event stream that is refused, or isn't one, throws the reason", arguments: HTTPCarrier.allCases)
  func badEvents(_ carrier: HTTPCarrier) async throws {
    let head = "HTTP/1.1 200 OK\r\nKeepsake-Protocol: 1\r\n\r\n"
    let replies: [(CannedServer.Reply, TransportFailure.Kind)] = [
      (.http("401 X"), .unauthorized), (.http("429 X", ["Keepsake-Protocol: 1"]), .server(retryAfterMilliseconds: nil)),
      (.http("200 OK", [], body: "<html>"), .interrupted),
      // No line ends, until nothing has come for a second.
      (.answerAndHang(head + String(repeating: "x", count: 10_000)), .interrupted),
      (.answerAndHang(head + "data: {\"seq\":-1}\n\n"), .rejected),
    ]
    for (reply, kind) in replies {
      // The request that opens the connection succeeds.
      let server = try CannedServer { head, _ in head.hasPrefix("GET /health") ? .http("200 OK") : reply }
      defer { server.stop() }
      await #expect("\(reply)") {
        let idleSeconds: Double = kind == .interrupted ? 1 : 600
        for try await _ in transport(server.url, carrier, eventIdleSeconds: idleSeconds).events() {}
      } throws: {
        ($0 as? TransportFailure)?.kind == kind
      }
    }
  }

  @Test("events are the same wherever the stream is split")
  func eventPieces() throws {
    let text = Data(
      ": hi\n\ndata: {\"seq\":1}\n\ndata:{\"seq\":2}\r\n\r\n\n\ndata: {\"seq\":3}\n\ndata: {\"seq\":4}\n".utf8)
    for size in 1...text.count {
      var lines = EventLines()
      var seqs: [UInt64] = []
      for start in stride(from: 0, to: text.count, by: size) {
        seqs += try lines.take(text[start..<min(start + size, text.count)]).map(\.seq)
      }
      #expect(seqs == [1, 2, 3], "in pieces of \(size)")
    }
  }

  @Test("a wrong pairing code, too many guesses and a wrong app key throw different errors")
  func accountErrors() async throws {
    let replies: [(CannedServer.Reply, AccountError.Code)] = [
      (.http("404 X", body: #"{"error":{"code":"code_unknown","message":"m"}}"#), .codeUnknown),
      (
        .http(
          "429 X", ["Keepsake-Protocol: 1", "Retry-After: 3"],
          body: #"{"error":{"code":"too_many_guesses","message":"m"}}"#),
        .tooManyGuesses(waitMilliseconds: 3000)
      ), (.http("403 X", body: #"{"error":{"code":"bad_app_key","message":"m"}}"#), .unauthorized),
    ]
    for (reply, code) in replies {
      let server = try CannedServer { _, _ in reply }
      defer { server.stop() }
      let error = await #expect(throws: AccountError.self) {
        try await HTTPAccount(url: server.url, appKey: "app-key-app").join(code: "ABCDEFGH", name: "A")
      }
      #expect(error?.code == code)
    }
  }

  private final class Steps: Sendable {
    private let steps = Mutex<[TransferProgress]>([])
    var all: [TransferProgress] { steps.withLock { $0 } }
    func add(_ step: TransferProgress) { steps.withLock { $0.append(step) } }
  }

  @Test("a request whose connection ends before anybody waits for it has a result", .hangLimit)
  func endsEarly() async throws {
    let call = HTTPCall(limit: 10, sent: nil) { _, _ in }
    call.didComplete(URLError(.cancelled), mayHaveArrived: true)
    let result = await withCheckedContinuation { call.start($0) }
    guard case .failure(.error(let error, _)) = result else {
      Issue.record("\(result)")
      return
    }
    #expect((error as? URLError)?.code == .cancelled)
  }
}
