#if os(Linux)
import CCurl
import Foundation
import KeepsakePlatform
import Synchronization

/// Makes requests with libcurl.
final class CurlConnections: HTTPConnections {
  private let worker: CurlWorker

  init(idleSeconds: Double) { worker = CurlWorker(idleSeconds: idleSeconds) }

  deinit { worker.stop() }

  func begin(_ request: URLRequest, body: Data?, for call: HTTPCall) -> @Sendable () -> Void {
    let number = worker.add(CurlWorker.Order(request: request, body: body, call: call))
    return { [weak worker] in worker?.cancel(number) }
  }
}

/// A thread that makes requests. It runs as long as there are some, and a little longer, with their connections.
final class CurlWorker: Sendable {
  struct Order: Sendable {
    var request: URLRequest
    var body: Data?
    var call: HTTPCall
  }
  private struct Work {
    var orders: [(number: Int, order: Order)] = []
    var cancelled: [Int] = []
  }
  /// The connections. Used by the thread alone; others only wake it up, which libcurl allows.
  private struct Connections: @unchecked Sendable {
    let multi: UnsafeMutableRawPointer
  }
  private struct State {
    var work = Work()
    var lastNumber = 0
    var isRunning = false
    var isStopped = false
    /// The process ends: no request is made any more.
    var isHalted = false
    /// What wakes the thread up; nil until it has any.
    var connections: Connections?
  }
  /// How long the thread sleeps at most if nothing can wake it up.
  private static let unwokenMilliseconds: Int32 = 100
  static let isReady: Bool = {
    let isReady = keepsake_curl_initialize() == CURLE_OK
    // Now, since what is registered last is called first: before OpenSSL ends.
    CurlThreads.endWithProcess()
    return isReady
  }()

  private let idleSeconds: Double
  private let state = Mutex(State())

  init(idleSeconds: Double) { self.idleSeconds = idleSeconds }

  // MARK: What others call

  /// Returns the number of the request.
  func add(_ order: Order) -> Int {
    let (number, needsThread) = state.withLock { state in
      state.lastNumber += 1
      state.work.orders.append((state.lastNumber, order))
      let needsThread = !state.isRunning
      state.isRunning = true
      if let multi = state.connections?.multi { curl_multi_wakeup(multi) }
      return (state.lastNumber, needsThread)
    }
    if needsThread, !CurlThreads.start(self) { giveUp() }
    return number
  }

  func cancel(_ number: Int) {
    state.withLock { state in
      guard state.isRunning else { return }
      state.work.cancelled.append(number)
      if let multi = state.connections?.multi { curl_multi_wakeup(multi) }
    }
  }

  /// Ends the thread as soon as it has no request.
  func stop() {
    state.withLock { state in
      state.isStopped = true
      if let multi = state.connections?.multi { curl_multi_wakeup(multi) }
    }
  }

  /// Ends the thread and all requests.
  func halt() {
    state.withLock { state in
      state.isHalted = true
      if let multi = state.connections?.multi { curl_multi_wakeup(multi) }
    }
  }

  // MARK: The thread

  func run() {
    // Where a library of libcurl's writes to a connection that was closed, the system sends a signal, which would end
    // the game.
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    guard let multi = curl_multi_init() else { return giveUp() }
    state.withLock { $0.connections = Connections(multi: multi) }
    let mayWake = curl_multi_wakeup(multi) == CURLM_OK
    var transfers: [CurlTransfer] = []
    var restUntil: UInt64?
    while let work = next(isIdle: transfers.isEmpty, restUntil) {
      begin(work, &transfers, multi)
      var wait = advance(&transfers, multi)
      if transfers.isEmpty {
        let now = DispatchTime.now().uptimeNanoseconds
        let until = restUntil ?? now + UInt64(SyncLimits.keptConnectionSeconds) * 1_000_000_000
        wait = Self.milliseconds(from: now, to: until)
        restUntil = until
      } else {
        restUntil = nil
      }
      if curl_multi_poll(multi, nil, 0, mayWake ? wait : min(wait, Self.unwokenMilliseconds), nil) != CURLM_OK {
        for transfer in transfers { end(transfer, URLError(.unknown), multi) }
        transfers = []
        usleep(UInt32(Self.unwokenMilliseconds) * 1_000)
      }
    }
    if state.withLock({ $0.isHalted }) {
      for transfer in transfers { end(transfer, URLError(.cancelled), multi) }
      transfers = []
      giveUp()
    }
    curl_multi_cleanup(multi)
  }

  /// What is to be done; nil if the thread is to end. Then nobody uses its connections any more, or it was halted.
  private func next(isIdle: Bool, _ restUntil: UInt64?) -> Work? {
    let hasRested = restUntil.map { $0 <= DispatchTime.now().uptimeNanoseconds } ?? false
    return state.withLock { state in
      if state.isHalted { return nil }
      if isIdle, state.work.orders.isEmpty, hasRested || state.isStopped {
        (state.isRunning, state.connections, state.work) = (false, nil, Work())
        return nil
      }
      defer { state.work = Work() }
      return state.work
    }
  }

  /// Ends all requests because there is no thread for them.
  private func giveUp() {
    let work = state.withLock { state in
      defer { (state.isRunning, state.connections, state.work) = (false, nil, Work()) }
      return state.work
    }
    for (_, order) in work.orders { order.call.didComplete(URLError(.unknown), mayHaveArrived: false) }
  }

  private func begin(_ work: Work, _ transfers: inout [CurlTransfer], _ multi: UnsafeMutableRawPointer) {
    for (number, order) in work.orders {
      let transfer = CurlTransfer(number, order.request, body: order.body, order.call, idleSeconds: idleSeconds)
      if let transfer, curl_multi_add_handle(multi, transfer.easy) == CURLM_OK {
        transfers.append(transfer)
      } else {
        order.call.didComplete(URLError(.badURL), mayHaveArrived: false)
      }
    }
    for number in work.cancelled {
      if let index = transfers.firstIndex(where: { $0.number == number }) {
        end(transfers.remove(at: index), URLError(.cancelled), multi)
      }
    }
  }

  /// Sends and receives all that can be. Returns for how many milliseconds there is nothing to do unless something
  /// arrives.
  private func advance(_ transfers: inout [CurlTransfer], _ multi: UnsafeMutableRawPointer) -> Int32 {
    var runningCount: Int32 = 0
    let isWorking = curl_multi_perform(multi, &runningCount) == CURLM_OK
    var messageCount: Int32 = 0
    while let message = curl_multi_info_read(multi, &messageCount)?.pointee {
      if message.msg == CURLMSG_DONE, let index = transfers.firstIndex(where: { $0.easy == message.easy_handle }) {
        end(transfers.remove(at: index), CurlTransfer.error(message.data.result), multi)
      }
    }
    let now = DispatchTime.now().uptimeNanoseconds
    var wait = Int32.max
    for index in transfers.indices.reversed() {
      let deadline = transfers[index].deadline
      if !isWorking || deadline <= now {
        end(transfers.remove(at: index), URLError(isWorking ? .timedOut : .unknown), multi)
      } else {
        wait = min(wait, Self.milliseconds(from: now, to: deadline))
      }
    }
    return wait
  }

  /// The call is told first: with an old libcurl, removing waits while a name is looked up.
  private func end(_ transfer: CurlTransfer, _ error: URLError?, _ multi: UnsafeMutableRawPointer) {
    transfer.end(error)
    curl_multi_remove_handle(multi, transfer.easy)
  }

  /// At least one, so that the moment has come when they have passed.
  private static func milliseconds(from now: UInt64, to end: UInt64) -> Int32 {
    end > now ? Int32(clamping: (end - now) / 1_000_000 + 1) : 1
  }
}
#endif
