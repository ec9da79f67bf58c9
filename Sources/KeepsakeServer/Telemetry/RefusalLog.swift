#if Cloud
import HTTPTypes
import Logging
import ServiceLifecycle
import Synchronization

/// Counts and logs what the server refuses: of each kind a few lines in a minute one by one, and then how many were
/// left out. So an attack is seen in the log, and doesn't fill it.
///
/// What a limit refuses is counted by its kind, with ``count(_:from:)``; the response to it is then logged as debugging
/// only.
final class RefusalLog: Service, Sendable {
  /// Lines of one kind in one window.
  static let linesPerWindow = 5
  static let windowMilliseconds: Int64 = 60_000
  private static let sweepSeconds = 10

  private struct Window {
    var since: Int64
    var count = 0
    /// Of the last one that was left out.
    var level = Logger.Level.debug

    var leftOut: Int { max(0, count - RefusalLog.linesPerWindow) }
  }
  /// What a limit refuses, before or beside a response.
  enum Kind: String, Sendable, CaseIterable {
    /// A connection, because there are too many, in all or from one address.
    case connection
    /// A connection whose first bytes don't say whom a trusted proxy speaks for.
    case proxyHeader = "proxy_header"
    /// A connection that sent no request in time.
    case noRequest = "no_request"
    case slowBody = "slow_body"
    case slowReader = "slow_reader"
    /// A body longer than any route accepts.
    case endlessBody = "endless_body"
    /// A request beyond a rate.
    case addressRate = "address_rate"
    case deviceRate = "device_rate"
    case playerRate = "player_rate"
    case appRate = "app_rate"
    case registrationRate = "registration_rate"
    case workRate = "work_rate"
    /// A request that asks for more than any may.
    case tooMuchWork = "too_much_work"
    /// JSON with too many values, or too deep.
    case tooManyTokens = "too_many_tokens"
    /// No room for another body or response.
    case memory
    /// Large requests that wait for their turn.
    case heavyQueue = "heavy_queue"
    case guesses
    /// No room for another unfinished upload.
    case uploads
  }
  private let metrics: ServerMetrics
  private let logger: Logger
  private let clock: @Sendable () -> Int64
  private let windows = Mutex<[String: Window]>([:])
  private let kinds = Mutex<[Kind: Int]>([:])

  init(metrics: ServerMetrics, logger: Logger, clock: @escaping @Sendable () -> Int64) {
    (self.metrics, self.logger, self.clock) = (metrics, logger, clock)
  }

  /// What a line says about a refused request. Never a token, a key, or anything of a body or a path.
  struct Circumstances: Sendable {
    var method: String
    /// The template of the route; nil if there is none.
    var route: String?
    var peer: String
  }

  /// Records that a request got an error as its response.
  func refused(_ error: APIError, _ circumstances: @autoclosure () -> Circumstances) {
    metrics.refused(error.code)
    let level = error.isCounted ? .debug : Self.level(of: error.code)
    guard level >= logger.logLevel else { return }
    refused(error.code.rawValue, level) {
      let circumstances = circumstances()
      return [
        "status": "\(error.status.code)", "method": "\(circumstances.method.prefix(16))",
        "route": "\(circumstances.route ?? "none")", "peer": "\(circumstances.peer)",
      ]
    }
  }

  /// Records what a limit refused.
  ///
  /// - Parameter peer: The address that it concerns, for the log.
  func count(_ kind: Kind, from peer: PeerAddress? = nil) {
    kinds.withLock { $0[kind, default: 0] += 1 }
    metrics.limited(kind.rawValue)
    refused(kind.rawValue, .warning) { peer.map { ["peer": "\($0)"] } ?? [:] }
  }

  /// Records what a limit refused, and returns the error that the client gets.
  func count(_ kind: Kind, from peer: PeerAddress? = nil, as error: APIError) -> APIError {
    count(kind, from: peer)
    var error = error
    error.isCounted = true
    return error
  }

  /// How often each kind occurred since the start; kinds that never did are left out.
  var counts: [Kind: Int] { kinds.withLock { $0 } }

  /// Records a refusal of any kind, also outside of requests.
  ///
  /// - Parameters:
  ///   - kind: One of a few.
  ///   - metadata: What else the line says; only called if there is one.
  func refused(_ kind: String, _ level: Logger.Level, _ metadata: () -> Logger.Metadata) {
    let now = clock()
    let (ended, isLogged) = windows.withLock { windows -> (Window?, Bool) in
      var ended: Window?
      var window = windows[kind] ?? Window(since: now)
      // Also if the clock was set back.
      if now < window.since || now &- window.since >= Self.windowMilliseconds {
        ended = window
        window = Window(since: now)
      }
      window.count += 1
      window.level = level
      windows[kind] = window
      return (ended, window.count <= Self.linesPerWindow)
    }
    if let ended { summarize(kind, ended) }
    guard isLogged else { return }
    logger.log(level: level, "Refused", metadata: metadata().merging(["kind": "\(kind)"]) { $1 })
  }

  /// Logs what was left out in windows that have ended, or in all windows.
  func sweep(all: Bool = false) {
    let now = clock()
    let ended = windows.withLock { windows in
      let ended = windows.filter { all || now < $0.value.since || now &- $0.value.since >= Self.windowMilliseconds }
      for kind in ended.keys { windows[kind] = nil }
      return ended
    }
    for (kind, window) in ended.sorted(by: { $0.key < $1.key }) { summarize(kind, window) }
  }

  private func summarize(_ kind: String, _ window: Window) {
    guard window.leftOut > 0 else { return }
    logger.log(
      level: window.level, "Refused more of the same kind",
      metadata: ["kind": "\(kind)", "leftOut": "\(window.leftOut)", "seconds": "\(Self.windowMilliseconds / 1_000)"])
  }

  /// RefusalLog that devices which do nothing wrong get are worth no line by default.
  private static func level(of code: APIError.Code) -> Logger.Level {
    switch code {
    case .contentMissing, .baseMissing, .wrongOffset, .superseded, .badRange, .frameMismatch, .purchaseUnknown,
      .purchaseForgotten, .notCharged, .notPurchase, .playerUnknown:
      .debug
    case .unauthorized, .badAppKey, .tokenSuperseded, .tooManyGuesses, .tooManyStreams, .tooManyUploads, .busy,
      .storageFull, .server:
      .warning
    default: .notice
    }
  }

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        do {
          try await Task.sleep(for: .seconds(Self.sweepSeconds))
        } catch {
          break
        }
        self.sweep()
      }
    }
    sweep(all: true)
  }
}
#endif
