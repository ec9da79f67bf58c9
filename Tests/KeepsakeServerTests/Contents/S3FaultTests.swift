#if Cloud
import Foundation
import KeepsakeReplication
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeServer

/// A bucket that refuses, fails, breaks off or doesn't answer.
@Suite("A bucket in trouble", .hangLimit)
struct S3FaultTests {
  private static let key = ContainerID(high: 7, low: 7)

  /// Runs `body` with a bucket at a server that replies so to each request's method and number.
  private func with(
    _ reply: @escaping @Sendable (_ head: String, _ number: Int) -> CannedServer.Reply,
    limits: S3Limits = Self.quick, _ body: (ContentBucket, ContentKey, CannedServer) async throws -> Void
  ) async throws {
    let server = try CannedServer(reply)
    defer { server.stop() }
    let address = try S3Address("s3://saves/cloud?endpoint=http://127.0.0.1:\(server.port)")
    let credentials = try S3Credentials(accessKey: "KEY", secretKey: "hidden", sessionToken: nil, from: "a test")
    let bucket = ContentBucket(address, limits: limits) { credentials }
    do {
      try await body(bucket, try ContentKey("\(Self.key)-1", of: Self.key), server)
    } catch {
      try await bucket.shutDown()
      throw error
    }
    try await bucket.shutDown()
  }

  private static let quick: S3Limits = {
    var limits = S3Limits()
    (limits.pauseMilliseconds, limits.longestPauseMilliseconds) = (2, 4)
    // However slow the machine is.
    limits.answer = .seconds(120)
    return limits
  }()

  private static func error(_ status: String, _ code: String) -> CannedServer.Reply {
    .http(status, [], body: "<?xml version=\"1.0\"?>\n<Error><Code>\(code)</Code><Message>no</Message></Error>")
  }

  private static func part(_ text: String, of range: String) -> CannedServer.Reply {
    .http("206 Partial Content", ["Content-Range: bytes \(range)"], body: text)
  }

  @Test(
    "what passes is asked for again, and then it is there",
    arguments: ["500 Internal Server Error", "503 Slow Down", "429 Too Many Requests", "cut", "cut body", "cut head"])
  func passing(_ fault: String) async throws {
    try await with { _, number in
      if number > 3 { return Self.part("hello", of: "2-6/9") }
      return switch fault {
      case "cut": .answerAndClose("")
      case "cut body":
        .answerAndClose("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 2-6/9\r\nContent-Length: 5\r\n\r\nhel")
      case "cut head": .answerAndClose("HTTP/1.1 206 Partial")
      default: Self.error(fault, "SlowDown")
      }
    } _: { bucket, key, server in
      #expect(try await bucket.bytes(2..<7, of: key) == Data("hello".utf8))
      #expect(server.requests.count == 4)
      let head = try #require(server.requests.last)
      #expect(head.hasPrefix("GET /saves/cloud/\(key.text) HTTP/1.1\r\n") && head.contains("range: bytes=2-6\r\n"))
      #expect(!head.contains("hidden"))
    }
  }

  @Test("what doesn't pass isn't asked for again without end, for each kind of request")
  func bounded() async throws {
    try await with { _, _ in
      Self.error("503 Slow Down", "SlowDown")
    } _: { bucket, key, server in
      let folder = try TemporaryFolder()
      let file = folder.url.appendingPathComponent("file")
      try frameBytes(600_000, seed: 1).write(to: file)
      let requests: [@Sendable () async throws -> Void] = [
        { try await bucket.put(file, as: key) }, { _ = try await bucket.bytes(0..<1, of: key) },
        { try await bucket.delete(key) }, { _ = try await bucket.list("", after: nil, limit: 5) },
      ]
      for (index, request) in requests.enumerated() {
        let error = await #expect(throws: ContentStorageError.self) { try await request() }
        #expect(error?.code == .busy && error?.isPassing == true)
        #expect(server.requests.count == 5 * (index + 1))
      }
    }
  }

  @Test("a refusal is said at once, with its code, and isn't taken for a content that is gone")
  func refused() async throws {
    for (status, code, expected) in [
      ("403 Forbidden", "AccessDenied", ContentStorageError.Code.refused),
      ("404 Not Found", "NoSuchBucket", .notThere), ("404 Not Found", "", .refused),
      ("301 Moved Permanently", "PermanentRedirect", .refused), ("200 OK", "", .refused),
    ] {
      try await with { _, _ in
        Self.error(status, code)
      } _: { bucket, key, server in
        let error = await #expect(throws: ContentStorageError.self) { try await bucket.size(of: key) }
        #expect(error?.code == expected, "\(status) \(code)")
        #expect(code.isEmpty || error?.description.contains(code) == true)
        #expect(server.requests.count == 1)
      }
    }
    try await with { _, _ in
      Self.error("404 Not Found", "NoSuchKey")
    } _: { bucket, key, _ in
      #expect(try await bucket.size(of: key) == nil)
      #expect(try await bucket.bytes(0..<5, of: key) == nil)
      try await bucket.delete(key)
    }
  }

  @Test("a bucket that doesn't answer in time is unreachable")
  func hanging() async throws {
    var limits = Self.quick
    (limits.answer, limits.attempts) = (.milliseconds(100), 2)
    let reply: @Sendable (String, Int) -> CannedServer.Reply = { _, number in
      number == 1 ? .answerAndHang("") : .answerAndHang("HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\n\r\nh")
    }
    try await with(reply, limits: limits) { bucket, key, _ in
      let error = await #expect(throws: ContentStorageError.self) { try await bucket.bytes(0..<5, of: key) }
      #expect(error?.code == .unreachable)
    }
  }

  @Test(
    "bytes other than those that were asked for are damaged",
    arguments: ["0-3/9", "1-5/9", "0-4", "0-4/x", "", "0-4/9 too few", "0-4/9 too many"])
  func damaged(_ range: String) async throws {
    let text = range.hasSuffix("few") ? "hell" : range.hasSuffix("many") ? "hello!" : "hello"
    let said = String(range.prefix { $0 != " " })
    try await with { _, _ in
      Self.part(text, of: said)
    } _: { bucket, key, _ in
      let error = await #expect(throws: ContentStorageError.self) { try await bucket.bytes(0..<5, of: key) }
      #expect(error?.code == .damaged)
    }
  }

  @Test("a file is sent whole, with its length and hash, also when it is sent again")
  func sent() async throws {
    try await with { _, number in
      number == 1 ? .answerAndClose("") : .http("200 OK", ["ETag: \"x\""])
    } _: { bucket, key, server in
      let folder = try TemporaryFolder()
      let file = folder.url.appendingPathComponent("file")
      let text = String(repeating: "a", count: 60_000)
      try Data(text.utf8).write(to: file)
      try await bucket.put(file, as: key)
      #expect(server.requests.count == 2)
      #expect(server.bodies == [text, text])
      for head in server.requests.map({ $0.lowercased() }) {
        #expect(
          head.hasPrefix("put /saves/cloud/\(key.text) http/1.1\r\n") && head.contains("content-length: 60000\r\n"))
        #expect(head.contains("x-amz-content-sha256: \(ContentHash(of: Data(text.utf8)))\r\n"))
      }
    }
  }

  @Test("a list that doesn't go on, or has what wasn't asked for, is damaged")
  func endless() async throws {
    let entry = "<LastModified>2013-05-24T00:00:01Z</LastModified></Contents></ListBucketResult>"
    for key in ["cloud/ab/cd/x", "elsewhere/x"] {
      let page =
        "<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>\(key)</Key>" + entry
      try await with { _, _ in
        .http("200 OK", [], body: page)
      } _: { bucket, _, _ in
        let error = await #expect(throws: ContentStorageError.self) {
          try await bucket.list("", after: "ab/cd/x", limit: 5)
        }
        #expect(error?.code == .damaged)
      }
    }
  }

  @Test("a bucket with another cloud's contents, or with something else, is refused at the start")
  func claimed() async throws {
    try await with { _, _ in
      .http("200 OK", [], body: "other")
    } _: { bucket, _, _ in
      let error = await #expect(throws: ServerError.self) { try await bucket.claim(for: "own") }
      #expect(error?.code == .configuration)
    }
    let page = """
      <ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>cloud/x</Key>\
      <LastModified>2013-05-24T00:00:01Z</LastModified></Contents></ListBucketResult>
      """
    try await with { head, _ in
      head.contains("list-type") ? .http("200 OK", [], body: page) : Self.error("404 Not Found", "NoSuchKey")
    } _: { bucket, _, server in
      let error = await #expect(throws: ServerError.self) { try await bucket.claim(for: "own") }
      #expect(error?.code == .configuration)
      #expect(!server.requests.contains { $0.hasPrefix("PUT") })
    }
  }
}
#endif
