#if Cloud
import Foundation
import HTTPTypes
import Hummingbird
import KeepsakeReplication

/// What the studio's backends wait for, and dead letters.
extension AdminRoutes {
  /// Dead letters in one answer, and sent again by one request.
  private static let pageEvents = 200
  private static let retriedAtOnce = 1_000

  private struct Endpoints: Encodable {
    var endpoints: [Endpoint]
  }
  private struct Endpoint: Encodable {
    var name: String
    /// Of its address, which may have a secret in its path.
    var host: String
    var kinds: [String]
    var state: WebhookBreaker.State
    var waiting: Int
    var oldestMilliseconds: Int64?
    var dead: Int
    var dropped: Int64
    var failure: String?
  }
  private struct Events: Encodable {
    var events: [Event]
    var next: Int64?
  }
  private struct Event: Encodable {
    var id: OperationID
    var kind: String
    var player: PlayerID?
    var createdMilliseconds: Int64
    var deadMilliseconds: Int64?
    var reason: String?
  }
  private struct Wanted: Decodable {
    var ids: [OperationID]?
  }
  private struct Retried: Encodable {
    var retried: Int
  }

  var webhookRoutes: [Route] {
    [
      Route(method: .get, path: "webhooks", scope: .webhooks, act: "webhook.list") { call in
        try Self.refuseLimited(call)
        var endpoints: [Endpoint] = []
        for courier in webhooks?.couriers ?? [] {
          let (endpoint, shown) = (courier.endpoint, try await courier.status())
          endpoints.append(
            Endpoint(
              name: endpoint.name, host: endpoint.url.host() ?? "", kinds: endpoint.kinds.map(\.rawValue).sorted(),
              state: shown.state, waiting: shown.counts.waiting, oldestMilliseconds: shown.counts.oldestMilliseconds,
              dead: shown.counts.dead, dropped: shown.counts.dropped, failure: shown.failure))
        }
        return try Response(json: Endpoints(endpoints: endpoints))
      },
      Route(method: .get, path: "webhooks/{endpoint}/dead", scope: .webhooks, act: "webhook.dead") { call in
        let (webhooks, courier) = try courier(call)
        let rows = try await webhooks.storage.deadWebhooks(
          of: courier.endpoint.name, after: Int64(clamping: try call.number("after") ?? 0), limit: Self.pageEvents)
        let events = rows.map { row in
          Event(
            id: row.id, kind: row.kind, player: row.player, createdMilliseconds: row.createdMilliseconds,
            deadMilliseconds: row.deadMilliseconds, reason: row.reason)
        }
        return try Response(
          json: Events(events: events, next: rows.count == Self.pageEvents ? rows.last?.number : nil))
      },
      Route(method: .post, path: "webhooks/{endpoint}/retry", scope: .webhooks, act: "webhook.retry") { call in
        let (webhooks, courier) = try courier(call)
        let wanted = try await cloud.gate.json(Wanted.self, of: call.request, limit: ServerLimits.accountBytes)
        call.note("count", wanted.ids.map { String($0.count) } ?? "all")
        let count = try await webhooks.storage.retryWebhooks(
          of: courier.endpoint.name, wanted.ids, limit: Self.retriedAtOnce, auditing: call.storage.entry)
        call.storage.written()
        // Also what waits for its next attempt: the operator asks after having repaired the backend.
        await courier.retryAll()
        webhooks.storage.outbox?.wake()
        return try Response(json: Retried(retried: count))
      },
    ]
  }

  private func courier(_ call: AdminCall) throws -> (WebhookService, WebhookCourier) {
    try Self.refuseLimited(call)
    let name = call.context.parameters.get("endpoint")
    guard let webhooks, let courier = webhooks.couriers.first(where: { $0.endpoint.name == name }) else {
      throw APIError(.notFound, .notFound, "This server has no such webhook.")
    }
    call.note("webhook", courier.endpoint.name)
    return (webhooks, courier)
  }

  /// Events are of all players.
  private static func refuseLimited(_ call: AdminCall) throws {
    guard !call.key.isLimitedToApps else {
      throw APIError(.forbidden, .scopeMissing, "This needs an admin key that is good for the players of all apps.")
    }
  }
}
#endif
