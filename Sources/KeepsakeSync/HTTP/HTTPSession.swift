import Foundation
import KeepsakeReplication
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Sends requests over a URLSession, with limited responses, progress and exact failures.
///
/// If a connection that is kept open dies, the system repeats the request on a new connection. If that one is refused,
/// the error is "can't connect" although the first request may well have arrived. So this error isn't trusted from a
/// session that has ever had a response, and a session is replaced after a failure: only a fresh one can report
/// `unreachable`.
///
/// A session whose connection is lost in the middle is kept, because its next request connects anew and nothing is
/// wrong with it. On Linux, Foundation doesn't bear replacing it: where connections broke all the time, it overlooked
/// what arrived over a new session's connection until the request timed out (about once in 1,500 broken downloads), and
/// once, in some 300 runs of the tests, the heap was corrupt.
final class HTTPSession: Sendable {
  /// One session of the system. Requests that run at the same time share it, and what is known about it.
  private final class Life: Sendable {
    let session: URLSession
    let wasAnswered = Atomic(false)

    init(_ session: URLSession) { self.session = session }
  }
  private let idleSeconds: Double
  private let traffic: TrafficCounter?
  /// What a request is repeated with if the cloud refuses its token as too old; nil for sessions without a token.
  private let credentials: RenewableCredentials?
  private let current: Mutex<Life>

  init(idleSeconds: Double, traffic: TrafficCounter? = nil, credentials: RenewableCredentials? = nil) {
    self.idleSeconds = idleSeconds
    self.traffic = traffic
    self.credentials = credentials
    current = Mutex(Life(Self.makeSession(idleSeconds)))
  }

  deinit { current.withLock { $0.session.invalidateAndCancel() } }

  private static func makeSession(_ idleSeconds: Double) -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = idleSeconds
    configuration.httpMaximumConnectionsPerHost = SyncLimits.connections
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
    var request = request
    #if canImport(FoundationNetworking)
    if body != nil {
      // Except on Apple's platforms, Foundation can't send a body a second time: if a kept connection dies meanwhile,
      // the request hangs, using the CPU, until it times out. So a request with a body gets a connection of its own.
      request.setValue("close", forHTTPHeaderField: "Connection")
    }
    #endif
    traffic?.didSend(body?.count ?? 0)
    // The task is created while the session can't be replaced: creating a task in an invalidated session crashes the
    // process.
    let (life, task) = current.withLock { [request] life -> (Life, URLSessionTask) in
      let task =
        body.map { life.session.uploadTask(with: request, from: $0) } ?? life.session.dataTask(with: request)
      // Before anything can cancel it: what happens to a task that nobody is registered for is lost.
      (life.session.delegate as? HTTPDelegate)?.add(call, for: task)
      return (life, task)
    }
    let result: Result<HTTPURLResponse, HTTPCall.Failure> = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        call.start(continuation)
        task.resume()
      }
    } onCancel: {
      task.cancel()
    }
    switch result {
    case .success(let response):
      life.wasAnswered.store(true, ordering: .relaxed)
      return response
    case .failure(.refused(let failure)):
      throw failure
    case .failure(.error(let error)):
      if (error as? URLError)?.code != .networkConnectionLost { renew(life) }
      // Checked now and not at the start: another request may have left its connection to this one meanwhile.
      throw Self.failure(of: error, fresh: !life.wasAnswered.load(ordering: .relaxed))
    }
  }

  private func renew(_ old: Life) {
    let isOurs = current.withLock { current in
      guard current === old else { return false }
      current = Life(Self.makeSession(idleSeconds))
      return true
    }
    // Requests in flight on it end by themselves.
    if isOurs { old.session.finishTasksAndInvalidate() }
  }

  static func failure(of error: any Error, fresh: Bool) -> TransportFailure {
    let message = ErrorReason.text(error)
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
