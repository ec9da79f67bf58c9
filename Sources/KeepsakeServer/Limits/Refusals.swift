#if Cloud
import Synchronization

/// Counts what a limit refused, by kind, and has it logged and measured.
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
  private let log: RefusalLog
  private let kinds = Mutex<[Kind: Int]>([:])

  init(_ log: RefusalLog) { self.log = log }

  /// Counts a refusal.
  ///
  /// - Parameter peer: The address that it concerns, for the log.
  func count(_ kind: Kind, from peer: PeerAddress? = nil) {
    kinds.withLock { $0[kind, default: 0] += 1 }
    log.limited(kind.rawValue, peer)
  }

  /// How often each kind occurred since the start; kinds that never did are left out.
  var counts: [Kind: Int] { kinds.withLock { $0 } }
}
#endif
