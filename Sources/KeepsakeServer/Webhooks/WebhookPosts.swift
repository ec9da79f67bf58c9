#if Cloud
import Foundation
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The requests to one endpoint, as the delegate of their session.
final class WebhookPosts: NSObject, URLSessionDataDelegate, Sendable {
  static let answerBytes = 4_096

  enum Failure: Error, CustomStringConvertible {
    case notHTTP
    /// With the code of URLError, whose own words are about clouds.
    case unreachable(Int)

    var description: String {
      switch self {
      case .notHTTP: "the response isn't HTTP"
      case .unreachable(let code): "the address can't be reached (URL error \(code))"
      }
    }
  }
  private struct Pending {
    var continuation: CheckedContinuation<Int, any Error>
    var status: Int?
    var bytes = 0
  }
  private let pending = Mutex<[Int: Pending]>([:])
  /// Kept, so that connections are used again. It holds its delegate until it is invalidated.
  private let session = Mutex<URLSession?>(nil)

  func send(_ request: WebhookRequest) async throws -> Int {
    var asked = URLRequest(url: request.url)
    asked.httpMethod = "POST"
    asked.httpBody = request.body
    for (name, value) in request.headers { asked.setValue(value, forHTTPHeaderField: name) }
    let task = currentSession().dataTask(with: asked)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        pending.withLock { $0[task.taskIdentifier] = Pending(continuation: continuation) }
        task.resume()
      }
    } onCancel: {
      task.cancel()
    }
  }

  func close() {
    session.withLock { session in
      session?.invalidateAndCancel()
      session = nil
    }
  }

  private func currentSession() -> URLSession {
    session.withLock { session in
      if let session { return session }
      let configuration = URLSessionConfiguration.ephemeral
      configuration.httpCookieStorage = nil
      configuration.urlCache = nil
      configuration.httpMaximumConnectionsPerHost = WebhookLimits().requests
      let made = URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
      session = made
      return made
    }
  }

  // MARK: The session's delegate

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    let status = (response as? HTTPURLResponse)?.statusCode
    pending.withLock { $0[dataTask.taskIdentifier]?.status = status }
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    let isTooLong = pending.withLock { pending in
      pending[dataTask.taskIdentifier]?.bytes += data.count
      return pending[dataTask.taskIdentifier].map { $0.bytes > Self.answerBytes } ?? false
    }
    // Its status is known.
    if isTooLong { dataTask.cancel() }
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    guard let done = pending.withLock({ $0.removeValue(forKey: task.taskIdentifier) }) else { return }
    if let status = done.status {
      done.continuation.resume(returning: status)
    } else if let error {
      done.continuation.resume(throwing: (error as? URLError).map { Failure.unreachable($0.errorCode) } ?? error)
    } else {
      done.continuation.resume(throwing: Failure.notHTTP)
    }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    pending.withLock { $0[task.taskIdentifier]?.status = response.statusCode }
    completionHandler(nil)
  }
}
#endif
