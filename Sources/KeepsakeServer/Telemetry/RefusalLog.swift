#if Cloud
import HTTPTypes
import Logging
import ServiceLifecycle
import Synchronization

/// Counts and logs what the server refuses: of each kind a few lines in a minute one by one, and then how many were
/// left out. So an attack is seen in the log, and doesn't fill it.
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
  private let metrics: ServerMetrics
  private let logger: Logger
  private let clock: @Sendable () -> Int64
  private let windows = Mutex<[String: Window]>([:])

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
    let level = Self.level(of: error.code)
    guard level >= logger.logLevel else { return }
    refused(error.code.rawValue, level) {
      let circumstances = circumstances()
      return [
        "status": "\(error.status.code)", "method": "\(circumstances.method.prefix(16))",
        "route": "\(circumstances.route ?? "none")", "peer": "\(circumstances.peer)",
      ]
    }
  }

  /// Records what a limit refused, before or beside the response.
  func limited(_ kind: String, _ peer: PeerAddress?) {
    metrics.limited(kind)
    refused(kind, .warning) { peer.map { ["peer": "\($0)"] } ?? [:] }
  }

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

  /// Refusals that devices which do nothing wrong get are worth no line by default, nor those that a limit has logged.
  private static func level(of code: APIError.Code) -> Logger.Level {
    switch code {
    case .contentMissing, .baseMissing, .wrongOffset, .superseded, .badRange, .frameMismatch, .purchaseUnknown,
      .purchaseForgotten, .notCharged, .notPurchase, .playerUnknown, .tooManyRequests:
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
