import Foundation
import KeepsakeReplication
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// One request in flight, as reported by the session's delegate.
final class HTTPCall: Sendable {
  enum Failure: Error {
    /// We don't accept the response.
    case refused(TransportFailure)
    /// The connection failed.
    case error(any Error)
  }
  private struct State {
    var continuation: CheckedContinuation<Result<HTTPURLResponse, Failure>, Never>?
    /// How it ended, if that was before anybody waited for it.
    var result: Result<HTTPURLResponse, Failure>?
    var response: HTTPURLResponse?
    var refusal: TransportFailure?
    var received: Int64 = 0
  }
  private let limit: Int
  private let sent: (@Sendable (TransferProgress) -> Void)?
  private let head: (@Sendable (HTTPURLResponse) throws(TransportFailure) -> Void)?
  private let part: @Sendable (Data, TransferProgress) -> Void
  private let state = Mutex(State())

  init(
    limit: Int, sent: (@Sendable (TransferProgress) -> Void)?,
    head: (@Sendable (HTTPURLResponse) throws(TransportFailure) -> Void)? = nil,
    part: @escaping @Sendable (Data, TransferProgress) -> Void
  ) {
    self.limit = limit
    self.sent = sent
    self.head = head
    self.part = part
  }

  func start(_ continuation: CheckedContinuation<Result<HTTPURLResponse, Failure>, Never>) {
    let result = state.withLock { state in
      if state.result == nil { state.continuation = continuation }
      return state.result
    }
    if let result { continuation.resume(returning: result) }
  }

  func didSend(_ bytes: Int64, of inAll: Int64) {
    sent?(TransferProgress(bytesDone: bytes, bytesInAll: inAll > 0 ? inAll : nil))
  }

  /// Returns whether to continue.
  func didReceive(_ response: URLResponse) -> Bool {
    guard let response = response as? HTTPURLResponse else {
      refuse(TransportFailure(.interrupted, "The response isn't HTTP."))
      return false
    }
    state.withLock { $0.response = response }
    do {
      try head?(response)
    } catch {
      refuse(error)
      return false
    }
    if response.expectedContentLength > Int64(limit) {
      refuse(Self.tooLarge)
      return false
    }
    return true
  }

  /// Returns whether to continue.
  func didReceive(_ data: Data) -> Bool {
    let progress = state.withLock { state -> TransferProgress in
      state.received += Int64(data.count)
      let inAll = state.response?.expectedContentLength ?? -1
      return TransferProgress(bytesDone: state.received, bytesInAll: inAll > 0 ? inAll : nil)
    }
    guard progress.bytesDone <= Int64(limit) else {
      refuse(Self.tooLarge)
      return false
    }
    part(data, progress)
    return true
  }

  func didComplete(_ error: (any Error)?) {
    let (continuation, result) = state.withLock {
      state -> (CheckedContinuation<Result<HTTPURLResponse, Failure>, Never>?, Result<HTTPURLResponse, Failure>) in
      defer { state.continuation = nil }
      let result: Result<HTTPURLResponse, Failure> =
        if let refusal = state.refusal {
          .failure(.refused(refusal))
        } else if let error {
          .failure(.error(error))
        } else if let response = state.response {
          .success(response)
        } else {
          .failure(.error(URLError(.badServerResponse)))
        }
      state.result = result
      return (state.continuation, result)
    }
    continuation?.resume(returning: result)
  }

  private func refuse(_ failure: TransportFailure) {
    state.withLock { if $0.refusal == nil { $0.refusal = failure } }
  }

  private static let tooLarge = TransportFailure(
    .interrupted, "The response is larger than any response of a Keepsake server.")
}

/// Passes the session's callbacks on to the request that they are about.
final class HTTPDelegate: NSObject, URLSessionDataDelegate, Sendable {
  private let calls = Mutex<[Int: HTTPCall]>([:])

  func add(_ call: HTTPCall, for task: URLSessionTask) {
    calls.withLock { $0[task.taskIdentifier] = call }
  }

  private func call(of task: URLSessionTask) -> HTTPCall? {
    calls.withLock { $0[task.taskIdentifier] }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    call(of: task)?.didSend(totalBytesSent, of: totalBytesExpectedToSend)
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    let goesOn = call(of: dataTask)?.didReceive(response) == true
    // Foundation on other platforms than Apple's ignores `.cancel`.
    if !goesOn { dataTask.cancel() }
    completionHandler(goesOn ? .allow : .cancel)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    if call(of: dataTask)?.didReceive(data) != true { dataTask.cancel() }
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let call = calls.withLock { $0.removeValue(forKey: task.taskIdentifier) }
    call?.didComplete(error)
  }

  /// A cloud doesn't redirect its devices; a redirection comes from a captive portal.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    completionHandler(nil)
  }
}
