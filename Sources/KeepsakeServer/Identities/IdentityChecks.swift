#if Cloud
import Foundation
import HTTPTypes
import KeepsakeReplication
import Logging

/// Finds out who a proof is about: by an issuer's keys, or by asking whoever embeds the server.
struct IdentityChecks: Sendable {
  private enum Check: Sendable {
    case token(TokenVerifier)
    /// Whose checks have turns of their own: a service that hangs holds up no others.
    case custom(any IdentityVerifier, turns: Allotment)
  }
  private let checks: [String: Check]
  private let nonces: NonceAuthority
  private let turns: Allotment
  private let limit: Duration
  private let logger: Logger

  /// Reads keys in files.
  ///
  /// - Parameter nonceKeys: As for `NonceAuthority`.
  /// - Throws: A `ServerError` if a file can't be used.
  init(
    _ configuration: ServerConfiguration, nonceKeys: @escaping @Sendable () -> [Data], logger: Logger
  ) throws {
    nonces = NonceAuthority(keys: nonceKeys)
    var checks: [String: Check] = configuration.identityVerifiers.mapValues {
      .custom($0, turns: Allotment(ServerLimits.identityChecks))
    }
    for issuer in configuration.identityIssuers {
      let keys = try IssuerKeys(of: issuer, source: configuration.keySource, clock: configuration.clock, logger: logger)
      checks[issuer.name] = .token(TokenVerifier(issuer: issuer, keys: keys))
    }
    self.checks = checks
    self.logger = logger
    turns = Allotment(ServerLimits.identityChecks)
    limit = configuration.identityLimit
  }

  /// Reads keys in files again.
  func reload() {
    for case .token(let verifier) in checks.values { verifier.keys.reload() }
  }

  /// Returns a nonce for a token of an issuer.
  ///
  /// - Throws: An `APIError` if there is no such issuer.
  func nonce(for device: DeviceID, issuer: String, now: Int64) throws -> String {
    _ = try check(issuer)
    return nonces.nonce(for: device, issuer: issuer, now: now)
  }

  private func check(_ issuer: String) throws -> Check {
    guard let check = checks[issuer] else { throw APIError.issuerUnknown }
    return check
  }

  /// Returns who a proof is about.
  ///
  /// - Throws: An `APIError`: `identity_refused` for a proof that is no good; another one if it couldn't be checked.
  func verify(_ proof: String, issuer: String, by device: DeviceIdentity, now: Int64) async throws -> VerifiedIdentity {
    let check = try check(issuer)
    guard proof.utf8.count <= TokenVerifier.maximumBytes else {
      throw APIError(
        .contentTooLarge, .tooLarge, "A proof of an identity can have at most \(TokenVerifier.maximumBytes) bytes.")
    }
    do {
      switch check {
      case .token(let verifier):
        let turn = try Self.turn(of: turns)
        defer { turn.end() }
        return try await verifier.verify(
          proof, nonceExpiry: { nonces.expiry(of: $0, for: device.device, issuer: issuer, now: now) }, now: now)
      case .custom(let verifier, let turns):
        return try await ask(verifier, try Self.turn(of: turns), proof, issuer: issuer, app: device.app)
      }
    } catch let failure as IdentityFailure {
      throw failure.kind == .refused
        ? APIError.identityRefused(failure.reason) : APIError.identityUnavailable(failure.reason)
    }
  }

  private static func turn(of turns: Allotment) throws -> Allotment.Share {
    guard let turn = turns.share(1) else { throw APIError.overBudget("checks of identities") }
    return turn
  }

  /// - Parameter turn: Held until the verifier has ended, whether anybody waits for it any more or not.
  private func ask(
    _ verifier: any IdentityVerifier, _ turn: Allotment.Share, _ proof: String, issuer: String, app: AppID
  ) async throws -> VerifiedIdentity {
    let subject: String
    do {
      subject = try await Deadline.run(within: limit) {
        defer { turn.end() }
        return try await verifier.subject(of: IdentityProof(bytes: Data(proof.utf8), app: app.text))
      }
    } catch let error where error is IdentityFailure || error is CancellationError {
      throw error
    } catch {
      var logger = logger
      logger[metadataKey: "issuer"] = "\(issuer)"
      logger.failure("An identity can't be checked", error)
      throw IdentityFailure.unavailable("the service that knows the player can't be asked at present")
    }
    guard (1...512).contains(subject.utf8.count) else {
      logger.error("A verifier's subject has to have 1 to 512 bytes", metadata: ["issuer": "\(issuer)"])
      throw IdentityFailure.unavailable("the service that knows the player gave no usable subject")
    }
    return VerifiedIdentity(id: VerifiedIdentity.id(of: subject, at: "", named: issuer), issuer: issuer)
  }
}
#endif
