#if Cloud
import Foundation
import Hummingbird
import KeepsakeReplication
import Tracing

/// What the routes share: the storage, the credentials that are accepted, and the event streams.
struct CloudRoutes: Sendable {
  var storage: any CloudStorage
  var appKeys: AppKeys
  var tokens: TokenAuthority
  var tokenUses: TokenUses
  var events: EventHub
  var guesses: GuessLimiter
  var identityChecks: IdentityChecks
  let refusedProofs = RefusedProofs()
  let leaving = LeavingParents()
  var uploads: UploadSpool
  var partials: PartialUploads
  var gate: ServerGate
  var clock: @Sendable () -> Int64
  /// The number of bytes that a player may keep; nil for no limit.
  var quota: Int64?
  /// What happens with a device whose store went back to an older state.
  var setBackPolicy = SetBackPolicy.flag
  /// The keys of the game's own servers, and how many wrong ones came.
  var serverKeys: ServerKeys
  var keyGuesses = GuessLimiter()
  var metrics: ServerMetrics
  var refusals: RefusalLog
  /// Currencies of which only the bank's own operations make more.
  var authoritative: Set<String>

  /// Returns the rules of a container's bank.
  func bankRules(of container: ContainerID) -> BankRules {
    BankRules(
      authoritative: authoritative, seal: BankSeal(bank: container, keys: tokens.bankKeys), epoch: storage.bankEpoch)
  }

  /// Returns the rules for an offer. If it proves that the bank was set back and nobody has said so, every bank of the
  /// cloud begins a new epoch before.
  func bankRules(of container: ContainerID, for offer: WalletOffer) async throws -> BankRules {
    try await storage.noticeRestore(by: offer, of: container, rules: bankRules(of: container))
    return bankRules(of: container)
  }

  /// Returns the device that sent `request`, from its token.
  func identity(of request: Request) async throws -> DeviceIdentity { try await admit(request).identity }

  /// Returns the device that a request's token names, although it may have been removed since, or the token may be old.
  func signedIdentity(of request: Request) throws -> DeviceIdentity {
    let identity = try signedToken(of: request).identity
    if let refusal = appKeys.refusal(of: identity.app) { throw APIError(refusal) }
    try refuseBanned(identity)
    return identity
  }

  /// Returns the token or key in the header Authorization of `request`; nil if there is none.
  static func bearer(of request: Request) -> String? {
    let words = request.headers[.authorization]?.split(separator: " ", maxSplits: 1) ?? []
    return words.count == 2 && words[0].lowercased() == "bearer" ? String(words[1]) : nil
  }

  /// Returns the app that `request` comes from, from its key.
  ///
  /// - Parameter device: The app of a device that asks for a new token; nil for any other request.
  func app(of request: Request, renewing device: AppID? = nil) throws -> AppID {
    guard let key = request.headers[.keepsakeAppKey] else {
      throw APIError(.unauthorized, .badAppKey, "This request needs the header Keepsake-App-Key.")
    }
    guard let app = appKeys.app(forKey: key, renewing: device) else {
      throw APIError(.forbidden, .badAppKey, "This server doesn't accept this app key.")
    }
    return app
  }

  func routes() -> Router<CloudContext> {
    router(AnswerMiddleware(refusals: refusals, addresses: Addresses(described)))
  }

  /// The method and the path of each route, which docs/openapi.yaml describes.
  var described: [(method: String, path: String)] {
    router(AnswerMiddleware(refusals: refusals)).routes.map { ($0.method.rawValue, $0.path.description) }
  }

  private func router(_ answers: AnswerMiddleware) -> Router<CloudContext> {
    let router = Router(context: CloudContext.self)
    router.add(middleware: TelemetryMiddleware(metrics: metrics))
    // A tracer is there if a program that embeds the server has bootstrapped one. Without one, the middleware would
    // still make each response three writes instead of one.
    if !(InstrumentationSystem.tracer is NoOpTracer) { router.add(middleware: TracingMiddleware()) }
    router.add(middleware: answers)
    router.add(middleware: RateMiddleware(gate: gate))
    router.get("health") { _, _ in try Response(json: ["status": "ok"]) }
    let v1 = router.group("v1")
    addAccountRoutes(to: v1)
    addRecoveryRoutes(to: v1)
    addIdentityRoutes(to: v1)
    addTokenRoute(to: v1)
    addSharedRoutes(to: v1)
    addPlayerRoutes(to: v1)
    addExchangeRoute(to: v1)
    addWalletRoutes(to: v1)
    addContentRoutes(to: v1)
    addEventRoute(to: v1)
    addBankRoutes(to: v1)
    return router
  }
}
#endif
