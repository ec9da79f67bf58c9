#if Cloud
package import Foundation
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
  /// Closes its connections, because the server stops.
  func close()
}

/// Sends them by HTTP. Follows no redirection: an address is written down, and nothing but it is asked. Reads at most 4
/// KiB of an answer, and uses none of it but the status.
///
/// Each endpoint has connections of its own: one that doesn't answer holds up no other at the same host.
package final class HTTPWebhookSender: WebhookSender {
  private let posts = Mutex<[String: WebhookPosts]>([:])

  package init() {}

  package func send(_ request: WebhookRequest) async throws -> Int {
    try await posts(of: request.endpoint).send(request)
  }

  package func close() { for own in posts.withLock({ $0.values.map(\.self) }) { own.close() } }

  private func posts(of endpoint: String) -> WebhookPosts {
    posts.withLock { posts in
      if let own = posts[endpoint] { return own }
      let own = WebhookPosts()
      posts[endpoint] = own
      return own
    }
  }
}
#endif
