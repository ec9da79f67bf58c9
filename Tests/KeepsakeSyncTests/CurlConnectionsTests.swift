#if os(Linux)
import Foundation
import FoundationNetworking
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeSync

/// What requests by libcurl have beyond those of URLSession.
@Suite("Connections by libcurl", .hangLimit) struct CurlConnectionsTests {
  private static let body = Data("{}".utf8)

  private func session(idleSeconds: Double = 600) -> HTTPSession {
    HTTPSession(idleSeconds: idleSeconds, carrier: .curl)
  }

  /// Sends a request with a body, and returns how it failed; nil if it succeeded.
  private func failure(_ session: HTTPSession, _ url: URL) async -> TransportFailure? {
    do {
      _ = try await session.send(HTTPRequests.request("POST", url, "v1/x"), body: Self.body, limit: 1_000)
      return nil
    } catch {
      return error
    }
  }

  @Test("requests with bodies that follow each other share a connection, and the end of one is noticed at once")
  func keptConnections() async throws {
    // Those that follow each other later, on a machine without time for this test, have connections of their own.
    while true {
      let start = ContinuousClock.now
      let server = try CannedServer { _, number in
        number == 4 ? .answerAndClose("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n") : .http("200 OK", body: "yes")
      }
      defer { server.stop() }
      let session = session()
      var counts: [Int] = []
      for number in 1...5 {
        #expect(await failure(session, server.url)?.kind == (number == 4 ? .interrupted : nil))
        counts.append(server.connectionCount)
      }
      #expect(server.requests.count == 5 && server.bodies.allSatisfy { $0 == "{}" })
      guard ContinuousClock.now - start < .seconds(SyncLimits.keptConnectionSeconds) else { continue }
      #expect(counts == [1, 1, 1, 1, 2])
      return
    }
  }

  @Test("a response that stops is given up after the time that a request may make no progress, and not repeated")
  func idle() async throws {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
    for text in ["", head, head + "{"] {
      let server = try CannedServer { _, _ in .answerAndHang(text) }
      defer { server.stop() }
      let failure = await failure(session(idleSeconds: 0.2), server.url)
      #expect(failure?.message == ErrorReason.text(URLError(.timedOut)))
      #expect(server.requests.count <= 1)
    }
  }

  @Test("a connection that ends anywhere in a response is a failure, and the process goes on")
  func cuts() async throws {
    let whole = Array("HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 3\r\n\r\nyes".utf8)
    for count in whole.indices {
      let server = try CannedServer { _, _ in .answerAndClose(String(decoding: whole[..<count], as: UTF8.self)) }
      defer { server.stop() }
      #expect(await failure(session(), server.url)?.kind == .interrupted, "\(count)")
    }
  }

  @Test("connections end with their sessions, also if a request was cancelled")
  func comeAndGo() async throws {
    let server = try CannedServer { _, number in number % 3 == 0 ? .answerAndHang("") : .http("200 OK", body: "yes") }
    defer { server.stop() }
    for number in 1...60 {
      let session = session()
      let task = Task { await failure(session, server.url) }
      if number % 3 == 0 {
        try await until("the request") { server.requests.count >= number }
        task.cancel()
      }
      #expect(await (task.value == nil) == (number % 3 != 0))
    }
    #expect(server.requests.count == 60)
    // All connections end with their sessions.
    try await until("no connection is left") { server.openConnectionCount == 0 }
  }

  enum AtExit: Int, CaseIterable {
    case sessionIsKept, sessionIsGone, requestIsUnderWay
  }

  @Test("no thread that has called libcurl is left when the process ends", arguments: AtExit.allCases)
  func exit(_ now: AtExit) async {
    await #expect(processExitsWith: .exitCode(3)) { [number = now.rawValue as Int] in
      // Before anything of libcurl, so that it is called last of all.
      atexit {
        if !CurlConnectionsTests.mark.isGone { _exit(70) }
      }
      let now = try #require(AtExit(rawValue: number))
      let server = try CannedServer { _, _ in
        now == .requestIsUnderWay ? .answerAndHang("") : .http("200 OK", body: "yes")
      }
      var session: HTTPSession? = CurlConnectionsTests().session()
      if let session {
        let request = HTTPRequests.request("POST", server.url, "v1/x")
        let task = Task {
          await session.collect(
            request, body: CurlConnectionsTests.body, limit: 1_000, sent: { _ in CurlConnectionsTests.mark.set() })
        }
        if now == .requestIsUnderWay {
          try await until("the request") { !server.requests.isEmpty }
        } else {
          #expect(await task.value.failure == nil)
        }
      }
      if now == .sessionIsGone { session = nil }
      Foundation.exit(3)
    }
  }

  private static let mark = ThreadMark()

  @Test("a value with a line break adds no header")
  func lineBreaks() async throws {
    let server = try CannedServer { _, _ in .http("200 OK") }
    defer { server.stop() }
    let values = ["a\r\nX-More: y", "a\nX-More: y", "a\rX-More: y"]
    for value in values {
      var request = HTTPRequests.request("GET", server.url, "health")
      request.setValue(value, forHTTPHeaderField: "Authorization")
      _ = try await session().send(request, limit: 1_000)
    }
    #expect(server.requests.count == values.count && !server.requests.joined().contains("X-More"))
  }
}
#endif
