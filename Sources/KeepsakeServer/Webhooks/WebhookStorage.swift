#if Cloud
import Foundation
import KeepsakeReplication

/// What a backend is told, kept until it has it.
protocol WebhookStorage: Sendable {
  /// Writes events; nil if no backend is told of anything.
  var outbox: WebhookOutbox? { get }

  /// Returns events after one, and for each lane the next one after its own, as of one moment.
  ///
  /// - Parameter limit: Of the events; 0 for none.
  func webhookEvents(
    of endpoint: String, after number: Int64, limit: Int, refills: [Data: Int64]
  ) async throws -> (found: [WebhookQueue.Pick], next: [Data: Int64?])
  /// Returns those of these events that wait.
  func webhookRows(_ numbers: [Int64], of endpoint: String) async throws -> [WebhookRow]
  /// Removes delivered events, and has others become dead letters.
  func settleWebhooks(
    of endpoint: String, delivered: [Int64], dead: [(number: Int64, reason: String)], now: Int64
  ) async throws
  func webhookCounts(of endpoint: String) async throws -> WebhookCounts

  // MARK: Bounds

  /// Has events beyond the bounds become dead letters, and drops dead letters beyond theirs; as many as one transaction
  /// should move. The oldest first, but before them those of players who have much more than others: nobody's events
  /// may be crowded out by one who saves all the time.
  ///
  /// - Parameter isAgeing: Whether anything may be too old; not while the clock may be wrong.
  /// - Returns: How many became dead letters, how many were dropped, and whether there are more.
  func boundWebhooks(
    of endpoint: String, _ counts: WebhookCounts, _ limits: WebhookLimits, now: Int64, isAgeing: Bool
  ) async throws -> (buried: Int, dropped: Int, hasMore: Bool)
  /// The names of all endpoints for which there are events or dead letters; others may be among them.
  func webhookEndpoints() async throws -> Set<String>
  /// Has what waits for an endpoint that isn't configured any more become dead letters; as many as one transaction
  /// should move.
  ///
  /// - Returns: Whether there are more.
  func retireWebhooks(of endpoint: String, _ limits: WebhookLimits, now: Int64) async throws -> Bool

  // MARK: Dead letters

  func deadWebhooks(of endpoint: String, after number: Int64, limit: Int) async throws -> [WebhookRow]
  /// Has dead letters be sent again, each after everything that waits of its player, under the same id. They wait as
  /// long as new ones, however old they are.
  ///
  /// - Parameters:
  ///   - ids: Which; nil for the oldest ones.
  ///   - limit: How many at most.
  ///   - entry: What the audit log says about it, in the same transaction.
  /// - Returns: How many there were.
  func retryWebhooks(
    of endpoint: String, _ ids: [OperationID]?, limit: Int, auditing entry: AuditEntry?
  ) async throws -> Int

  // MARK: Conflicts

  /// Notes conflicts that began while nobody was told of any.
  func noteOpenConflicts(now: Int64) async throws
  /// Forgets conflicts if nobody is told of any: they aren't kept up then, and would hide later ones of their slots.
  func forgetUnwantedConflicts() async throws
  /// Tells of conflicts that have been open since this time or longer, each once.
  ///
  /// - Returns: How many.
  func tellConflicts(openSince since: Int64, now: Int64, limit: Int) async throws -> Int

  // MARK: Several servers

  /// Whether other servers may deliver the same events, so that an endpoint has to be held before any is sent.
  var sharesWebhooks: Bool { get }
  /// Returns what holders have said last, by the names of the endpoints.
  func webhookClaims() async throws -> [String: WebhookClaim]
  /// Has a server hold an endpoint, unless somebody has said anything since this claim; nil for none.
  ///
  /// - Returns: Its own claim; nil if somebody was first.
  func takeWebhooks(of endpoint: String, by holder: Data, after claim: WebhookClaim?) async throws -> WebhookClaim?
  /// Says that the holder is still there, and how the endpoint does.
  ///
  /// - Returns: Nil if another one holds it.
  func renewWebhooks(of endpoint: String, by holder: Data, _ report: WebhookReport) async throws -> WebhookClaim?
  /// Lets others hold an endpoint, if this one does.
  func releaseWebhooks(of endpoint: String, by holder: Data, _ report: WebhookReport) async throws
}

extension WebhookStorage {
  /// Has events for endpoints that aren't configured any more become dead letters, and keeps these within their bounds:
  /// in steps, between which players' commits come.
  func retireWebhooks(except names: [String], _ limits: WebhookLimits, now: Int64) async throws {
    for endpoint in try await webhookEndpoints().subtracting(names) {
      var hasMore = true
      while hasMore {
        try Task.checkCancellation()
        hasMore = try await retireWebhooks(of: endpoint, limits, now: now)
      }
      hasMore = true
      while hasMore {
        try Task.checkCancellation()
        let counts = try await webhookCounts(of: endpoint)
        hasMore = try await boundWebhooks(of: endpoint, counts, limits, now: now, isAgeing: true).hasMore
      }
    }
  }
}
#endif
