#if Cloud
import Logging
import Synchronization

/// Counts what the server refused, by kind, and logs a sample: the first of each kind at once, and then at most one
/// line for each kind in `logMilliseconds`, with how many there were.
final class Refusals: Sendable {
  /// Why something was refused.
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
  }
  private struct Entry {
    var count = 0
    var unlogged = 0
    var loggedMilliseconds: Int64?
  }
  static let logMilliseconds: Int64 = 10_000

  private let logger: Logger
  private let clock: @Sendable () -> Int64
  private let entries = Mutex<[Kind: Entry]>([:])

  init(logger: Logger, clock: @escaping @Sendable () -> Int64) {
    self.logger = logger
    self.clock = clock
  }

  /// Counts a refusal.
  ///
  /// - Parameter peer: The address that it concerns, for the log.
  func count(_ kind: Kind, from peer: PeerAddress? = nil) {
    let now = clock()
    let logged: Int? = entries.withLock { entries in
      var entry = entries[kind] ?? Entry()
      entry.count += 1
      entry.unlogged += 1
      defer { entries[kind] = entry }
      if let last = entry.loggedMilliseconds, now >= last, now - last < Self.logMilliseconds { return nil }
      entry.loggedMilliseconds = now
      defer { entry.unlogged = 0 }
      return entry.unlogged
    }
    guard let logged else { return }
    var metadata: Logger.Metadata = ["kind": "\(kind.rawValue)", "count": "\(logged)"]
    if let peer { metadata["peer"] = "\(peer)" }
    logger.warning("Refused by a limit", metadata: metadata)
  }

  /// How often each kind occurred since the start; kinds that never did are left out.
  var counts: [Kind: Int] { entries.withLock { $0.mapValues(\.count) } }
}
#endif
