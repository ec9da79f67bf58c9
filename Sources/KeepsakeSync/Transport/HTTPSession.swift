import Foundation
import KeepsakeReplication
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Requests over a URLSession, with bounded answers, progress and exact failures.
///
/// A connection that is kept open and then dies makes the system try the request once more on a new connection. If that one
/// is refused, the error says "can't connect" although the first may well have arrived. So a session that has ever been
/// answered is never believed when it says so, and is replaced after any failure: only a fresh one can tell `unreachable`.
final class HTTPSession: Sendable {
  private struct Current {
    var session: URLSession
    var wasAnswered = false
    var number = 0
  }
  private let idleSeconds: Double
  private let traffic: TrafficCounter?
  private let current: Mutex<Current>

  init(idleSeconds: Double, traffic: TrafficCounter? = nil) {
    self.idleSeconds = idleSeconds
    self.traffic = traffic
    current = Mutex(Current(session: Self.makeSession(idleSeconds)))
  }

  deinit { current.withLock { $0.session.invalidateAndCancel() } }

  private static func makeSession(_ idleSeconds: Double) -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = idleSeconds
    configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
    configuration.urlCache = nil
    configuration.httpCookieStorage = nil
    configuration.httpShouldSetCookies = false
    return URLSession(configuration: configuration, delegate: HTTPDelegate(), delegateQueue: nil)
  }

  struct Answer: Sendable {
    var response: HTTPURLResponse
    var body: Data
  }

  /// Sends a request and collects its answer, at most `limit` bytes of it.
  func send(
    _ request: URLRequest, body: Data? = nil, limit: Int,
    sent: (@Sendable (TransferProgress) -> Void)? = nil, received: (@Sendable (TransferProgress) -> Void)? = nil
  ) async throws(TransportFailure) -> Answer {
    let collected = Mutex(Data())
    let exchange = HTTPExchange(limit: limit, sent: sent) { [traffic] part, progress in
      traffic?.didReceive(part.count)
      collected.withLock { $0.append(part) }
      received?(progress)
    }
    let response = try await run(request, body: body, exchange)
    return Answer(response: response, body: collected.withLock { $0 })
  }

  /// Sends a request and hands over its answer piece by piece. `accept` looks at the head first, and may throw.
  func stream(
    _ request: URLRequest, accept: @escaping @Sendable (HTTPURLResponse) throws(TransportFailure) -> Void,
    part: @escaping @Sendable (Data) -> Void
  ) async throws(TransportFailure) {
    let exchange = HTTPExchange(limit: .max, sent: nil, head: accept) { [traffic] data, _ in
      traffic?.didReceive(data.count)
      part(data)
    }
    _ = try await run(request, body: nil, exchange)
  }

  private func run(
    _ request: URLRequest, body: Data?, _ exchange: HTTPExchange
  ) async throws(TransportFailure) -> HTTPURLResponse {
    guard let scheme = request.url?.scheme?.lowercased(), ["http", "https"].contains(scheme) else {
      throw TransportFailure(.rejected, "A server's address begins with http: or https:.")
    }
    var request = request
    #if canImport(FoundationNetworking)
    if body != nil {
      // Off Apple's platforms, Foundation can't send a body a second time: where a kept connection dies under it, the request
      // hangs, busily, until its time is over. So what has a body gets a connection of its own.
      request.setValue("close", forHTTPHeaderField: "Connection")
    }
    #endif
    let (session, wasAnswered, number) = current.withLock { ($0.session, $0.wasAnswered, $0.number) }
    traffic?.didSend(body?.count ?? 0)
    let task = body.map { session.uploadTask(with: request, from: $0) } ?? session.dataTask(with: request)
    let result: Result<HTTPURLResponse, HTTPExchange.Failure> = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        exchange.start(continuation)
        (session.delegate as? HTTPDelegate)?.add(exchange, for: task)
        task.resume()
      }
    } onCancel: {
      task.cancel()
    }
    switch result {
    case .success(let response):
      current.withLock { if $0.number == number { $0.wasAnswered = true } }
      return response
    case .failure(.refused(let failure)):
      throw failure
    case .failure(.error(let error)):
      renew(number)
      throw Self.failure(of: error, fresh: !wasAnswered)
    }
  }

  private func renew(_ number: Int) {
    let old = current.withLock { current -> URLSession? in
      guard current.number == number else { return nil }
      let old = current.session
      current = Current(session: Self.makeSession(idleSeconds), number: number + 1)
      return old
    }
    // Requests that are under way on it end by themselves.
    old?.finishTasksAndInvalidate()
  }

  static func failure(of error: any Error, fresh: Bool) -> TransportFailure {
    let message = error.localizedDescription
    guard let error = error as? URLError else { return TransportFailure(.interrupted, message) }
    switch error.code {
    case .cannotConnectToHost, .cannotFindHost, .dnsLookupFailed, .notConnectedToInternet, .dataNotAllowed,
      .internationalRoamingOff, .secureConnectionFailed, .serverCertificateUntrusted, .serverCertificateHasBadDate,
      .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid:
      return TransportFailure(fresh ? .unreachable : .interrupted, message)
    default:
      return TransportFailure(.interrupted, message)
    }
  }
}
