#if Cloud
import AsyncHTTPClient
import Crypto
import Foundation
import NIOCore
import NIOHTTP1

/// How long requests to S3 may take, and how often they are made again. Shorter in tests.
struct S3Limits: Sendable {
  var connectSeconds = 5
  /// For an answer, and for each request without a large body.
  var answer = Duration.seconds(20)
  /// A file has this many bytes a second at least, besides.
  var bytesPerSecond = 256 << 10
  /// Requests for one thing, the first among them.
  var attempts = 5
  /// The longest pause after the first one; it doubles with each.
  var pauseMilliseconds: Int64 = 200
  var longestPauseMilliseconds: Int64 = 5_000
}

/// Makes requests to a bucket: signs them, and makes them again if they failed in a way that passes.
///
/// Every request here may be made again, whatever became of it. Follows no redirection.
struct S3Client: Sendable {
  struct Answer: Sendable {
    var status: Int
    var headers: HTTPHeaders
    var body: Data

    /// The code of an error, such as `NoSuchKey`.
    var errorCode: String? { S3Listing.errorCode(body) }
  }

  let address: S3Address
  private let limits: S3Limits
  private let credentials: @Sendable () -> S3Credentials
  private let connections: S3Connections

  init(_ address: S3Address, limits: S3Limits, credentials: @escaping @Sendable () -> S3Credentials) {
    (self.address, self.limits, self.credentials) = (address, limits, credentials)
    var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
    configuration.httpVersion = .http1Only
    configuration.timeout.connect = .seconds(Int64(limits.connectSeconds))
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 64
    // Made again here, with pauses.
    configuration.connectionPool.retryConnectionEstablishment = false
    connections = S3Connections(HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration))
  }

  func close() async throws { try await connections.http.shutdown() }

  /// Makes a request about an object, or about the bucket.
  ///
  /// - Parameters:
  ///   - object: Its key in the bucket; empty for the bucket.
  ///   - body: What is sent.
  ///   - largest: How many bytes of an answer are read; one with more is damaged.
  /// - Returns: An answer whose status is none of those that pass.
  /// - Throws: `ContentStorageError`; `CancellationError`.
  func run(
    _ method: String, _ object: String = "", query: [(name: String, value: String)] = [],
    headers: [(name: String, value: String)] = [], body: S3Body = .none, largest: Int = 64 << 10
  ) async throws -> Answer {
    let (host, path) = address.target(of: object)
    let request = S3Request(
      method: method, host: host, path: path, query: query, headers: headers, payloadHash: body.hash)
    var attempt = 0
    while true {
      attempt += 1
      let failure: ContentStorageError
      do {
        let answer = try await once(request, body, largest)
        guard Self.passes(answer) else { return answer }
        failure = ContentStorageError(.busy, Self.refusal(method, answer))
      } catch let error as ContentStorageError {
        guard error.isPassing else { throw error }
        failure = error
      }
      guard attempt < limits.attempts else { throw failure }
      let longest = min(limits.longestPauseMilliseconds, limits.pauseMilliseconds << Int64(min(attempt - 1, 16)))
      try await Task.sleep(for: .milliseconds(Int64.random(in: longest / 2...max(longest, 1))))
    }
  }

  /// What is said of an answer that nobody expected.
  static func refusal(_ method: String, _ answer: Answer) -> String {
    "The storage of contents answered \(method) with \(answer.status)\(answer.errorCode.map { " \($0)" } ?? "")."
  }

  private static func passes(_ answer: Answer) -> Bool {
    switch answer.status {
    case 408, 429, 500, 502, 503, 504: true
    case 400: answer.errorCode == "RequestTimeout"
    default: false
    }
  }

  private func once(_ request: S3Request, _ body: S3Body, _ largest: Int) async throws -> Answer {
    let scheme = address.isSecure ? "https" : "http"
    var asked = HTTPClientRequest(url: "\(scheme)://\(request.host)\(request.target)")
    asked.method = HTTPMethod(rawValue: request.method)
    for (name, value) in request.signed(with: credentials(), region: address.region, at: Date()) {
      asked.headers.add(name: name, value: value)
    }
    asked.body = body.sent
    let limit = limits.answer + .seconds(body.count / max(limits.bytesPerSecond, 1))
    let sent = asked
    do {
      return try await Deadline.run(within: limit) { [connections] in
        let answer = try await connections.http.execute(sent, deadline: .distantFuture)
        let bytes = try await answer.body.collect(upTo: largest)
        return Answer(status: Int(answer.status.code), headers: answer.headers, body: Data(bytes.readableBytesView))
      }
    } catch is NIOTooManyBytesError {
      throw ContentStorageError(.damaged, "The storage of contents answered with more than \(largest) bytes.")
    } catch let error as ContentStorageError {
      throw error
    } catch let error as S3Body.Failure {
      throw error.cause
    } catch {
      // Cancelled from outside, and not by this client.
      try Task.checkCancellation()
      throw ContentStorageError(.unreachable, "The storage of contents doesn't answer.", cause: error)
    }
  }
}

/// Connections that are closed with the last who uses them, if nobody has before.
private final class S3Connections: Sendable {
  let http: HTTPClient

  init(_ http: HTTPClient) { self.http = http }

  // An error says that they are closed already.
  deinit { http.shutdown { _ in } }
}

/// What a request to S3 sends.
struct S3Body: Sendable {
  /// A file that can't be read on; nothing that passes.
  struct Failure: Error {
    var cause: any Error
  }
  let hash: String
  let count: Int
  fileprivate let sent: HTTPClientRequest.Body?

  static let none = S3Body(hash: S3Request.emptyHash, count: 0, sent: nil)

  private init(hash: String, count: Int, sent: HTTPClientRequest.Body?) {
    (self.hash, self.count, self.sent) = (hash, count, sent)
  }

  init(_ bytes: Data) {
    self.init(
      hash: S3Request.hexadecimal(SHA256.hash(data: bytes)), count: bytes.count, sent: .bytes(ByteBuffer(bytes: bytes)))
  }

  /// Reads the file once for its hash, which S3 checks, and again for each request.
  init(_ file: URL) throws {
    var (hash, count) = (SHA256(), 0)
    try ContentFile.each(file) { bytes in
      hash.update(data: bytes)
      count += bytes.count
    }
    self.init(
      hash: S3Request.hexadecimal(hash.finalize()), count: count,
      sent: .stream(FilePieces(file: file), length: .known(Int64(count))))
  }
}

/// A file's bytes, read anew by each iterator.
private struct FilePieces: AsyncSequence, Sendable {
  typealias Element = ByteBuffer
  let file: URL

  struct AsyncIterator: AsyncIteratorProtocol {
    let file: URL
    var handle: FileHandle?

    mutating func next() async throws -> ByteBuffer? {
      do {
        let open = try handle ?? FileHandle(forReadingFrom: file)
        handle = open
        guard let bytes = try open.read(upToCount: ContentParts.partBytes), !bytes.isEmpty else { return nil }
        return ByteBuffer(bytes: bytes)
      } catch {
        throw S3Body.Failure(cause: ServerError(.inputOutput, "\(file.path) can't be read.", cause: error))
      }
    }
  }

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(file: file) }
}
#endif
