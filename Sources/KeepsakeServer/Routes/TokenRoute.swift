#if Cloud
import Hummingbird
import KeepsakeReplication

/// Admits requests by their tokens, and gives devices new ones.
extension CloudRoutes {
  private struct Renewed: Encodable {
    var token: String
  }

  func addTokenRoute(to router: RouterGroup<CloudContext>) {
    // The way back in for a token that is good for nothing else: too old, or of an app key that was revoked.
    router.post("token") { request, _ in
      let held = Self.bearer(of: request).flatMap(tokens.verify)?.identity.app
      // A device of a shared container shows the key of its game.
      let grant = held.flatMap(appKeys.grant)
      let app = try app(of: request, renewing: grant?.app ?? held)
      let token = try signedToken(of: request)
      if try await storage.isRetired(token.identity) { throw APIError.retired }
      try refuseBanned(token.identity)
      if let grant {
        if let refusal = appKeys.refusal(of: token.identity.app) { throw APIError(refusal) }
        guard grant.app == app else { throw APIError.otherApp }
      } else if !appKeys.lets(token.identity.app, become: app) {
        throw appKeys.accepts(token.identity.app) ? APIError.otherApp : APIError.appRevoked
      } else if token.identity.app != app, try await storage.isShared(token.identity.container) {
        // The registry of apps is an older one, or gone: a shared container never becomes a game's own.
        throw APIError.notEntitled
      }
      if token.isExpired, try await tokenUses.isSuperseded(token) { throw APIError.tokenSuperseded }
      return try Response(json: Renewed(token: tokens.renewed(token, app: grant?.id ?? app)))
    }
  }

  /// Returns the token with which a device sent `request`.
  ///
  /// - Parameter checksRemoval: Whether to look up if the device was removed.
  /// - Throws: An `APIError` if there is none, it isn't this server's, its device was removed, its app key was revoked,
  ///   or it is too old.
  func admit(_ request: Request, checksRemoval: Bool = true) async throws -> VerifiedToken {
    let token = try signedToken(of: request)
    try gate.rates.request(by: token.identity)
    if checksRemoval, try await storage.isRetired(token.identity) { throw APIError.retired }
    try refuseBanned(token.identity)
    if let refusal = appKeys.refusal(of: token.identity.app) { throw APIError(refusal) }
    guard !token.isExpired else { throw APIError.tokenExpired }
    await tokenUses.record(token)
    return token
  }

  func refuseBanned(_ identity: DeviceIdentity) throws {
    if let ban = storage.ban(of: identity) { throw APIError.banned(ban) }
  }

  /// Throws if a device may only read.
  func refuseReadOnly(_ identity: DeviceIdentity) throws {
    if appKeys.access(of: identity.app) == .readOnly { throw APIError.readOnly }
  }

  /// Returns the device that sent `request`, unless it may only read.
  func writingIdentity(of request: Request) async throws -> DeviceIdentity {
    let identity = try await identity(of: request)
    try refuseReadOnly(identity)
    return identity
  }

  /// Returns the token of `request`, although it may have expired, its app key may be revoked, or its device removed.
  func signedToken(of request: Request) throws -> VerifiedToken {
    guard let token = Self.bearer(of: request) else {
      throw APIError(.unauthorized, .unauthorized, "This request needs a device's token in the header Authorization.")
    }
    guard let token = tokens.verify(token) else {
      throw APIError(.unauthorized, .unauthorized, "The token wasn't issued by this server.")
    }
    return token
  }

  /// Whether a device whose stream is open would still be admitted with its token, as far as that is known without the
  /// database.
  func isStillAdmitted(_ token: String?) -> Bool {
    guard let token = token.flatMap(tokens.verify) else { return false }
    // A ban ends the streams that are open; one that was being opened then is found here.
    return !token.isExpired && appKeys.accepts(token.identity.app)
      && storage.ban(of: token.identity) == nil
  }
}
#endif
