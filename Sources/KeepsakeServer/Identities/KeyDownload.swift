#if Cloud
import Foundation
import KeepsakePlatform
import Synchronization

/// One download of an issuer's keys, as the session's delegate: ends it as soon as it has too many bytes.
final class KeyDownload: NSObject, URLSessionDataDelegate, Sendable {
  enum Failure: Error, CustomStringConvertible {
    case status(Int)
    case tooLarge(Int)
    case notHTTP
    /// With the code of URLError, whose own words are about clouds.
    case unreachable(Int)

    var description: String {
      switch self {
      case .status(let status): "the status is \(status)"
      case .tooLarge(let limit): "there are more than \(limit) bytes"
      case .notHTTP: "the response isn't HTTP"
      case .unreachable(let code): "the address can't be reached (URL error \(code))"
      }
    }
  }
  private struct State {
    var continuation: CheckedContinuation<Data, any Error>?
    var bytes = Data()
    var failure: Failure?
  }
  private let limit: Int
  private let state = Mutex(State())

  init(limit: Int) { self.limit = limit }

  func start(_ continuation: CheckedContinuation<Data, any Error>) {
    state.withLock { $0.continuation = continuation }
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    let failure: Failure? =
      if let response = response as? HTTPURLResponse {
        if response.statusCode != 200 {
          .status(response.statusCode)
        } else {
          response.expectedContentLength > Int64(limit) ? .tooLarge(limit) : nil
        }
      } else {
        .notHTTP
      }
    if let failure {
      fail(failure, dataTask)
      return completionHandler(.cancel)
    }
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    let isTooLarge = state.withLock { state in
      guard state.bytes.count + data.count <= limit else { return true }
      state.bytes += data
      return false
    }
    if isTooLarge { fail(.tooLarge(limit), dataTask) }
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let (continuation, result) = state.withLock {
      state -> (CheckedContinuation<Data, any Error>?, Result<Data, any Error>) in
      defer { state.continuation = nil }
      if let failure = state.failure { return (state.continuation, .failure(failure)) }
      if let error = error as? URLError { return (state.continuation, .failure(Failure.unreachable(error.errorCode))) }
      return (state.continuation, error.map { .failure($0) } ?? .success(state.bytes))
    }
    continuation?.resume(with: result)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    state.withLock { $0.failure = $0.failure ?? .status(response.statusCode) }
    completionHandler(nil)
  }

  private func fail(_ failure: Failure, _ task: URLSessionTask) {
    state.withLock { $0.failure = $0.failure ?? failure }
    // Foundation on other platforms than Apple's ignores `.cancel`.
    task.cancel()
  }
}
#endif
