import Foundation
import KeepsakeReplication
import Synchronization
import Testing

@testable import KeepsakeSync

@Suite("What a device makes of the answers it gets")
struct HTTPTransportTests {
  private static let goodAnswer = ExchangeResponse(
    outcome: .nothing, changes: [], contents: [], wallet: nil, cursor: Cursor(epoch: 1, seq: 2, mark: 3), more: false,
    serverTimeMilliseconds: 7)
  private static let request = ExchangeRequest(cursor: .start, limit: 10)

  private func credentials(_ url: URL) -> CloudCredentials {
    CloudCredentials(
      url: url, device: DeviceID(high: 1, low: 1), player: PlayerID(high: 1, low: 1),
      container: ContainerID(high: 1, low: 1), token: "token")
  }

  private func transport(_ server: CannedServer) -> HTTPTransport { HTTPTransport(credentials(server.url)) }

  private static func goodJSON() throws -> String {
    String(decoding: try JSONEncoder().encode(goodAnswer), as: UTF8.self)
  }

  private func failure(of reply: CannedServer.Reply) async throws -> TransportFailure {
    let server = try CannedServer { _, _ in reply }
    defer { server.stop() }
    do {
      _ = try await transport(server).exchange(Self.request)
    } catch {
      return error
    }
    Issue.record("no failure for \(reply)")
    return TransportFailure(.rejected, "")
  }

  @Test("an answer arrives as it was sent, and the request carries the token")
  func goodAnswer() async throws {
    let json = try Self.goodJSON()
    let server = try CannedServer { _, _ in .http("200 OK", body: json) }
    defer { server.stop() }
    #expect(try await transport(server).exchange(Self.request) == Self.goodAnswer)
    let head = try #require(server.requests.first).lowercased()
    #expect(head.hasPrefix("post /v1/exchange "))
    #expect(head.contains("authorization: bearer token"))
    #expect(!head.contains("gzip"))
  }

  @Test("each refusal means what it says: wait, register again, or don't repeat it")
  func statuses() async throws {
    let error = #"{"error":{"code":"busy","message":"Later, please."}}"#
    let mark = "Keepsake-Protocol: 1"
    #expect(try await failure(of: .http("401 X", body: error)).kind == .unauthorized)
    #expect(try await failure(of: .http("403 X", body: error)).kind == .unauthorized)
    #expect(try await failure(of: .http("400 X", body: error)).kind == .rejected)
    #expect(try await failure(of: .http("413 X", body: error)).kind == .rejected)
    #expect(try await failure(of: .http("404 X", body: error)).kind == .rejected)
    #expect(try await failure(of: .http("408 X", body: error)).kind == .interrupted)
    #expect(try await failure(of: .http("500 X", body: error)).kind == .server(retryAfterMilliseconds: nil))
    let busy = try await failure(of: .http("503 X", [mark, "Retry-After: 7"], body: error))
    #expect(busy.kind == .server(retryAfterMilliseconds: 7000))
    #expect(busy.message.contains("Later, please."))
    #expect(try await failure(of: .http("429 X", [mark, "Retry-After: 7"])).kind == .server(retryAfterMilliseconds: 7000))
    #expect(try await failure(of: .http("429 X", [mark])).kind == .server(retryAfterMilliseconds: nil))
    for text in ["-1", "soon", "99999999999999999999", "Wed, 21 Oct 2099 07:28:00 GMT"] {
      #expect(
        try await failure(of: .http("503 X", [mark, "Retry-After: \(text)"])).kind
          == .server(retryAfterMilliseconds: 60_000))
    }
    #expect(
      try await failure(of: .http("503 X", [mark, "Retry-After: 9000000000000000000"])).kind
        == .server(retryAfterMilliseconds: 3_600_000))
  }

  @Test("a hotel's portal is never taken for the cloud: nothing is given up because of it")
  func portal() async throws {
    for status in ["200 OK", "401 X", "403 X", "404 X", "400 X"] {
      let kind = try await failure(of: .http(status, [], body: "<html>Please log in</html>")).kind
      #expect(kind == .interrupted, "\(status)")
    }
    let away = try CannedServer { head, _ in
      head.contains("/v1/exchange") ? .http("302 Found", ["Location: /portal"]) : .http("200 OK", body: "{}")
    }
    defer { away.stop() }
    await #expect { try await transport(away).exchange(Self.request) } throws: {
      ($0 as? TransportFailure)?.kind == .interrupted
    }
    #expect(away.requests.count == 1, "a redirect was followed, with the player's token")
  }

  @Test("an answer that breaks off, is no JSON, or never ends is a failure and not a crash")
  func badAnswers() async throws {
    let head = "HTTP/1.1 200 OK\r\nKeepsake-Protocol: 1\r\n"
    #expect(try await failure(of: .answerAndClose("")).kind == .interrupted)
    #expect(try await failure(of: .answerAndClose(head + "Content-Length: 100\r\n\r\n{")).kind == .interrupted)
    #expect(try await failure(of: .answerAndClose("nonsense\r\n\r\n")).kind == .interrupted)
    #expect(try await failure(of: .http("200 OK", body: "{}")).kind == .rejected)
    #expect(try await failure(of: .http("200 OK", body: String(repeating: "[", count: 100_000))).kind == .rejected)
    #expect(
      try await failure(of: .answerAndHang(head + "Content-Length: 60000000\r\n\r\n")).kind == .interrupted)
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

  @Test("only a device that reached nobody says so: after a dead connection the cloud may have the save")
  func unreachable() async throws {
    let json = try Self.goodJSON()
    let server = try CannedServer { _, number in number == 1 ? .http("200 OK", body: json) : .answerAndClose("") }
    let transport = transport(server)
    _ = try await transport.exchange(Self.request)
    server.stop()
    // Over the connection that was kept, which is dead; the next one, in a new session, surely reaches nobody.
    var kinds: [TransportFailure.Kind] = []
    for _ in 0..<2 {
      do {
        _ = try await transport.exchange(Self.request)
      } catch {
        kinds.append(error.kind)
      }
    }
    #expect(kinds == [.interrupted, .unreachable])
  }

  @Test("an address that isn't the web's is told at once, not tried for ever")
  func badAddress() async throws {
    let url = try #require(URL(string: "file:///etc"))
    await #expect { try await HTTPTransport(credentials(url)).exchange(Self.request) } throws: {
      ($0 as? TransportFailure)?.kind == .rejected
    }
  }

  @Test("a cancelled request ends at once")
  func cancellation() async throws {
    let server = try CannedServer { _, _ in .answerAndHang("") }
    defer { server.stop() }
    let transport = transport(server)
    let task = Task { try await transport.exchange(Self.request) }
    while server.requests.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
    task.cancel()
    await #expect(throws: TransportFailure.self) { try await task.value }
  }

  @Test("a content comes with its length and base, is gone, or is refused")
  func contents() async throws {
    let (hash, base) = (ContentHash(of: Data("a".utf8)), ContentHash(of: Data("b".utf8)))
    func content(_ reply: CannedServer.Reply) async throws -> EncodedContent? {
      let server = try CannedServer { _, _ in reply }
      defer { server.stop() }
      return try await transport(server).getContent(hash) { _ in }
    }
    let mark = "Keepsake-Protocol: 1"
    let whole = try await content(
      .http("200 OK", [mark, "Keepsake-Length: 9", "Keepsake-Base: \(base)"], body: "frame"))
    #expect(whole == EncodedContent(hash: hash, length: 9, base: base, bytes: Data("frame".utf8)))
    let gone = #"{"error":{"code":"content_missing","message":"Gone."}}"#
    #expect(try await content(.http("404 X", body: gone)) == nil)
    for headers in [[mark], [mark, "Keepsake-Length: -1"], [mark, "Keepsake-Length: 1", "Keepsake-Base: zz"]] {
      await #expect(throws: TransportFailure.self, "\(headers)") { try await content(.http("200 OK", headers, body: "frame")) }
    }
  }

  @Test("a player sees how far a large save has come, up and down")
  func progress() async throws {
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
    try await transport(server).putContent(content) { up.add($0) }
    _ = try await transport(server).getContent(content.hash) { down.add($0) }
    for steps in [up, down] {
      let all = steps.all
      #expect(all.count > 1)
      #expect(all.map(\.bytesDone) == all.map(\.bytesDone).sorted())
      #expect(all.last == TransferProgress(bytesDone: Int64(count), bytesInAll: Int64(count)))
    }
  }

  @Test("events arrive one by one, heartbeats and unknown lines apart, until the stream ends")
  func events() async throws {
    let head = "HTTP/1.1 200 OK\r\nKeepsake-Protocol: 1\r\nContent-Type: text/event-stream\r\n\r\n"
    let server = try CannedServer { request, _ in
      request.hasPrefix("GET /health")
        ? .http("200 OK")
        : .answerAndClose(head + ": hello\n\nevent: x\nid: 4\ndata: {\"seq\":5}\r\n\r\n: still here\n\n")
    }
    defer { server.stop() }
    var seqs: [UInt64] = []
    for try await event in transport(server).events() { seqs.append(event.seq) }
    #expect(seqs == [5])
  }

  @Test("an event stream that is refused, or isn't one, ends with its reason")
  func badEvents() async throws {
    let head = "HTTP/1.1 200 OK\r\nKeepsake-Protocol: 1\r\n\r\n"
    let replies: [(CannedServer.Reply, TransportFailure.Kind)] = [
      (.http("401 X"), .unauthorized), (.http("429 X", ["Keepsake-Protocol: 1"]), .server(retryAfterMilliseconds: nil)),
      (.http("200 OK", [], body: "<html>"), .interrupted),
      (.answerAndHang(head + String(repeating: "x", count: 10_000)), .interrupted),
      (.answerAndHang(head + "data: {\"seq\":-1}\n\n"), .rejected),
    ]
    for (reply, kind) in replies {
      // What opens the connection is answered well.
      let server = try CannedServer { head, _ in head.hasPrefix("GET /health") ? .http("200 OK") : reply }
      defer { server.stop() }
      await #expect("\(reply)") {
        for try await _ in transport(server).events() {}
      } throws: {
        ($0 as? TransportFailure)?.kind == kind
      }
    }
  }

  @Test("events cut anywhere are the same events")
  func eventPieces() throws {
    let text = Data(": hi\n\ndata: {\"seq\":1}\n\ndata:{\"seq\":2}\r\n\r\n\n\ndata: {\"seq\":3}\n\ndata: {\"seq\":4}\n".utf8)
    for size in 1...text.count {
      var lines = EventLines()
      var seqs: [UInt64] = []
      for start in stride(from: 0, to: text.count, by: size) {
        seqs += try lines.take(text[start..<min(start + size, text.count)]).map(\.seq)
      }
      #expect(seqs == [1, 2, 3], "in pieces of \(size)")
    }
  }

  @Test("a wrong pairing code is told as that, and one guesses no more once it was enough")
  func accountErrors() async throws {
    let replies: [(CannedServer.Reply, AccountError.Code)] = [
      (.http("404 X", body: #"{"error":{"code":"code_unknown","message":"m"}}"#), .codeUnknown),
      (
        .http("429 X", ["Keepsake-Protocol: 1", "Retry-After: 3"], body: #"{"error":{"code":"too_many_guesses","message":"m"}}"#),
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
}
