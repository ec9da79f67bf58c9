#if Cloud
import CoreMetrics
import HTTPTypes
import Synchronization

/// What a server measures about itself. Labels have values from short lists only: route templates, methods, statuses,
/// kinds; never a path, an address or an id of a client.
final class ServerMetrics: Sendable {
  /// What each metric means, by its name. docs/COMMAND.md has the same.
  static let descriptions: [String: String] = [
    "keepsake_requests_total": "Requests that got a response, by method, route and status.",
    "keepsake_request_seconds": "From a request's head to the first byte of its response, by route.",
    "keepsake_requests_active": "Requests whose response hasn't begun.",
    "keepsake_refusals_total": "Error responses, by the code that the client gets.",
    "keepsake_limited_total": "Requests and connections beyond a limit, by its kind.",
    "keepsake_received_bytes_total": "Bytes of request bodies.",
    "keepsake_sent_bytes_total": "Bytes of response bodies.",
    "keepsake_event_streams": "Open event streams.",
    "keepsake_commit_queue": "Transactions that wait for the writer.",
    "keepsake_commit_group_size": "Transactions that were committed together.",
    "keepsake_commit_seconds": "From the beginning of a group of transactions to its commit.",
    "keepsake_commit_failures_total": "Groups of transactions that failed as a whole.",
    "keepsake_pruned_versions_total": "Replaced versions that were removed.",
    "keepsake_pruned_ids_total": "Ids of such versions that were forgotten.",
    "keepsake_pruned_bytes_total": "How many bytes players have less because of that, as quotas count them.",
    "keepsake_webhook_requests_total": "Events that were sent to a webhook, by endpoint and result.",
    "keepsake_webhook_waiting": "Events that wait for a webhook, by endpoint; counted once a minute.",
    "keepsake_webhook_dead_total": "Events that have become dead letters, by endpoint.",
    "keepsake_webhook_dropped_total": "Dead letters that were dropped, by endpoint.",
    "keepsake_storage_bytes": "Disk space, by kind: database, log, contents, incoming, free.",
    "keepsake_ready": "1 if the server is ready for requests, 0 if it isn't.",
    "keepsake_tls_certificate_expires_seconds": "When the certificate expires, in seconds since 1970.",
    "process_resident_memory_bytes": "Memory of the process.",
    "process_cpu_seconds_total": "Processor time of the process.",
    "process_open_fds": "Open file descriptors.",
    "process_max_fds": "How many file descriptors may be open.",
  ]

  private struct Answered: Hashable {
    var method: String
    var route: String
    var status: Int
  }
  private struct Caches {
    var requests: [Answered: Counter] = [:]
    var seconds: [String: Timer] = [:]
    var refusals: [APIError.Code: Counter] = [:]
    var limited: [String: Counter] = [:]
  }
  private static let methods: Set<String> = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]

  let factory: any MetricsFactory
  private let caches = Mutex(Caches())
  private let active: Meter
  private let received: Counter
  private let sent: Counter
  private let groupSize: Recorder
  private let groupSeconds: Timer
  private let groupFailures: Counter
  private let prunedVersions: Counter
  private let prunedIDs: Counter
  private let prunedBytes: Counter

  init(_ factory: any MetricsFactory) {
    self.factory = factory
    active = Meter(label: "keepsake_requests_active", factory: factory)
    received = Counter(label: "keepsake_received_bytes_total", factory: factory)
    sent = Counter(label: "keepsake_sent_bytes_total", factory: factory)
    groupSize = Recorder(label: "keepsake_commit_group_size", factory: factory)
    groupSeconds = Timer(label: "keepsake_commit_seconds", factory: factory)
    groupFailures = Counter(label: "keepsake_commit_failures_total", factory: factory)
    prunedVersions = Counter(label: "keepsake_pruned_versions_total", factory: factory)
    prunedIDs = Counter(label: "keepsake_pruned_ids_total", factory: factory)
    prunedBytes = Counter(label: "keepsake_pruned_bytes_total", factory: factory)
  }

  // MARK: Requests

  func requestBegan() { active.increment() }

  /// - Parameters:
  ///   - route: The template of the route, such as `/v1/devices/{device}`; nil if there is none.
  ///   - status: Nil if the connection ended without a response.
  func requestEnded(_ method: HTTPRequest.Method, route: String?, status: Int?, nanoseconds: Int64) {
    active.decrement()
    guard let status else { return }
    let route = route ?? "none"
    let answered = Answered(
      method: Self.methods.contains(method.rawValue) ? method.rawValue : "other", route: route, status: status)
    let (counter, timer) = caches.withLock { caches in
      let counter =
        caches.requests[answered]
        ?? Counter(
          label: "keepsake_requests_total",
          dimensions: [("method", answered.method), ("route", route), ("status", String(status))], factory: factory)
      caches.requests[answered] = counter
      let timer =
        caches.seconds[route]
        ?? Timer(label: "keepsake_request_seconds", dimensions: [("route", route)], factory: factory)
      caches.seconds[route] = timer
      return (counter, timer)
    }
    counter.increment()
    timer.recordNanoseconds(nanoseconds)
  }

  func refused(_ code: APIError.Code) {
    let counter = caches.withLock { caches in
      let counter =
        caches.refusals[code]
        ?? Counter(label: "keepsake_refusals_total", dimensions: [("code", code.rawValue)], factory: factory)
      caches.refusals[code] = counter
      return counter
    }
    counter.increment()
  }

  /// - Parameter kind: One of a few.
  func limited(_ kind: String) {
    let counter = caches.withLock { caches in
      let counter =
        caches.limited[kind]
        ?? Counter(label: "keepsake_limited_total", dimensions: [("kind", kind)], factory: factory)
      caches.limited[kind] = counter
      return counter
    }
    counter.increment()
  }

  func didReceive(_ bytes: Int) { received.increment(by: bytes) }

  func didSend(_ bytes: Int) { sent.increment(by: bytes) }

  // MARK: Commits

  func committed(_ transactions: Int, nanoseconds: Int64, failed: Bool) {
    groupSize.record(transactions)
    groupSeconds.recordNanoseconds(nanoseconds)
    if failed { groupFailures.increment() }
  }

  // MARK: Pruning

  /// - Parameter bytes: By how many a player has less.
  func pruned(versions: Int, ids: Int, bytes: Int64) {
    prunedVersions.increment(by: versions)
    prunedIDs.increment(by: ids)
    prunedBytes.increment(by: max(0, bytes))
  }

  // MARK: Webhooks

  /// - Parameter endpoint: The name of one that is configured.
  func webhookAnswered(_ endpoint: String, isDelivered: Bool) {
    Counter(
      label: "keepsake_webhook_requests_total",
      dimensions: [("endpoint", endpoint), ("result", isDelivered ? "delivered" : "failed")], factory: factory
    ).increment()
  }

  func webhookDied(_ endpoint: String, _ count: Int) {
    guard count > 0 else { return }
    Counter(label: "keepsake_webhook_dead_total", dimensions: [("endpoint", endpoint)], factory: factory)
      .increment(by: count)
  }

  func webhookDropped(_ endpoint: String, _ count: Int) {
    guard count > 0 else { return }
    Counter(label: "keepsake_webhook_dropped_total", dimensions: [("endpoint", endpoint)], factory: factory)
      .increment(by: count)
  }

  // MARK: What is read when it is asked for

  /// Sets a number that is measured when the metrics are read.
  func set(_ name: String, _ dimensions: [(String, String)] = [], to value: Double) {
    Meter(label: name, dimensions: dimensions, factory: factory).set(value)
  }

  /// Adds to a counter what it has grown by, as the system counts it.
  func setTotal(_ name: String, to value: Double) {
    let counter = factory.makeFloatingPointCounter(label: name, dimensions: [])
    counter.reset()
    counter.increment(by: value)
  }
}
#endif
