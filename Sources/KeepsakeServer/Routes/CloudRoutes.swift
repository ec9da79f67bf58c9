#if Cloud
import Foundation
import Hummingbird
import KeepsakeReplication

/// What the routes share: the storage, the credentials that are accepted, and the event streams.
struct CloudRoutes<Storage: CloudStorage>: Sendable {
  var storage: Storage
  var appKeys: AppKeys
  var tokens: TokenSigner
  var events: EventHub
  var guesses: GuessLimiter
  var uploads: UploadSpool
  var partials: PartialUploads
  var clock: @Sendable () -> Int64
  /// The number of bytes that a player may keep; nil for no limit.
  var quota: Int64?

  /// Returns the device that sent `request`, from its token.
  func identity(of request: Request) async throws -> DeviceIdentity {
    let words = request.headers[.authorization]?.split(separator: " ", maxSplits: 1) ?? []
    guard words.count == 2, words[0].lowercased() == "bearer" else {
      throw APIError(.unauthorized, .unauthorized, "This request needs a device's token in the header Authorization.")
    }
    guard let identity = tokens.identity(of: String(words[1])) else {
      throw APIError(.unauthorized, .unauthorized, "The token wasn't issued by this server.")
    }
    if try await storage.isRetired(identity) { throw APIError.retired }
    return identity
  }

  /// Returns the app that `request` comes from, from its key.
  func app(of request: Request) throws -> AppID {
    guard let key = request.headers[.keepsakeAppKey] else {
      throw APIError(.unauthorized, .badAppKey, "This request needs the header Keepsake-App-Key.")
    }
    guard let app = appKeys.app(forKey: key) else {
      throw APIError(.forbidden, .badAppKey, "This server doesn't accept this app key.")
    }
    return app
  }

  func routes() -> Router<CloudContext> {
    let router = Router(context: CloudContext.self)
    router.add(middleware: AnswerMiddleware())
    router.get("health") { _, _ in try Response(json: ["status": "ok"]) }
    let v1 = router.group("v1")
    addAccountRoutes(to: v1)
    addPlayerRoutes(to: v1)
    addExchangeRoute(to: v1)
    addContentRoutes(to: v1)
    addEventRoute(to: v1)
    return router
  }
}
#endif
