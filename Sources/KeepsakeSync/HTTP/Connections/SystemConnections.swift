import Foundation
import KeepsakePlatform
import Synchronization

/// Makes requests with a URLSession.
///
/// If a connection that is kept open dies, the system repeats the request on a new connection. If that one is refused,
/// the error is "can't connect" although the first request may well have arrived. So this error isn't trusted from a
/// session that has ever had a response, and a session is replaced after a failure: only a fresh one certainly failed
/// to connect.
///
/// A session whose connection is lost in the middle is kept, because its next request connects anew and nothing is
/// wrong with it.
final class SystemConnections: HTTPConnections {
  private let idleSeconds: Double
  private let current: Mutex<URLSession>

  init(idleSeconds: Double) {
    self.idleSeconds = idleSeconds
    current = Mutex(Self.makeSession(idleSeconds))
  }

  deinit { current.withLock { $0.invalidateAndCancel() } }

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

  func begin(_ request: URLRequest, body: Data?, for call: HTTPCall) -> @Sendable () -> Void {
    var request = request
    if body != nil, !HostSystem.current.isApple {
      // Except on Apple's platforms, Foundation can't send a body a second time: if a kept connection dies meanwhile,
      // the request hangs, using the CPU, until it times out. So a request with a body gets a connection of its own.
      request.setValue("close", forHTTPHeaderField: "Connection")
    }
    // The task is created while the session can't be replaced: creating a task in an invalidated session crashes the
    // process.
    let task = current.withLock { [request] session -> URLSessionTask in
      let task = body.map { session.uploadTask(with: request, from: $0) } ?? session.dataTask(with: request)
      // Before anything can cancel it: what happens to a task that nobody is registered for is lost.
      (session.delegate as? HTTPDelegate)?.add(call, for: task) { [weak self, weak session] in
        if let session { self?.replace(session) }
      }
      return task
    }
    task.resume()
    return { task.cancel() }
  }

  private func replace(_ old: URLSession) {
    let isOurs = current.withLock { current in
      guard current === old else { return false }
      current = Self.makeSession(idleSeconds)
      return true
    }
    // Requests in flight on it end by themselves.
    if isOurs { old.finishTasksAndInvalidate() }
  }
}

/// Passes the session's callbacks on to the request that they are about.
private final class HTTPDelegate: NSObject, URLSessionDataDelegate, Sendable {
  private struct Entry {
    var call: HTTPCall
    var failed: @Sendable () -> Void
  }
  private let entries = Mutex<[Int: Entry]>([:])
  private let wasAnswered = Atomic(false)

  /// - Parameter failed: Called before the call is told that it failed, but not for a connection that was lost.
  func add(_ call: HTTPCall, for task: URLSessionTask, failed: @escaping @Sendable () -> Void) {
    entries.withLock { $0[task.taskIdentifier] = Entry(call: call, failed: failed) }
  }

  private func call(of task: URLSessionTask) -> HTTPCall? {
    entries.withLock { $0[task.taskIdentifier]?.call }
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
    guard let entry = entries.withLock({ $0.removeValue(forKey: task.taskIdentifier) }) else { return }
    if error == nil { wasAnswered.store(true, ordering: .relaxed) }
    if let error, !entry.call.isRefused, (error as? URLError)?.code != .networkConnectionLost { entry.failed() }
    // Asked now and not at the start: another request may have left its connection to this one meanwhile. And what
    // times out may be the request or the connecting.
    let mayHaveArrived = wasAnswered.load(ordering: .relaxed) || (error as? URLError)?.code == .timedOut
    entry.call.didComplete(error, mayHaveArrived: mayHaveArrived)
  }

  /// A cloud doesn't redirect its devices; a redirection comes from a captive portal.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    completionHandler(nil)
  }
}
