#if Cloud && PostgreSQL
import Foundation
import KeepsakeReplication

/// A cloud with several databases has no webhooks yet, and writes no events. Home may have events of a time when it was
/// the only database: they become dead letters and expire, as do those of any endpoint that isn't configured any more.
extension ShardedStorage {
  var outbox: WebhookOutbox? { nil }
  var sharesWebhooks: Bool { home.sharesWebhooks }

  func webhookEvents(
    of endpoint: String, after number: Int64, limit: Int, refills: [Data: Int64]
  ) async throws -> (found: [WebhookQueue.Pick], next: [Data: Int64?]) {
    try await home.webhookEvents(of: endpoint, after: number, limit: limit, refills: refills)
  }

  func webhookRows(_ numbers: [Int64], of endpoint: String) async throws -> [WebhookRow] {
    try await home.webhookRows(numbers, of: endpoint)
  }

  func settleWebhooks(
    of endpoint: String, delivered: [Int64], dead: [(number: Int64, reason: String)], now: Int64
  ) async throws {
    try await home.settleWebhooks(of: endpoint, delivered: delivered, dead: dead, now: now)
  }

  func webhookCounts(of endpoint: String) async throws -> WebhookCounts {
    try await home.webhookCounts(of: endpoint)
  }

  func boundWebhooks(
    of endpoint: String, _ counts: WebhookCounts, _ limits: WebhookLimits, now: Int64, isAgeing: Bool
  ) async throws -> (buried: Int, dropped: Int, hasMore: Bool) {
    try await home.boundWebhooks(of: endpoint, counts, limits, now: now, isAgeing: isAgeing)
  }

  func webhookEndpoints() async throws -> Set<String> { try await home.webhookEndpoints() }

  func retireWebhooks(of endpoint: String, _ limits: WebhookLimits, now: Int64) async throws -> Bool {
    try await home.retireWebhooks(of: endpoint, limits, now: now)
  }

  func deadWebhooks(of endpoint: String, after number: Int64, limit: Int) async throws -> [WebhookRow] {
    try await home.deadWebhooks(of: endpoint, after: number, limit: limit)
  }

  func retryWebhooks(
    of endpoint: String, _ ids: [OperationID]?, limit: Int, auditing entry: AuditEntry?
  ) async throws -> Int {
    try await home.retryWebhooks(of: endpoint, ids, limit: limit, auditing: entry)
  }

  func noteOpenConflicts(now: Int64) async throws { try await home.noteOpenConflicts(now: now) }

  func forgetUnwantedConflicts() async throws { try await home.forgetUnwantedConflicts() }

  func tellConflicts(openSince since: Int64, now: Int64, limit: Int) async throws -> Int {
    try await home.tellConflicts(openSince: since, now: now, limit: limit)
  }

  func webhookClaims() async throws -> [String: WebhookClaim] { try await home.webhookClaims() }

  func takeWebhooks(of endpoint: String, by holder: Data, after claim: WebhookClaim?) async throws -> WebhookClaim? {
    try await home.takeWebhooks(of: endpoint, by: holder, after: claim)
  }

  func renewWebhooks(of endpoint: String, by holder: Data, _ report: WebhookReport) async throws -> WebhookClaim? {
    try await home.renewWebhooks(of: endpoint, by: holder, report)
  }

  func releaseWebhooks(of endpoint: String, by holder: Data, _ report: WebhookReport) async throws {
    try await home.releaseWebhooks(of: endpoint, by: holder, report)
  }
}
#endif
