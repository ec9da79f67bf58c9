import Foundation
import KeepsakePlatform
import KeepsakeReplication
import Synchronization

/// Sends requests, with limited responses, progress and exact failures.
final class HTTPSession: Sendable {
  private let connections: any HTTPConnections
  private let traffic: TrafficCounter?
  /// What a request is repeated with if the cloud refuses its token as too old; nil for sessions without a token.
  private let credentials: RenewableCredentials?
  /// Whether a short request comes before a response that lasts.
  let opensConnectionsFirst: Bool

  init(
    idleSeconds: Double, traffic: TrafficCounter? = nil, credentials: RenewableCredentials? = nil,
    carrier: HTTPCarrier = .preferred
  ) {
    self.traffic = traffic
    self.credentials = credentials
    connections = carrier.connections(idleSeconds: idleSeconds)
    opensConnectionsFirst = carrier.opensConnectionsFirst
  }

  struct Answer: Sendable {
    var response: HTTPURLResponse
    var body: Data
  }

  /// Sends a request and collects its response, at most `limit` bytes of it.
  func send(
    _ request: URLRequest, body: Data? = nil, limit: Int,
    sent: (@Sendable (TransferProgress) -> Void)? = nil, received: (@Sendable (TransferProgress) -> Void)? = nil
  ) async throws(TransportFailure) -> Answer {
    let (answer, failure) = await collect(request, body: body, limit: limit, sent: sent, received: received)
    if let failure { throw failure }
    guard let answer else { throw TransportFailure(.interrupted, "The response has no headers.") }
    return answer
  }

  /// Like `send`, but returns the received part of a response also if it is interrupted: together with the failure, or
  /// only the failure if nothing was received.
  func collect(
    _ request: URLRequest, body: Data? = nil, limit: Int,
    sent: (@Sendable (TransferProgress) -> Void)? = nil, received: (@Sendable (TransferProgress) -> Void)? = nil
  ) async -> (answer: Answer?, failure: TransportFailure?) {
    let first = await collectOnce(request, body: body, limit: limit, sent: sent, received: received)
    guard let answer = first.answer, let fresh = await credentials?.renewed(after: answer, to: request, over: self)
    else { return first }
    var request = request
    request.setValue(HTTPRequests.authorization(fresh), forHTTPHeaderField: "Authorization")
    return await collectOnce(request, body: body, limit: limit, sent: sent, received: received)
  }

  /// Like `collect`, but never repeats the request with other credentials.
  func collectOnce(
    _ request: URLRequest, body: Data? = nil, limit: Int,
    sent: (@Sendable (TransferProgress) -> Void)? = nil, received: (@Sendable (TransferProgress) -> Void)? = nil
  ) async -> (answer: Answer?, failure: TransportFailure?) {
    let collected = Mutex<(head: HTTPURLResponse?, body: Data)>((nil, Data()))
    let call = HTTPCall(
      limit: limit, sent: sent,
      head: { response throws(TransportFailure) in collected.withLock { $0.head = response } },
      part: { [traffic] part, progress in
        traffic?.didReceive(part.count)
        collected.withLock { $0.body.append(part) }
        received?(progress)
      })
    var failure: TransportFailure?
    do throws(TransportFailure) {
      _ = try await run(request, body: body, call)
    } catch {
      failure = error
    }
    return collected.withLock { collected in
      (collected.head.map { Answer(response: $0, body: collected.body) }, failure)
    }
  }

  /// Sends a request and passes its response on piece by piece. `accept` checks the head first, and may throw.
  func stream(
    _ request: URLRequest, accept: @escaping @Sendable (HTTPURLResponse) throws(TransportFailure) -> Void,
    part: @escaping @Sendable (Data) -> Void
  ) async throws(TransportFailure) {
    let call = HTTPCall(limit: .max, sent: nil, head: accept) { [traffic] data, _ in
      traffic?.didReceive(data.count)
      part(data)
    }
    _ = try await run(request, body: nil, call)
  }

  private func run(
    _ request: URLRequest, body: Data?, _ call: HTTPCall
  ) async throws(TransportFailure) -> HTTPURLResponse {
    guard let scheme = request.url?.scheme?.lowercased(), ["http", "https"].contains(scheme) else {
      throw TransportFailure(.rejected, "A server's address must begin with http: or https:.")
    }
    traffic?.didSend(body?.count ?? 0)
    let cancel = connections.begin(request, body: body, for: call)
    let result: Result<HTTPURLResponse, HTTPCall.Failure> = await withTaskCancellationHandler {
      await withCheckedContinuation { call.start($0) }
    } onCancel: {
      cancel()
    }
    switch result {
    case .success(let response): return response
    case .failure(.refused(let failure)): throw failure
    case .failure(.error(let error, let mayHaveArrived)): throw Self.failure(of: error, mayHaveArrived: mayHaveArrived)
    }
  }

  static func failure(of error: any Error, mayHaveArrived: Bool) -> TransportFailure {
    let message = ErrorReason.text(error)
    guard let error = error as? URLError else { return TransportFailure(.interrupted, message) }
    switch error.code {
    case .cannotConnectToHost, .cannotFindHost, .dnsLookupFailed, .notConnectedToInternet, .dataNotAllowed,
      .internationalRoamingOff, .secureConnectionFailed, .serverCertificateUntrusted, .serverCertificateHasBadDate,
      .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid:
      return TransportFailure(mayHaveArrived ? .interrupted : .unreachable, message)
    case .timedOut where !mayHaveArrived: return TransportFailure(.unreachable, message)
    case .timedOut: return TransportFailure(.interrupted, message, isTimeout: true)
    default: return TransportFailure(.interrupted, message)
    }
  }
}
