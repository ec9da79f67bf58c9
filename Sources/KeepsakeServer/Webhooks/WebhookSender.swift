#if Cloud
import AsyncHTTPClient
package import Foundation
import NIOCore
import NIOHTTP1
import Synchronization

/// One request to a studio's backend.
package struct WebhookRequest: Sendable {
  /// The name of the endpoint.
  package var endpoint: String
  package var url: URL
  package var headers: [String: String]
  package var body: Data
}

/// Sends events to a studio's backends. Replaced by tests.
package protocol WebhookSender: Sendable {
  /// Sends a request, and returns the status of the answer. The server ignores what takes longer than ten seconds, and
  /// cancels its task.
  ///
  /// - Throws: Any error if there is no answer.
  func send(_ request: WebhookRequest) async throws -> Int
  /// Closes its connections, because the server stops. Nothing may be under way.
  func close() async throws
}

/// Sends them by HTTP. Follows no redirection: an address is written down, and nothing but it is asked. Reads at most 4
/// KiB of an answer, and uses none of it but the status.
///
/// Each endpoint has connections of its own: one that doesn't answer holds up no other at the same host. Not by
/// URLSession, which on Linux keeps a processor busy for as long as a new connection waits for its answer.
package final class HTTPWebhookSender: WebhookSender {
  static let answerBytes = 4_096

  private let clients = Mutex<[String: HTTPClient]>([:])

  package init() {}

  package func send(_ request: WebhookRequest) async throws -> Int {
    var asked = HTTPClientRequest(url: request.url.absoluteString)
    asked.method = .POST
    for (name, value) in request.headers { asked.headers.add(name: name, value: value) }
    asked.body = .bytes(request.body)
    // Its caller cancels it.
    let answer = try await client(of: request.endpoint).execute(asked, deadline: .distantFuture)
    // Read only so that the connection can be used again. One whose answer is too long, or is cut off, is closed: the
    // status is known.
    _ = try? await answer.body.collect(upTo: Self.answerBytes)
    return Int(answer.status.code)
  }

  package func close() async throws {
    let all = clients.withLock { clients in
      defer { clients = [:] }
      return clients.values.map(\.self)
    }
    for client in all { try await client.shutdown() }
  }

  private func client(of endpoint: String) -> HTTPClient {
    clients.withLock { clients in
      if let own = clients[endpoint] { return own }
      var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
      configuration.httpVersion = .http1Only
      configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = WebhookLimits().requests
      // The queue tries again, with its own pauses.
      configuration.connectionPool.retryConnectionEstablishment = false
      let own = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
      clients[endpoint] = own
      return own
    }
  }
}
#endif
