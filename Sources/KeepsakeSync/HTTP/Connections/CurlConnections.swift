#if os(Linux)
import CCurl
import Foundation
import FoundationNetworking
import Synchronization

/// Makes requests with libcurl, which needs a thread as long as there are requests.
final class CurlConnections: HTTPConnections {
  private let worker = CurlWorker()
  private let idleSeconds: Double

  init(idleSeconds: Double) { self.idleSeconds = idleSeconds }

  deinit { worker.stop() }

  func begin(_ request: URLRequest, body: Data?, for call: HTTPCall) -> @Sendable () -> Void {
    let number = worker.add(CurlWorker.Order(request: request, body: body, call: call, idleSeconds: idleSeconds))
    return { [weak worker] in worker?.cancel(number) }
  }
}

/// The connections, and the thread that uses them. The thread keeps this object until it ends.
private final class CurlWorker: Sendable {
  struct Order: Sendable {
    var request: URLRequest
    var body: Data?
    var call: HTTPCall
    var idleSeconds: Double
  }
  /// libcurl's connections. Used by the thread, and before and after it; only waking it up is allowed at any time.
  private struct Handle: @unchecked Sendable {
    let multi: UnsafeMutableRawPointer?
  }
  private struct State {
    var orders: [(number: Int, order: Order)] = []
    var cancelled: [Int] = []
    var lastNumber = 0
    var hasThread = false
    var isStopped = false
  }
  /// How long the thread waits for the next request before it ends. The connections outlive it.
  private static let restMilliseconds: Int32 = 10_000
  /// The most bytes of the thread's stack that are ever needed: callbacks only pass data on.
  private static let stackBytes = 1 << 20
  private static let isReady = keepsake_curl_initialize() == CURLE_OK

  private let handle: Handle
  private let state = Mutex(State())

  init() {
    handle = Handle(multi: Self.isReady ? curl_multi_init() : nil)
  }

  deinit {
    if let multi = handle.multi { curl_multi_cleanup(multi) }
  }

  /// Returns the number of the request.
  func add(_ order: Order) -> Int {
    guard handle.multi != nil else {
      order.call.didComplete(URLError(.unknown), mayHaveArrived: false)
      return 0
    }
    let (number, needsThread) = state.withLock { state in
      state.lastNumber += 1
      state.orders.append((state.lastNumber, order))
      defer { state.hasThread = true }
      return (state.lastNumber, !state.hasThread)
    }
    if needsThread { startThread() } else { wakeUp() }
    return number
  }

  func cancel(_ number: Int) {
    state.withLock { $0.cancelled.append(number) }
    wakeUp()
  }

  /// Ends the thread as soon as it has no request.
  func stop() {
    state.withLock { $0.isStopped = true }
    wakeUp()
  }

  private func wakeUp() {
    if let multi = handle.multi { curl_multi_wakeup(multi) }
  }

  private func startThread() {
    let thread = Thread { [self] in
      // Where a library of libcurl's writes to a connection that was closed, the system sends a signal, which would end
      // the game.
      var signals = sigset_t()
      sigemptyset(&signals)
      sigaddset(&signals, SIGPIPE)
      pthread_sigmask(SIG_BLOCK, &signals, nil)
      if let multi = handle.multi { run(multi) }
    }
    thread.name = "keepsake.http"
    thread.stackSize = Self.stackBytes
    thread.start()
  }

  private func run(_ multi: UnsafeMutableRawPointer) {
    var transfers: [CurlTransfer] = []
    var hasRested = false
    while let (orders, cancelled) = next(isIdle: transfers.isEmpty, hasRested: hasRested) {
      for (number, order) in orders {
        let transfer = CurlTransfer(number, order.request, body: order.body, order.call, idleSeconds: order.idleSeconds)
        if let transfer, curl_multi_add_handle(multi, transfer.easy) == CURLM_OK {
          transfers.append(transfer)
        } else {
          order.call.didComplete(URLError(.badURL), mayHaveArrived: false)
        }
      }
      for number in cancelled {
        if let index = transfers.firstIndex(where: { $0.number == number }) {
          end(transfers.remove(at: index), URLError(.cancelled), multi)
        }
      }
      let wait = work(on: &transfers, multi)
      hasRested = transfers.isEmpty
      curl_multi_poll(multi, nil, 0, wait, nil)
    }
  }

  /// What is to be done; nil if the thread is to end.
  private func next(isIdle: Bool, hasRested: Bool) -> (orders: [(number: Int, order: Order)], cancelled: [Int])? {
    state.withLock { state in
      if state.orders.isEmpty, isIdle, hasRested || state.isStopped {
        state.hasThread = false
        return nil
      }
      defer { (state.orders, state.cancelled) = ([], []) }
      return (state.orders, state.cancelled)
    }
  }

  /// Sends and receives all that can be. Returns for how many milliseconds there is nothing to do unless something
  /// arrives.
  private func work(on transfers: inout [CurlTransfer], _ multi: UnsafeMutableRawPointer) -> Int32 {
    var runningCount: Int32 = 0
    let isWorking = curl_multi_perform(multi, &runningCount) == CURLM_OK
    var messageCount: Int32 = 0
    while let message = curl_multi_info_read(multi, &messageCount)?.pointee {
      if message.msg == CURLMSG_DONE, let index = transfers.firstIndex(where: { $0.easy == message.easy_handle }) {
        end(transfers.remove(at: index), CurlTransfer.error(message.data.result), multi)
      }
    }
    let now = DispatchTime.now().uptimeNanoseconds
    var wait = transfers.isEmpty ? Self.restMilliseconds : Int32.max
    for index in transfers.indices.reversed() {
      let deadline = transfers[index].deadline
      if !isWorking || deadline <= now {
        end(transfers.remove(at: index), URLError(isWorking ? .timedOut : .unknown), multi)
      } else {
        wait = min(wait, Int32(clamping: (deadline - now) / 1_000_000 + 1))
      }
    }
    return transfers.isEmpty ? min(wait, Self.restMilliseconds) : wait
  }

  /// The call comes first: while a name is looked up, removing waits for it.
  private func end(_ transfer: CurlTransfer, _ error: URLError?, _ multi: UnsafeMutableRawPointer) {
    transfer.end(error)
    curl_multi_remove_handle(multi, transfer.easy)
  }
}
#endif
