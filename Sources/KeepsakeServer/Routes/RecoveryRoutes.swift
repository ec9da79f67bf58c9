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
      let identity = try await identity(of: request)
      let code = try await gate.json(NewCode.self, of: request, limit: ServerLimits.accountBytes)
      try await storage.putRecovery(Self.digest(code.digest), by: identity, now: clock())
      return Response(status: .noContent)
    }
    router.post("recovery/join") { request, context in
      let app = try app(of: request)
      let typed = try await gate.json(Recovering.self, of: request, limit: ServerLimits.accountBytes)
      let (name, next) = (try Self.name(typed.name), try Self.digest(typed.next))
      return try await guess(request, context, app: app) { now in
        // One that can't be right is a wrong guess, too.
        guard let code = try? RecoveryCode(typed: typed.code) else { return nil }
        if code.digest == next { throw APIError(.badRequest, .badRequest, "The next code has to be another one.") }
        var source = SystemRandomNumberGenerator()
        let recovery = Recovery(code: code.digest, next: next, app: app, name: name)
        // A code outlives the app key with which it was made, as a device's token does.
        return try await storage.recover(recovery, as: DeviceID(using: &source), now: now) { [appKeys] made in
          appKeys.lets(made, become: app)
        }
      }
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
