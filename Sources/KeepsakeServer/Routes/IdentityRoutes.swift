#if Cloud
import Foundation
import Hummingbird
import KeepsakeReplication

/// Identities of other services, with which players sign in.
extension CloudRoutes {
  private struct Nonce: Decodable {
    var issuer: String
  }
  private struct NewNonce: Encodable {
    var nonce: String
    var expiresInSeconds: Int64
  }
  private struct Proof: Decodable {
    var issuer: String
    var proof: String
    /// Of the device that joins.
    var name: String?
  }

  func addIdentityRoutes(to router: RouterGroup<CloudContext>) {
    router.get("identities") { request, _ in
      let identity = try await identity(of: request)
      return try Response(json: IdentityList(identities: try await storage.identities(of: identity.container)))
    }
    router.delete("identities/{identity}") { request, context in
      let device = try await writingIdentity(of: request)
      guard let id = context.parameters.get("identity").flatMap({ ContentHash($0) }) else {
        throw APIError(
          .badRequest, .badRequest, "The address has to contain an identity's id of 64 hexadecimal digits.")
      }
      guard try await storage.unlink(id, by: device) else {
        throw APIError(.notFound, .notFound, "This player has no such identity.")
      }
      return Response(status: .noContent)
    }
    router.post("identities/nonce") { request, _ in
      let device = try await identity(of: request).device
      let issuer = try await gate.json(Nonce.self, of: request, limit: ServerLimits.accountBytes).issuer
      let nonce = NewNonce(
        nonce: try identityChecks.nonce(for: device, issuer: issuer, now: clock()),
        expiresInSeconds: NonceAuthority.lifetimeMilliseconds / 1_000)
      return try Response(json: nonce, status: .created)
    }
    router.post("identities") { request, context in
      let device = try await writingIdentity(of: request)
      let typed = try await gate.json(Proof.self, of: request, limit: ServerLimits.accountBytes)
      let (proven, now) = try await prove(typed, request, context, device)
      switch try await storage.link(proven, to: device, now: now) {
      case .linked(let linked): return try Response(json: linked)
      case .taken: throw APIError.identityTaken
      case .used: throw APIError.identityUsed
      case .tooMany: throw APIError.tooManyIdentities
      }
    }
    router.post("identities/join") { request, context in
      let device = try await identity(of: request)
      let typed = try await gate.json(Proof.self, of: request, limit: ServerLimits.accountBytes)
      let name = try Self.name(typed.name)
      let (proven, now) = try await prove(typed, request, context, device)
      var source = SystemRandomNumberGenerator()
      let new = NewDevice(device: DeviceID(using: &source), name: name)
      switch try await storage.signIn(with: proven, by: device, as: new, now: now) {
      case .joined(let joined):
        if joined.device == new.device {
          gate.rates.joined(from: gate.client(of: request, context).network, app: device.app)
        }
        return try account(joined)
      case .unknown: throw APIError.identityUnknown
      case .own: throw APIError(.badRequest, .badRequest, "This device is that player's already.")
      case .used: throw APIError.identityUsed
      }
    }
  }

  /// Returns who a proof is about, and as of when. A device whose proofs were refused too often has to wait.
  private func prove(
    _ typed: Proof, _ request: Request, _ context: CloudContext, _ device: DeviceIdentity
  ) async throws -> (VerifiedIdentity, now: Int64) {
    let now = clock()
    do {
      let proven = try await refusedProofs.counting(device.device, now: now) {
        try await identityChecks.verify(typed.proof, issuer: typed.issuer, by: device, now: now)
      }
      return (appKeys.grant(device.app).map { proven.scoped(to: $0.share) } ?? proven, now)
    } catch let error as APIError where error.code == .tooManyGuesses {
      throw gate.refusals.count(.guesses, from: gate.client(of: request, context).network, as: error)
    }
  }
}
#endif
