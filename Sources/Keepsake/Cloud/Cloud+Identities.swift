public import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync

/// What a player signs in with: a proof of who they are at another service.
public struct SignIn: Sendable, Hashable {
  /// What becomes of a device whose player isn't the one that the identity leads to.
  public enum IfTaken: Sendable, Hashable {
    /// The device stays apart, and the call throws `GameDataError` with `identityTaken`.
    case refuse
    /// The device becomes one of the other player's, and its data is joined with theirs as by `Cloud.join(_:)`.
    case join
  }
  /// What came of signing in.
  public enum Outcome: Sendable, Hashable {
    /// The identity leads to this device's player, from now on or already.
    case linked
    /// This device is now one of the player to whom the identity leads.
    case joined
  }
  let token: String
  let issuer: String

  /// A token (JWT) that an issuer has signed, or a proof of another kind that the server knows how to check.
  ///
  /// - Parameters:
  ///   - token: As the game got it from the service, at most 8,192 bytes. It isn't stored.
  ///   - issuer: The name of the issuer in the server's configuration, such as `apple`.
  /// - Returns: What `Cloud.signIn(_:ifTaken:)` takes.
  public static func token(_ token: String, issuer: String) -> SignIn { SignIn(token: token, issuer: issuer) }
}

/// An identity of another service that leads to the player.
public struct CloudIdentity: Sendable, Hashable, Identifiable {
  /// The same whenever the same identity is linked. Says nothing about who it is.
  public let id: String
  /// The name of its issuer in the server's configuration.
  public let issuer: String
  /// When it was linked, by the server's clock.
  public let linked: Date
}

/// Signing in with what the player has.
extension Cloud {
  /// Signs in with an identity of another service: from then on, the player comes back with it on any device.
  ///
  /// ```swift
  /// switch try await game.cloud.signIn(.token(jwt, issuer: "apple")) {
  /// case .linked: show("You can now come back with Apple")
  /// case .joined: show("Welcome back")
  /// }
  /// ```
  ///
  /// An identity that leads to nobody is linked with this device's player. One that leads to another player never
  /// joins the two silently: the call throws `identityTaken`, nothing has changed, and the game asks whether to join
  /// that player, by the same call with `ifTaken: .join`, or to stay apart. Joining does what `join(_:)` does: the data
  /// of both is joined, and money comes along as there. Only a device with nothing to lose joins unasked: no saves,
  /// values, money or files, and no other device, recovery code or identity of its player.
  ///
  /// A player may have up to 16 identities, also of one issuer. One is void once another device removes the device
  /// that has shown it last (so that a thief can't come back with one), and stays if that signs out.
  ///
  /// The server checks the token: its signature, for whom it is, and its time. It stores a hash of who the player is
  /// and no token. If the response is lost, the same call on this device has the same result. Costs a round trip, one
  /// or two more to join, and another one if this device still has to be registered.
  ///
  /// - Parameters:
  ///   - identity: The token. If the server requires a nonce of its issuer, the token has to contain one of
  ///     `signInNonce(issuer:)`.
  ///   - choice: What becomes of this device if the identity leads to another player.
  /// - Returns: What came of it.
  /// - Throws: As `join(_:)`; `GameDataError` with `identityTaken`; with `refused` if this device was removed or has
  ///   lost its credentials and isn't to join, for a token that is no good, after too many of them, for an issuer that
  ///   the server doesn't know, and if the player has too many identities; with `unreachable` also if the server can't
  ///   get the issuer's keys.
  @discardableResult
  public func signIn(_ identity: SignIn, ifTaken choice: SignIn.IfTaken = .refuse) async throws -> SignIn.Outcome {
    guard let refusal = try await refusalToLink(identity) else { return .linked }
    if choice == .refuse {
      guard (refusal as? AccountError)?.code == .identityTaken, try await hasNothingToLose() else {
        throw GameDataError.translated(refusal)
      }
    }
    let registration = connection.registration
    try await connection.join { server, name in try await registration.signIn(identity, at: server, name: name) }
    return .joined
  }

  /// Links an identity with this device's player. Returns why that isn't possible if joining the identity's player may
  /// be: a device that was removed, or has lost its credentials, can join as with a pairing code.
  private func refusalToLink(_ identity: SignIn) async throws -> (any Error)? {
    do {
      return try await connection.asPlayer { credentials -> AccountError? in
        do {
          try await HTTPAccount.link(identity.token, ofIssuer: identity.issuer, for: credentials)
          return nil
        } catch let error as AccountError where error.code == .identityTaken || error.code == .retired {
          return error
        }
      }
    } catch let error as GameDataError where error == CloudRegistration.lostCredentials {
      return error
    }
  }

  /// Whether joining another player would neither change this device's data nor make anything unreachable.
  private func hasNothingToLose() async throws -> Bool {
    let own = try connection.core.store.read { try UnsentData($0, hasRecords: false, everything: true) }
    guard own.isEmpty else { return false }
    let state = try await recoveryState()
    return state.otherDevices == 0 && state.codeCreated == nil && state.identities == 0
  }

  /// Returns a nonce to request a token with, for a server that requires one: a token that somebody else has got hold
  /// of is then of no use on another device.
  ///
  /// The service puts it into its token unchanged, as the claim `nonce`. It is valid for ten minutes, for this device
  /// and issuer alone, once, and until the server restarts. Costs one round trip.
  ///
  /// - Parameter issuer: The name of the issuer in the server's configuration.
  /// - Returns: 76 characters: letters, digits, `-` and `_`.
  /// - Throws: As `devices()`, and `GameDataError` with `refused` for an issuer that the server doesn't know.
  public func signInNonce(issuer: String) async throws -> String {
    let connection = connection
    do {
      return try await connection.asPlayer { credentials in
        do {
          return try await HTTPAccount.nonce(ofIssuer: issuer, for: credentials)
        } catch let error as AccountError where error.code == .retired {
          // A device that was removed can join, and needs a nonce for that.
          return try await connection.standInNonce(issuer: issuer)
        }
      }
    } catch let error as GameDataError where error == CloudRegistration.lostCredentials {
      // So can one that has lost its credentials.
      return try await connection.standInNonce(issuer: issuer)
    }
  }

  /// Lists the identities that lead to the player, in the order in which they were linked.
  ///
  /// Costs one round trip.
  ///
  /// - Returns: The identities.
  /// - Throws: As `devices()`.
  public func identities() async throws -> [CloudIdentity] {
    try await connection.asPlayer { try await HTTPAccount.identities(for: $0) }.map { linked in
      CloudIdentity(
        id: linked.id.description, issuer: linked.issuer,
        linked: Date(timeIntervalSince1970: Double(linked.createdMilliseconds) / 1000))
    }
  }

  /// Has an identity lead to the player no more. The last one may be removed, too: `recoveryState()` then says whether
  /// the player could still come back.
  ///
  /// Costs one round trip.
  ///
  /// - Parameter identity: An identity from `identities()`.
  /// - Throws: As `devices()`, and `GameDataError` with `refused` for one that doesn't lead to this player (any more).
  public func unlink(_ identity: CloudIdentity) async throws {
    guard let id = ContentHash(identity.id) else {
      throw GameDataError(.misuse, "\"\(identity.id.prefix(80))\" is not an identity")
    }
    try await connection.asPlayer { try await HTTPAccount.unlink(id, for: $0) }
  }
}

extension CloudConnection {
  /// Returns a nonce for the device that signs in for this one, which was removed or has lost its credentials.
  fileprivate func standInNonce(issuer: String) async throws -> String {
    do {
      return try await registration.asStandIn(at: server(), name: state.desired.deviceName) {
        try await HTTPAccount.nonce(ofIssuer: issuer, for: $0)
      }
    } catch {
      throw GameDataError.translated(error)
    }
  }
}
