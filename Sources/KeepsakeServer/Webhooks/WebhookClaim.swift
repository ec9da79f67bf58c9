#if Cloud
import Foundation

/// What the server that delivers an endpoint's events has said last to the others with the same database.
struct WebhookClaim: Hashable, Sendable {
  /// Empty if none does.
  var holder: Data
  /// Counts up whenever anything is said.
  var beat: Int64
  /// Counts up when the studio has everything sent again at once, through whichever server.
  var retries: Int64 = 0
  var report = WebhookReport()
}

/// How an endpoint does, as the studio is shown it at other servers, and as the next holder goes on.
struct WebhookReport: Hashable, Sendable, Codable {
  var state = WebhookBreaker.State.flowing
  /// Without a success between.
  var failures = 0
  var failingSinceMilliseconds: Int64?
  var isGone = false
  /// The last failure.
  var failure: String?
  /// How often the studio has had everything sent again, as far as the holder knows.
  var retries: Int64 = 0
}
#endif
