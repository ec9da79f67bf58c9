import Foundation
package import KeepsakeReplication
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The way to a Keepsake server over HTTP.
package final class HTTPTransport: Transport {
  private let credentials: CloudCredentials
  /// What went over the wire so far.
  package let traffic: TrafficCounter
  private let requests: HTTPSession
  private let streams: HTTPSession

  package init(_ credentials: CloudCredentials) {
    self.credentials = credentials
    traffic = TrafficCounter()
    requests = HTTPSession(idleSeconds: SyncLimits.idleSeconds, traffic: traffic)
    streams = HTTPSession(idleSeconds: SyncLimits.eventIdleSeconds, traffic: traffic)
  }

  package func exchange(_ request: ExchangeRequest) async throws(TransportFailure) -> ExchangeResponse {
    let body = try HTTPRequests.encode(request)
    var message = self.request("POST", "v1/exchange")
    message.setValue("application/json", forHTTPHeaderField: "Content-Type")
    let answer = try await requests.send(message, body: body, limit: SyncLimits.answerBytes)
    try HTTPAnswer.check(answer.response, body: answer.body)
    return try HTTPAnswer.decode(ExchangeResponse.self, answer.body)
  }

  package func putContent(
    _ content: EncodedContent, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure) {
    var message = request("PUT", "v1/contents/\(content.hash)")
    message.setValue("application/zstd", forHTTPHeaderField: "Content-Type")
    message.setValue(String(content.length), forHTTPHeaderField: "Keepsake-Length")
    if let base = content.base { message.setValue(base.description, forHTTPHeaderField: "Keepsake-Base") }
    let answer = try await requests.send(
      message, body: content.bytes, limit: SyncLimits.accountBytes, sent: progress)
    try HTTPAnswer.check(answer.response, body: answer.body)
  }

  package func getContent(
    _ hash: ContentHash, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure) -> EncodedContent? {
    let answer = try await requests.send(
      request("GET", "v1/contents/\(hash)"), limit: SyncLimits.contentBytes, received: progress)
    if answer.response.statusCode == 404, HTTPAnswer.code(answer.body) == "content_missing" { return nil }
    try HTTPAnswer.check(answer.response, body: answer.body)
    guard let length = answer.response.value(forHTTPHeaderField: "Keepsake-Length").flatMap({ Int($0) }), length >= 0 else {
      throw TransportFailure(.rejected, "The cloud sent a content without its length.")
    }
    var base: ContentHash?
    if let text = answer.response.value(forHTTPHeaderField: "Keepsake-Base") {
      guard let hash = ContentHash(text) else {
        throw TransportFailure(.rejected, "The cloud sent a content whose base has no name.")
      }
      base = hash
    }
    return EncodedContent(hash: hash, length: length, base: base, bytes: answer.body)
  }

  package func events() -> AsyncThrowingStream<CloudEvent, any Error> {
    // A newer event says all that an older one did.
    AsyncThrowingStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      var message = request("GET", "v1/events")
      message.setValue("text/event-stream", forHTTPHeaderField: "Accept")
      message.timeoutInterval = SyncLimits.eventIdleSeconds
      #if canImport(FoundationNetworking)
      // On a connection that it opened itself, Foundation off Apple's systems goes on asking whether it could write for as
      // long as the answer lasts, and takes a whole core with that (seen with Swift 6.3.1). A connection that a short
      // request opened and left behind doesn't have it.
      let opener: URLRequest? = request("GET", "health")
      #else
      let opener: URLRequest? = nil
      #endif
      let task = Task { [message, streams] in
        let lines = Mutex(EventLines())
        do throws(TransportFailure) {
          if let opener { _ = try await streams.send(opener, limit: SyncLimits.accountBytes) }
          try await streams.stream(message) { response throws(TransportFailure) in
            try HTTPAnswer.check(response)
          } part: { piece in
            do {
              for event in try lines.withLock({ try $0.take(piece) }) { continuation.yield(event) }
            } catch {
              // Ends the task by letting go of the stream.
              continuation.finish(throwing: error)
            }
          }
          continuation.finish()
        } catch {
          continuation.finish(throwing: error)
        }
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }

  private func request(_ method: String, _ path: String) -> URLRequest {
    var request = HTTPRequests.request(method, credentials.url, path)
    request.setValue("Bearer " + credentials.token, forHTTPHeaderField: "Authorization")
    return request
  }
}

/// What all requests have in common.
enum HTTPRequests {
  static func request(_ method: String, _ base: URL, _ path: String) -> URLRequest {
    var request = URLRequest(url: base.appendingPathComponent(path))
    request.httpMethod = method
    request.timeoutInterval = SyncLimits.idleSeconds
    // Foundation's own offer of gzip would only cost: what is large is packed already.
    request.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
    return request
  }

  static func encode(_ value: some Encodable) throws(TransportFailure) -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    do {
      return try encoder.encode(value)
    } catch {
      throw TransportFailure(.rejected, "The request can't be written as JSON: \(error)")
    }
  }
}
