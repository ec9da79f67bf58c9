#if Cloud
import Foundation
import HTTPTypes
import Hummingbird
import KeepsakeReplication
import NIOHTTP1

/// The studio's API: what its support staff and its servers do with a player's data, each with a key that allows it,
/// each act with a row of the audit log. On a port of its own.
///
/// Every route is an entry of a table with the scope that it needs, and is admitted in one place: there is no route
/// without a check.
struct AdminRoutes: Sendable {
  /// The name that versions have as their device's which the studio has restored.
  static let deviceName = "studio"
  static let prefix = "admin/v1"

  /// One route.
  struct Route: Sendable {
    var method: HTTPRequest.Method
    /// Below the prefix.
    var path: String
    var scope: AdminScope
    /// Its name in the audit log.
    var act: String
    var answer: @Sendable (AdminCall) async throws -> Response
  }

  /// The routes for devices, whose storage, bank, streams and budgets these share.
  let cloud: CloudRoutes
  let storage: any AdminStorage
  let saves: any SaveReading
  let webhooks: WebhookService?
  /// Exports, and saves that are decoded: apart from the devices' own exports, so that neither keeps the other waiting.
  let turns = Allotment(ServerLimits.concurrentExports)
  /// One thread for what a player has made: however long it takes, devices don't wait for it.
  let decoders = WorkThreads(running: 1, waiting: ServerLimits.concurrentExports)
  private let guesses = GuessLimiter()

  init(cloud: CloudRoutes, storage: any AdminStorage, saves: any SaveReading, webhooks: WebhookService? = nil) {
    (self.cloud, self.storage) = (cloud, storage)
    self.saves = saves
    self.webhooks = webhooks
  }

  var table: [Route] { playerRoutes + saveRoutes + moneyRoutes + webhookRoutes }

  /// The method and the path of each route, which docs/openapi-admin.yaml describes.
  var described: [(method: String, path: String)] {
    table.map { ($0.method.rawValue, "/\(Self.prefix)/\($0.path)") }
  }

  func routes() -> Router<CloudContext> {
    let router = Router(context: CloudContext.self)
    router.add(middleware: TelemetryMiddleware(metrics: cloud.metrics))
    router.add(middleware: AnswerMiddleware(refusals: cloud.refusals, addresses: Addresses(described)))
    router.add(middleware: RateMiddleware(gate: cloud.gate))
    let group = router.group("\(Self.prefix)")
    for route in table {
      group.on("\(route.path)", method: route.method) { try await answer($0, $1, by: route) }
    }
    return router
  }

  // MARK: Admitting

  private func answer(_ request: Request, _ context: CloudContext, by route: Route) async throws -> Response {
    let key = try await key(of: request, context)
    var source = SystemRandomNumberGenerator()
    let id = Hexadecimal.text(source.next())
    var entry = AuditEntry(
      atMilliseconds: cloud.clock(), key: key.id, name: key.name, act: route.act, request: id)
    let player = context.parameters.get("player").flatMap { PlayerID($0) }
    entry.player = player.map(AuditEntry.hash)
    let audited = AuditedStorage(storage, entry)
    var response: Response
    do {
      guard key.scopes.contains(route.scope) else {
        throw APIError(.forbidden, .scopeMissing, "This needs an admin key with the scope \(route.scope.rawValue).")
      }
      var call = AdminCall(request: request, context: context, key: key, storage: audited)
      if context.parameters.get("player") != nil {
        guard let player else {
          throw APIError(
            .badRequest, .badRequest, "The address has to contain a player's id of 32 hexadecimal digits.")
        }
        // A player of another app isn't told from one that doesn't exist.
        guard let place = try await storage.places(.player(player)).first, key.allows(place.apps) else {
          throw APIError.playerUnknown
        }
        call.place = place
      }
      response = try await route.answer(call)
    } catch let error as HTTPParserError {
      // The connection is broken: nothing was asked.
      throw error
    } catch {
      var refusal = AnswerMiddleware.answer(to: error, logger: context.logger)
      try await audited.finish(refusal.code.rawValue)
      refusal.auditedRequest = id
      throw refusal
    }
    // What was only looked at is logged, too, before anybody sees it.
    try await audited.finish()
    response.headers[.keepsakeRequest] = id
    return response
  }

  /// Returns the key of a request.
  ///
  /// A right key is accepted however many wrong ones came from its address: behind a proxy, everybody has the same.
  private func key(of request: Request, _ context: CloudContext) async throws -> AdminKey {
    guard let text = CloudRoutes.bearer(of: request) else {
      throw APIError(.unauthorized, .unauthorized, "This request needs an admin key in the header Authorization.")
    }
    if let key = try await storage.adminKey(text) { return key }
    let peer = cloud.gate.client(of: request, context).network
    if let seconds = guesses.begin(peer: peer, app: AppID(ofKey: ""), now: cloud.clock()) {
      throw cloud.gate.refusals.count(
        .guesses, from: peer,
        as: APIError(
          .tooManyRequests, .tooManyGuesses, "Too many wrong admin keys; try again later.",
          retryAfterSeconds: seconds))
    }
    throw APIError(.unauthorized, .unauthorized, "This server doesn't accept this admin key.")
  }
}

extension HTTPField.Name {
  /// On every response to an admitted request of the studio, refusals too: the id under which the audit log has it.
  static let keepsakeRequest = Self("Keepsake-Request")!
}
#endif
