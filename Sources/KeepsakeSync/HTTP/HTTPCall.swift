import Foundation
import KeepsakePlatform
import KeepsakeReplication
import Synchronization

/// One request in flight: what its connections tell of it.
final class HTTPCall: Sendable {
  enum Failure: Error {
    /// We don't accept the response.
    case refused(TransportFailure)
    /// The connection failed. The cloud may have received the request, or certainly hasn't.
    case error(any Error, mayHaveArrived: Bool)
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

  /// Takes the head of the response; nil if it has none. Returns whether to continue.
  func didReceive(_ response: URLResponse?) -> Bool {
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

  /// Whether a part of the response wasn't accepted.
  var isRefused: Bool { state.withLock { $0.refusal != nil } }

  /// - Parameter mayHaveArrived: Whether a request that failed may have been received.
  func didComplete(_ error: (any Error)?, mayHaveArrived: Bool) {
    let (continuation, result) = state.withLock {
      state -> (CheckedContinuation<Result<HTTPURLResponse, Failure>, Never>?, Result<HTTPURLResponse, Failure>) in
      defer { state.continuation = nil }
      let result: Result<HTTPURLResponse, Failure> =
        if let refusal = state.refusal {
          .failure(.refused(refusal))
        } else if let error {
          .failure(.error(error, mayHaveArrived: mayHaveArrived))
        } else if let response = state.response {
          .success(response)
        } else {
          .failure(.error(URLError(.badServerResponse), mayHaveArrived: true))
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
