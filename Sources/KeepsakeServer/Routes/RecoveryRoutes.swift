#if Cloud
import Foundation
import Hummingbird
import KeepsakeReplication

/// Recovery codes, with which a player who has no device any more comes back.
extension CloudRoutes {
  private struct NewCode: Decodable {
    /// The SHA-256 of the code's text.
    var digest: String
  }
  private struct Recovering: Decodable {
    var code: String
    /// The SHA-256 of the code that takes its place.
    var next: String
    var name: String?
  }

  func addRecoveryRoutes(to router: RouterGroup<CloudContext>) {
    router.get("recovery") { request, _ in
      let identity = try await identity(of: request)
      return try Response(json: try await storage.recovery(of: identity.container))
    }
    router.put("recovery") { request, _ in
      let identity = try await writingIdentity(of: request)
      let code = try await gate.json(NewCode.self, of: request, limit: ServerLimits.accountBytes)
      try await storage.putRecovery(
        Self.digest(code.digest), by: identity, scope: appKeys.scope(of: identity.app), now: clock())
      return Response(status: .noContent)
    }
    router.post("recovery/join") { request, context in
      let app = try app(of: request)
      // A code outlives the app key with which it was made, as a device's token does.
      return try await recover(request, context, EntryRight(app), of: app) { [appKeys] in
        appKeys.lets($0, become: app)
      }
    }
  }

  /// Answers a request with a recovery code.
  ///
  /// - Parameters:
  ///   - app: That of the request, by which guesses are counted.
  ///   - mayRecover: As of the storage.
  func recover(
    _ request: Request, _ context: CloudContext, _ right: EntryRight, of app: AppID,
    _ mayRecover: @escaping @Sendable (AppID) -> Bool
  ) async throws -> Response {
    let typed = try await gate.json(Recovering.self, of: request, limit: ServerLimits.accountBytes)
    let (name, next) = (try Self.name(typed.name), try Self.digest(typed.next))
    return try await guess(request, context, app: app) { now in
      // One that can't be right is a wrong guess, too.
      guard let code = try? RecoveryCode(typed: typed.code) else { return nil }
      if code.digest == next { throw APIError(.badRequest, .badRequest, "The next code has to be another one.") }
      var source = SystemRandomNumberGenerator()
      let recovery = Recovery(code: code.digest, next: next, right: right, name: name)
      return try await storage.recover(recovery, as: DeviceID(using: &source), now: now, mayRecover: mayRecover)
    }
  }

  private static func digest(_ text: String) throws -> ContentHash {
    guard let digest = ContentHash(text) else {
      throw APIError(.badRequest, .badRequest, "A recovery code's digest has to be 64 hexadecimal digits.")
    }
    return digest
  }
}
#endif
